"""NumPy's promotion: the dtype of what arrays and numbers make together.

It is NumPy 2's: Python's numbers are weak, NumPy's own scalars are not. Source: NEP 50; every line of the tests was run
on NumPy 2.4.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.symbols import category_of
from dtlint.infer.values import Array, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.values import Dtypes

__all__ = ["array_operator", "beside_tensor", "floated", "joined", "mixed", "of_numbers", "scalar_of", "written_into"]

_FLOAT64 = frozenset({"float64"})


def _promoted(left: str, right: str) -> str | None:
    """`numpy.promote_types` for the dtypes that both have: an integer that a float cannot hold lifts it."""
    a, b = DTYPES[left], DTYPES[right]
    if a.category > b.category:
        a, b = b, a
    if b.category is Category.COMPLEX:
        if a.category in (Category.BOOL, Category.COMPLEX):
            return b.name if b.bits >= a.bits else a.name
        part = _promoted(a.name, "float32" if b.name == "complex64" else "float64")
        return "complex64" if part == "float32" else "complex128"
    if a.category is Category.INTEGER and b.category is Category.FLOAT:
        lifted = "float64" if a.bits >= 32 else "float32" if a.bits == 16 else "float16"
        return lifted if DTYPES[lifted].bits > b.bits else b.name
    if a.category is b.category is Category.INTEGER and (a.min < 0) is not (b.min < 0):
        unsigned = a if a.min == 0 else b
        needed = max(a.bits, b.bits) if unsigned.bits < max(a.bits, b.bits) else 2 * unsigned.bits
        return f"int{needed}" if needed <= 64 else "float64"
    if a.category is b.category:
        return a.name if a.bits >= b.bits else b.name
    return b.name if a.category is Category.BOOL else None


def _with_number(dtype: str, number: Category) -> str:
    """The dtype of an array and a Python number: the array's, unless the number is of a higher category."""
    if DTYPES[dtype].category >= number:
        return dtype
    if number is Category.COMPLEX:
        return "complex64" if dtype in ("float16", "float32") else "complex128"
    return "int64" if number is Category.INTEGER else "float64"


def mixed(operands: Sequence[Value]) -> Dtypes:
    """The dtype of an elementwise operation on arrays and numbers; None where it is not known."""
    result: str | None = None
    numbers: list[Category] = []
    for value in operands:
        if isinstance(value, Array):
            if value.dtypes is None or len(value.dtypes) != 1:
                return None
            (dtype,) = value.dtypes
            result = dtype if result is None else _promoted(result, dtype)
            if result is None:
                return None
        else:
            category = category_of(value)
            if category is None:
                return None
            numbers.append(category)
    if result is None:
        return None
    for category in numbers:
        result = _with_number(result, category)
    return frozenset({result})


def joined(operands: Sequence[Value]) -> Dtypes:
    """The dtype of arrays that are made one, or multiplied as matrices: a number among them is no weak one."""
    return mixed(operands) if all(isinstance(value, Array) for value in operands) else None


def scalar_of(operands: Sequence[Value]) -> bool | None:
    """Is what an elementwise operation gives a scalar?"""
    arrays = [value for value in operands if isinstance(value, Array)]
    if any(value.scalar is False for value in arrays):
        return False
    return True if all(value.scalar for value in arrays) else None


def floated(dtypes: Dtypes) -> Dtypes:
    """What a function for floats makes of a dtype: a small integer becomes a small float."""
    if dtypes is None or len(dtypes) != 1:
        return None
    info = DTYPES[next(iter(dtypes))]
    if info.category >= Category.FLOAT:
        return dtypes
    return frozenset({"float16" if info.bits <= 8 else "float32" if info.bits == 16 else "float64"})


def of_numbers(values: Sequence[Value]) -> Dtypes:
    """The dtype that NumPy gives Python's numbers."""
    if not values:
        return None
    categories = [category_of(value) if not isinstance(value, Array) else None for value in values]
    if None in categories:
        return joined(values)
    highest = max(category for category in categories if category is not None)
    return frozenset({"bool"}) if highest is Category.BOOL else frozenset({_with_number("bool", highest)})


_COUNTING = (ast.Pow, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift)
"""Operators that take truths for numbers of 8 bits."""


def array_operator(operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Array:
    """Arithmetic on arrays and numbers."""
    product = isinstance(operator, ast.MatMult)
    dtypes = joined((left, right)) if product else mixed((left, right))
    if dtypes is not None and isinstance(operator, ast.Div):
        dtypes = dtypes if DTYPES[next(iter(dtypes))].category >= Category.FLOAT else _FLOAT64
    elif dtypes is not None and isinstance(operator, _COUNTING) and "bool" in dtypes:
        dtypes = frozenset({"int8"})
    return Array(dtypes, None if product else scalar_of((left, right)), node)


def written_into(array: Array, result: Value) -> Value:
    """What `array *= other` leaves: an array keeps its dtype, a scalar is replaced by the result."""
    if array.scalar is True or not isinstance(result, Array):
        return result
    if array.scalar is False:
        return array
    return Array(array.dtypes if array.dtypes == result.dtypes else None, None, array.origin)


def beside_tensor(operator: ast.operator, tensor: Tensor, array: Array, node: ast.expr | None) -> Tensor:
    """`tensor * array`: torch leaves it to NumPy, which takes the tensor for an array, and gives a tensor all the same."""
    dtypes = tensor.dtypes if tensor.dtypes is not None and "bfloat16" not in tensor.dtypes else None
    return Tensor(array_operator(operator, Array(dtypes, False), array, node).dtypes, origin=node)
