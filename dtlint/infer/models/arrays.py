"""Operators on NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Array, Value

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["operator_result"]


def operator_result(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """`a + b` where one of them is an array."""
    if isinstance(left, Array) and isinstance(right, Array) and left.dtypes == right.dtypes and name != "truediv":
        return Array(left.dtypes, left.scalar if left.scalar == right.scalar else None)
    return Array(None, None)
