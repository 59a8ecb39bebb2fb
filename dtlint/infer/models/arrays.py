"""NumPy's arrays as operands: operators, items, what is written in place, and what becomes of them beside tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.domain.lattice import category_of
from dtlint.infer.domain.values import (
    TOP,
    Array,
    Const,
    Many,
    Number,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models import array_promotion as promotion
from dtlint.infer.models.plain_tensors import plain
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Dtypes

__all__ = [
    "as_array",
    "as_number",
    "beside_tensor",
    "comparison_result",
    "in_place_result",
    "item",
    "operator_result",
    "unary_result",
]

_BOOL = frozenset({"bool"})
_COUNTING = frozenset({"pow", "floordiv", "mod", "lshift", "rshift"})
"""Operators that take truths for numbers of 8 bits."""


def operator_result(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """`a + b` where one of them is an array."""
    operands = [_operand(ctx, one) for one in (left, right)]
    if not all(_is_plain(one) for one in operands):
        return TOP
    dtypes = promotion.joined(operands) if name == "matmul" else promotion.mixed(operands)
    if name == "truediv":
        dtypes = promotion.each(dtypes, lambda dtype: "float64" if _is_whole(dtype) else dtype)
    elif name in _COUNTING:
        dtypes = promotion.each(dtypes, lambda dtype: "int8" if dtype == "bool" else dtype)
        if name == "pow" and _may_be_truths(operands[0]) and not isinstance(operands[1], Array):
            dtypes = None  # a square has a way of its own, which versions differ in
    return Array(dtypes, None if name == "matmul" else promotion.scalar_of(operands))


def _may_be_truths(value: Value) -> bool:
    return isinstance(value, Array) and (value.dtypes is None or "bool" in value.dtypes)


def _is_whole(dtype: str) -> bool:
    return DTYPES[dtype].category < Category.FLOAT


def _operand(ctx: Context, value: Value) -> Value:
    """An operand of an array: a list is one, too."""
    if isinstance(value, (Ref, Tuple)):
        made = as_array(ctx, value)
        return value if made is None else made
    return value


def _is_plain(value: Value) -> bool:
    """Is it an array or a number? Beside what may be a tensor, the result may be one."""
    return isinstance(value, Array) or category_of(value) is not None


def comparison_result(ctx: Context, left: Value, right: Value) -> Value:
    """`a < b`: truths."""
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return TOP
    return Array(_BOOL, promotion.scalar_of([left, right]))


def unary_result(name: str, value: Array) -> Value:
    """`-a`, `~a`, `+a`."""
    return Array(value.dtypes, value.scalar)


def in_place_result(ctx: Context, name: str, known: Array, given: Value) -> Value:
    """`a += b`: an array keeps its dtype, a scalar is replaced by the result."""
    if known.scalar is False:
        return known
    result = operator_result(ctx, name, known, given)
    if known.scalar is True or not isinstance(result, Array):
        return result
    return Array(known.dtypes if known.dtypes == result.dtypes else None, None)


def item(value: Array, index: Value) -> Array:
    """`a[index]`: a field of a record has a dtype of its own."""
    places = index.items if isinstance(index, Tuple) else (index,)
    if any(isinstance(place, Const) and isinstance(place.value, str) for place in places):
        return Array(None, None)
    keeps = value.scalar is False and any(_is_slice(place) for place in places)
    return Array(value.dtypes, False if keeps else None)


def _is_slice(place: Value) -> bool:
    if isinstance(place, Array):
        return place.scalar is False
    return isinstance(place, Const) and (place.value is None or isinstance(place.value, tuple))


def as_number(value: Array) -> Number | None:
    """The Python number that torch takes a scalar of NumPy for: what Python knows as no number of its own is a float."""
    if value.scalar is not True or value.dtypes is None or len(value.dtypes) != 1:
        return None
    (dtype,) = value.dtypes
    if dtype in ("bool", "complex64"):
        return Number(Category.FLOAT)
    return Number(DTYPES[dtype].category)


def beside_tensor(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """`tensor * array`: torch leaves it to NumPy, which takes the tensor for an array, and gives a tensor all the same."""
    tensor, array = (left, right) if isinstance(left, Tensor) else (right, left)
    if not isinstance(tensor, Tensor) or not isinstance(array, Array) or array.scalar is not False or tensor is right:
        return TOP
    made = operator_result(ctx, name, Array(_shared(tensor.dtypes), False), array)
    return Tensor(made.dtypes if isinstance(made, Array) else None)


def _shared(dtypes: Dtypes) -> Dtypes:
    """The dtypes of a tensor that NumPy has, too."""
    return None if dtypes is None or "bfloat16" in dtypes else dtypes


def as_array(ctx: Context, value: Value) -> Array | None:
    """What `np.array(value)` makes of an array, a tensor, a number or nested lists of these; None where that is not known."""
    value = plain(ctx, value)
    if isinstance(value, Array):  # of a scalar an array without dimensions
        return Array(value.dtypes, False if value.scalar is False else None)
    if isinstance(value, Tensor):
        return Array(_shared(value.dtypes), False if value.rank not in (None, 0) else None)
    category = category_of(value)
    if category is not None:
        return Array(frozenset({promotion.OF_NUMBERS[category]}), None)
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        if isinstance(content, Array):  # an image
            return content
    leaves = _leaves(ctx, value, 0)
    if leaves is None:
        return None
    return Array(promotion.joined(leaves) if leaves else frozenset({"float64"}), False)


_DEEPEST = 6


def _leaves(ctx: Context, value: Value, depth: int) -> list[Value] | None:
    """The numbers and arrays in nested lists; None where not all are known."""
    value = plain(ctx, value)
    if isinstance(value, Ref) and value.address.kind in ("builtins.list", "builtins.tuple", "collections.deque"):
        value = ctx.store.read(value.address, CONTENT) or value
    if isinstance(value, (Tuple, Many)) and depth < _DEEPEST:
        found: list[Value] = []
        for inside in value.items if isinstance(value, Tuple) else (value.item,):
            inner = _leaves(ctx, inside, depth + 1)
            if inner is None:
                return None
            found += inner
        return found
    if depth == 0:
        return None
    if isinstance(value, Tensor):
        value = Array(_shared(value.dtypes), None)
    if isinstance(value, Const) and isinstance(value.value, int) and abs(value.value) >= 2**63:
        return None
    return [value] if all(_is_plain(one) for one in choices(value)) else None
