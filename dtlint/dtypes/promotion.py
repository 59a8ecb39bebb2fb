"""Which dtype an operation on several operands has: `torch.promote_types` and `torch.result_type`, without torch.

Source: the type promotion section of torch's tensor attributes page, and c10/core/ScalarType.cpp; a test compares
every pair and every mix of dimensioned, 0-dim and Python operands with torch itself.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Operand", "promote", "result_dtype"]

_COMPLEX_OF = {"float16": "complex32", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}
_UNSIGNED_WIDE = frozenset({"uint16", "uint32", "uint64"})

Operand = tuple[str, int]
"""A dtype and its rank: 2 for a tensor with dimensions, 1 for a 0-dim tensor, 0 for a Python number.
The dtype of a Python number is "bool", "int64", or the default float or complex dtype."""


@cache
def promote(left: str, right: str) -> str | None:
    """`torch.promote_types(left, right)`, or None where torch refuses the pair: float8 with anything else, and uint16 and
    wider unsigned integers with anything but themselves and floats."""
    if left == right:
        return left
    a, b = DTYPES[left], DTYPES[right]
    if a.category > b.category:
        a, b = b, a
    if (a.category is Category.FLOAT and a.bits == 8) or (b.category is Category.FLOAT and b.bits == 8):
        return None
    if a.name in _UNSIGNED_WIDE or b.name in _UNSIGNED_WIDE:
        return b.name if b.category is Category.FLOAT else None
    if b.category is Category.COMPLEX:
        if a.category is Category.COMPLEX:
            return a.name if a.bits > b.bits else b.name
        if a.category is Category.FLOAT:
            part = _COMPLEX_OF[a.name]
            return part if DTYPES[part].bits > b.bits else b.name
        return b.name
    if b.category is Category.FLOAT:
        if a.category is not Category.FLOAT:
            return b.name
        if a.bits == b.bits:
            return "float32"  # float16 with bfloat16: neither holds the other
        return a.name if a.bits > b.bits else b.name
    if a.category is Category.BOOL:
        return b.name
    if "uint8" in (left, right):
        signed = right if left == "uint8" else left
        return "int16" if signed == "int8" else signed
    return a.name if a.bits > b.bits else b.name


def result_dtype(operands: Iterable[Operand]) -> str | None:
    """The dtype of an elementwise operation: `torch.result_type` for any number of operands.

    Dimensioned tensors decide, unless a 0-dim tensor or then a number is of a higher category.

    Returns:
        None when torch refuses to promote, or there is no operand.
    """
    ranks: list[str | None] = [None, None, None]
    for dtype, rank in operands:
        current = ranks[rank]
        if current is None:
            ranks[rank] = dtype
        else:
            ranks[rank] = promote(current, dtype)
            if ranks[rank] is None:
                return None
    number, scalar, tensor = ranks
    result = scalar if tensor is None else _outranked(tensor, scalar)
    return number if result is None else _outranked(result, number)


def _outranked(high: str, low: str | None) -> str | None:
    """The higher rank's dtype, unless the lower rank is of a higher category; a float then keeps its own width."""
    if low is None or DTYPES[high].category >= DTYPES[low].category:
        return high
    if DTYPES[low].category is Category.COMPLEX:
        return _COMPLEX_OF.get(high) if DTYPES[high].category is Category.FLOAT else low
    return promote(high, low)
