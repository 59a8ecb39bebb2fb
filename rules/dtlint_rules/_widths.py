"""What its origins tell of an operand: that it is float32 for certain, or of whatever dtype the caller gives.

Where inference knows the value, it has the last word.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.values import Array, Constant, Module, Number, Tensor
from dtlint.infer.walk import SCOPES, nodes
from dtlint_rules._effects import FLOAT32, WIDE
from dtlint_rules._functions import body_of
from dtlint_rules._kept import kept
from dtlint_rules._meanings import counts
from dtlint_rules._origin import NOTHING, Kind

if TYPE_CHECKING:
    from dtlint.infer.values import Value
    from dtlint_rules._origin import Roots

__all__ = ["cast_to_float32", "is_open", "is_wide", "may_be_cast"]


def may_be_cast(scope: ast.AST, *values: Value) -> bool:
    """Can one of these values of a function be cast to float32 for certain? Ask it before origins are read."""
    return any(cast_to_float32(value, NOTHING) is not None for value in values) or _speaks_of_float32(scope)


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


@kept
def _speaks_of_float32(scope: ast.AST) -> bool:
    """Does a function write a cast to float32 out? Where it does not, none of its origins is one."""
    return any(isinstance(node, ast.Attribute) and node.attr in _SPOKEN for node in nodes(body_of(scope), SCOPES))


_SPOKEN = frozenset({"float", "float32"})


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
