"""What annotations say of a parameter: a tensor, of which dtype, or a number. They are facts, for who reads them relies on them."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.names import path_of
from dtlint.infer.values import Array, External, Number, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.values import Dtypes

__all__ = ["declared", "declared_by"]

_OPTIONAL = frozenset({"typing.Optional", "typing.Union", "typing.Annotated", "typing.Final"})

_TENSORS: dict[str, Dtypes] = {
    "torch.Tensor": None,
    "torch.nn.Parameter": None,
    "torch.FloatTensor": None,
    "torch.HalfTensor": frozenset({"float16"}),
    "torch.BFloat16Tensor": frozenset({"bfloat16"}),
    "torch.DoubleTensor": frozenset({"float64"}),
    "torch.LongTensor": None,
    "torch.BoolTensor": frozenset({"bool"}),
}
"""Classes of tensors. FloatTensor and LongTensor say no more than Tensor: programs write the one for
whatever is no index, half included, and the other for labels and masks of every dtype."""

_JAXTYPING = re.compile(r"jaxtyping\.(Float16|BFloat16|Float32|Float64|Int8|Int16|Int32|Int64|UInt8|Bool)")
_JAXTYPING_KINDS = re.compile(r"jaxtyping\.(Float|Int|Integer|Real|Num|Shaped|Inexact|Complex\w*|UInt\w*|Key)")
_NUMBERS = {"builtins.float": Category.FLOAT, "builtins.int": Category.INTEGER}


def declared(annotation: ast.expr, value: Callable[[ast.expr], Value]) -> Value | None:
    """The tensor, array or number that an annotation says a parameter is; None for one that says none of these.

    Args:
        value: the value of an expression, evaluated without telling anybody.
    """
    if type(annotation) is ast.Name:
        return declared_by(value(annotation))
    if isinstance(annotation, ast.BinOp):
        return _one([annotation.left, annotation.right], value) if isinstance(annotation.op, ast.BitOr) else None
    if isinstance(annotation, ast.Subscript):
        return _subscripted(annotation, value)
    if isinstance(annotation, ast.Constant):
        parsed = _parsed(annotation.value) if isinstance(annotation.value, str) else None
        return None if parsed is None else declared(parsed, value)
    return None if path_of(annotation) is None else declared_by(value(annotation))


def declared_by(named: Value) -> Value | None:
    """What an annotation says that is a plain name, by what it names."""
    if type(named) is not External:
        return None
    name = named.name
    if name in _TENSORS:
        return Tensor(_TENSORS[name])
    if name == "numpy.ndarray":
        return Array()
    return Number(_NUMBERS[name]) if name in _NUMBERS else None


def _subscripted(annotation: ast.Subscript, value: Callable[[ast.expr], Value]) -> Value | None:
    """`Optional[Tensor]`, `Union[Tensor, None]`, `Float16[Tensor, "batch dim"]`."""
    outer = value(annotation.value)
    name = outer.name if isinstance(outer, External) else ""
    inner = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    if name == "typing.Annotated":
        return declared(inner[0], value) if inner else None
    if name in _OPTIONAL:
        return _one(inner, value)
    exact = _JAXTYPING.fullmatch(name)
    if inner and (exact is not None or _JAXTYPING_KINDS.fullmatch(name)):
        of = declared(inner[0], value)
        if isinstance(of, Tensor):
            return Tensor(frozenset({exact[1].lower()}) if exact is not None else None)
    return None


def _one(alternatives: list[ast.expr], value: Callable[[ast.expr], Value]) -> Value | None:
    """The one thing that alternatives say, None aside."""
    said = [part for part in alternatives if not (type(part) is ast.Constant and part.value is None)]
    if len(said) == 1:  # `Tensor | None`, as nearly all are
        return declared(said[0], value)
    found = [declared(part, value) for part in said]
    if not found or None in found:
        return None
    first = found[0]
    if all(one == first for one in found[1:]):
        return first
    return Tensor() if all(isinstance(one, Tensor) for one in found) else None


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr | None:
    """An annotation that is written as a string."""
    if len(text) > 200:
        return None
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
