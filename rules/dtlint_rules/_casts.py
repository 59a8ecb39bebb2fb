"""The methods that cast a tensor or a module."""

from __future__ import annotations

from dtlint.dtypes.dtype import ALIASES

__all__ = ["CAST_METHODS"]

CAST_METHODS = frozenset({"to", "type", "type_as", "bfloat16", "bool", *ALIASES})
"""All that `Call.cast` knows as casts."""
