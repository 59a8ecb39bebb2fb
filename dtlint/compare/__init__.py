"""Two traces of one program, operator by operator: which differences rounding explains, and where the first begins that it
does not. Nothing here imports torch, and nothing runs."""

from __future__ import annotations

from dtlint.compare.comparison import Comparison, Finding, compare
from dtlint.compare.ranks import compare_ranks
from dtlint.compare.run import CannotCompare

__all__ = ["CannotCompare", "Comparison", "Finding", "compare", "compare_ranks"]
