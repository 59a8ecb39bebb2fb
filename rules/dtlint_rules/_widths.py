"""What its origins tell of an operand: that it is float32 for certain, or of whatever dtype the caller gives.

Where inference knows the value, it has the last word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.values import Array, Constant, Module, Number, Tensor
from dtlint_rules._effects import FLOAT32, WIDE
from dtlint_rules._meanings import counts
from dtlint_rules._origin import Kind

if TYPE_CHECKING:
    import ast

    from dtlint.infer.values import Value
    from dtlint_rules._origin import Roots

__all__ = ["cast_to_float32", "is_open", "is_wide"]


def cast_to_float32(value: Value, roots: Roots) -> ast.expr | None:
    """The cast or the factory by which an operand is float32 for certain, as it is written; None where it is not."""
    if isinstance(value, Tensor) and value.dtypes is not None:
        if value.dtypes != {"float32"} or value.zero_dim is True:
            return None
        if value.cast is not None:
            return value.cast.node
    if roots and all(origin.kind == Kind.CAST and origin.text in FLOAT32 for origin in roots):
        return next(iter(roots)).node
    return None


def is_wide(roots: Roots) -> bool:
    """Is an expression float32 or float64 by a cast that is written out, on every path?"""
    return bool(roots) and all(origin.kind == Kind.CAST and origin.text in WIDE for origin in roots)


def is_open(value: Value, roots: Roots) -> bool:
    """Has an operand the dtype of what the function is given, or of weights, with no cast to a dtype that is written out?"""
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING:
        return False
    if not roots or not all(origin.kind == Kind.GIVEN and not counts(origin) for origin in roots):
        return False
    return not isinstance(value, (Number, Constant, Array, Module))
