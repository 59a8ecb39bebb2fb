"""NumPy's promotion: the dtype of what arrays and numbers make together.

It is NumPy 2's: Python's numbers are weak, NumPy's own scalars are not. Source: NEP 50; the tests run each line of theirs
under NumPy.
"""

from __future__ import annotations

from functools import cache, reduce
from itertools import product
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.domain.lattice import category_of
from dtlint.infer.domain.values import Array, Value, choices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dtlint.infer.domain.values import Dtypes

__all__ = ["OF_NUMBERS", "each", "floated", "joined", "mixed", "promoted", "scalar_of"]

OF_NUMBERS: dict[Category, str] = {
    Category.BOOL: "bool",
    Category.INTEGER: "int64",
    Category.FLOAT: "float64",
    Category.COMPLEX: "complex128",
}
"""The dtype of an array made of Python's numbers. NumPy before 2 has int32 on Windows."""
_MOST_COMBINED = 64


@cache
def promoted(left: str, right: str) -> str:
    """`numpy.promote_types`: an integer that a float cannot hold lifts it."""
    a, b = DTYPES[left], DTYPES[right]
    if a.category > b.category:
        a, b = b, a
    if b.category is Category.COMPLEX:
        if a.category in (Category.BOOL, Category.COMPLEX):
            return b.name if b.bits >= a.bits else a.name
        part = promoted(a.name, "float32" if b.name == "complex64" else "float64")
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
    return b.name


def _with_number(dtype: str, number: Category) -> str:
    """The dtype of an array and a Python number: the array's, unless the number is of a higher category."""
    if DTYPES[dtype].category >= number:
        return dtype
    if number is Category.COMPLEX:
        return "complex64" if dtype in ("float16", "float32") else "complex128"
    return OF_NUMBERS[number]


def each(dtypes: Dtypes, function: Callable[[str], str | None]) -> Dtypes:
    """What a function of one dtype makes of several; None where it does not know of one."""
    if dtypes is None:
        return None
    found = {function(dtype) for dtype in dtypes}
    return None if None in found else frozenset(dtype for dtype in found if dtype is not None)


def _options(value: Value) -> list[str | Category] | None:
    """What an operand can be: a dtype, or a Python number's category."""
    found: list[str | Category] = []
    for one in choices(value):
        if isinstance(one, Array):
            if one.dtypes is None:
                return None
            found += sorted(one.dtypes)
        else:
            category = category_of(one)
            if category is None:
                return None
            found.append(category)
    return found


def _combined(operands: Iterable[Value], how: Callable[[Sequence[str | Category]], str]) -> Dtypes:
    options = [_options(value) for value in operands]
    known = [option for option in options if option is not None]
    count = reduce(lambda total, option: total * len(option), known, 1)
    if len(known) < len(options) or not known or count > _MOST_COMBINED:
        return None
    return frozenset(how(given) for given in product(*known))


def mixed(operands: Iterable[Value]) -> Dtypes:
    """The dtypes of an elementwise operation on arrays and numbers; None where they are not known."""
    return _combined(operands, _mix)


def _mix(given: Sequence[str | Category]) -> str:
    arrays = [one for one in given if isinstance(one, str)]
    numbers = [one for one in given if not isinstance(one, str)]
    if not arrays:
        return OF_NUMBERS[max(numbers)]
    return reduce(_with_number, numbers, reduce(promoted, arrays))


def joined(operands: Iterable[Value]) -> Dtypes:
    """The dtypes of arrays that are made one, or multiplied as matrices: a Python number among them is an array, too."""
    return _combined(operands, _join)


def _join(given: Sequence[str | Category]) -> str:
    return reduce(promoted, [one if isinstance(one, str) else OF_NUMBERS[one] for one in given])


def scalar_of(operands: Iterable[Value]) -> bool | None:
    """Is what an elementwise operation gives a scalar of NumPy?"""
    arrays = [one for value in operands for one in choices(value) if isinstance(one, Array)]
    if any(value.scalar is False for value in arrays):
        return False
    return True if all(value.scalar for value in arrays) else None


def floated(dtype: str) -> str:
    """What a function for floats makes of a dtype: a small integer becomes a small float."""
    info = DTYPES[dtype]
    if info.category >= Category.FLOAT:
        return dtype
    return "float16" if info.bits <= 8 else "float32" if info.bits == 16 else "float64"
