"""Former names of what rules read from code; it goes once dt3xx import from the modules of these names."""

from __future__ import annotations

from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._masks import is_mask
from dtlint_rules._names import last_name
from dtlint_rules._names import names_in as words_of
from dtlint_rules._parts import root_of, same
from dtlint_rules._tensors import is_tensor

__all__ = ["assignments", "is_mask", "is_tensor", "last_name", "root_of", "same", "source_of", "words_of"]
