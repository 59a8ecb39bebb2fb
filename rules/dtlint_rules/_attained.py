"""What becomes of numbers in the dtype that they meet: beyond its largest, lost in it, cut to whole ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING, INTEGRAL
from dtlint.dtypes.rounding import rounded
from dtlint.infer.domain.lattice import number_of
from dtlint.infer.domain.values import Const, Number, Tensor, Value
from dtlint.rule import Finding
from dtlint_rules._facts import origin

if TYPE_CHECKING:
    import ast

    from dtlint.infer.domain.interval import Range
    from dtlint.infer.facts import Operation, Sighting

__all__ = [
    "beyond",
    "cut",
    "dtypes_of",
    "found",
    "infinite",
    "largest",
    "last_name_of",
    "lost",
    "number_in",
    "one_number",
    "only",
    "operands",
]


def last_name_of(operation: Operation) -> str:
    """`masked_fill` of `torch.Tensor.masked_fill_`."""
    name = operation.op.rpartition(".")[2]
    return name if name.startswith("_") else name.rstrip("_")


def dtypes_of(value: Value | None) -> frozenset[str]:
    """What the dtype of a tensor can be; nothing where that is not known."""
    return value.dtypes or frozenset() if isinstance(value, Tensor) else frozenset()


def only(value: Value | None, dtypes: frozenset[str]) -> bool:
    """Is it a tensor whose dtype is certainly one of these?"""
    known = dtypes_of(value)
    return bool(known) and known <= dtypes


def one_number(value: Value | None) -> float | None:
    """A number that is known; the element of a tensor without dimensions, too."""
    values = number_in(value)
    return values.low if values is not None and values.low == values.high and not values.nan else None


def number_in(value: Value | None) -> Range | None:
    """What a number can be; None of what is none, or may be a bool."""
    if isinstance(value, Tensor):
        return value.range if value.rank == 0 else None
    if not isinstance(value, (Const, Number)) or (isinstance(value, Const) and isinstance(value.value, bool)):
        return None
    known = number_of(value)
    return None if known is None else known.range


def operands(left: Value, right: Value) -> tuple[Value, Value]:
    """Of two operands the tensor that tells the dtype, and the other one."""
    if not isinstance(left, Tensor) or (isinstance(right, Tensor) and left.rank == 0):
        return right, left
    return left, right


def beyond(number: float | None, tensor: Value | None) -> str | None:
    """The dtype of a tensor whose largest number a finite one is beyond, whichever its dtype is."""
    if number is None or not math.isfinite(number) or not only(tensor, FLOATING):
        return None
    dtypes = dtypes_of(tensor)
    return min(dtypes) if all(math.isinf(rounded(number, dtype)) for dtype in dtypes) else None


def lost(number: float | None, tensor: Value | None) -> str | None:
    """The dtype of a tensor in which a number is 0 though it is not, whichever its dtype is."""
    if not number or not only(tensor, FLOATING):
        return None
    dtypes = dtypes_of(tensor)
    return min(dtypes) if all(rounded(number, dtype) == 0 for dtype in dtypes) else None


def cut(value: Value | None, tensor: Value | None) -> str | None:
    """The integer dtype of a tensor that cannot hold a number, which is certainly not whole."""
    values = number_in(value)
    if values is None or not values.bounded or values.inf or values.nan or not only(tensor, INTEGRAL):
        return None
    return min(dtypes_of(tensor)) if math.ceil(values.low) > values.high else None


def infinite(value: Value | None, tensor: Value | None) -> str | None:
    """What becomes of inf and NaN in a tensor of integers or bools, which have neither."""
    number = value.value if isinstance(value, Const) else None
    if not isinstance(number, float) or math.isfinite(number) or len(dtypes_of(tensor)) != 1:
        return None
    written = "NaN" if math.isnan(number) else f"{number}"
    if only(tensor, frozenset({"bool"})):
        return f"{written} becomes True: the tensor is bool"
    (dtype,) = dtypes_of(tensor)
    return f"{dtype} has no {written}: this raises" if dtype in INTEGRAL else None


def largest(dtype: str) -> str:
    """The largest number of a dtype, as one reads it."""
    return f"{DTYPES[dtype].max:g}" if DTYPES[dtype].max > 1e6 else f"{DTYPES[dtype].max:.0f}"


def found(
    seen: Sighting[Operation], text: str, help: str = "", notes: tuple[tuple[ast.expr, str], ...] = ()
) -> Finding:
    """A finding: at the operation, or at the call that leads to it."""
    message = f"This call leads to where {text[0].lower() + text[1:]}" if seen.behind else text
    led_to = seen.what.node if seen.behind else None
    return Finding(seen.node, message, help=help, notes=notes, elsewhere=origin(seen, text), led_to=led_to)
