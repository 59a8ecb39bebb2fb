"""Former names of what rules read from code; it goes once dt3xx import from the modules of these names."""

from __future__ import annotations

from dtlint.infer.around import around, parents
from dtlint_rules._names import last_name as last
from dtlint_rules._names import mentions, names, said, words
from dtlint_rules._scripts import is_script

__all__ = ["around", "is_script", "last", "mentions", "names", "parents", "said", "words"]
