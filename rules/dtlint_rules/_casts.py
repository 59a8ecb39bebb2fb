"""The methods that cast a tensor or a module."""

from __future__ import annotations

from dtlint.dtypes.dtype import ALIASES
from dtlint_rules._effects import CASTS

__all__ = ["CAST_METHODS", "SHORT", "TOLD", "TO_FLOATING"]

CAST_METHODS = frozenset({"to", "type", "type_as", "bfloat16", "bool", *ALIASES})
"""All that `Call.cast` knows as casts."""

TOLD = frozenset({"to", "type", "type_as"})
"""Those that are told a dtype."""

TO_FLOATING = TOLD | CASTS.keys()
"""Those that may cast to a floating dtype."""

SHORT = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}
"""Dtypes by the names that settings give them, and torch does not know."""
