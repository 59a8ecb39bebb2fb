"""What its origins tell of an operand: that it is float32 for certain, or of whatever dtype the caller gives.

Where inference knows the value, it has the last word.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.survey import facts
from dtlint.infer.values import Array, Constant, Module, Number, Tensor
from dtlint_rules._effects import FLOAT32, WIDE
from dtlint_rules._kept import kept
from dtlint_rules._meanings import counts, names_dtype
from dtlint_rules._names import last_name
from dtlint_rules._origin import NOTHING, Kind
from dtlint_rules._parts import given, receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Does a function write a cast to float32 out, and not cast back at once, as `softmax(x, dtype=torch.float32).to(x.dtype)`
    does? Where it does not, none of its origins is one."""
    spoken = facts(scope).floats
    if not spoken:
        return False
    undone = {
        part for call in facts(scope).calls if (inner := _cast_back(call)) is not None for part in _said_in(inner)
    }
    return not undone.issuperset(spoken)


_SPOKEN = frozenset({"float", "float32"})


def _cast_back(node: ast.Call) -> ast.Call | None:
    """The call whose result is cast at once to a dtype that is not float32."""
    inner = receiver(node)
    if not isinstance(inner, ast.Call):
        return None
    name = last_name(node)
    told = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    told += [part for part in node.args if names_dtype(part)] if name in ("to", "type") else []
    narrows = name in ("half", "bfloat16") or (name == "type_as" and bool(node.args))
    casts = narrows or (name == "to" and bool(told))
    return inner if casts and not any(last_name(part) in _SPOKEN for part in told) else None


def _said_in(node: ast.Call) -> Iterator[ast.expr]:
    """The places in a call that may say that its result is float32."""
    yield node.func
    yield from given(node)


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
