"""What an op does with dtypes, as a rule: the operands are reduced to one key, and a map says what each key gives.

Most ops share a few keys ("the first operand's dtype", "all operands promoted") and a few maps, which is what keeps
the table small.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.dtypes.form import DTYPE, NUMBER, Operands
from dtlint.dtypes.promotion import Operand, result_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "ALONE",
    "CODES",
    "DISAGREE",
    "DTYPE_OF_CODE",
    "NONE",
    "PROMOTED",
    "feature_of",
    "flat",
    "has_letters",
    "key_of",
    "named_dtype",
    "rendered",
    "spellings",
]

CODES: dict[str, str] = dict(
    zip(
        DTYPES,
        ("?", "B", "H", "I", "L", "b", "h", "i", "l", "1", "2", "3", "4", "e", "g", "f", "d", "E", "F", "D"),
        strict=True,
    )
)
"""One letter for each dtype: those of the struct module where it has one; "g" is bfloat16, the digits are the float8s."""
DTYPE_OF_CODE = {code: dtype for dtype, code in CODES.items()}

ALONE = frozenset({"uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2"})
"""Dtypes that are observed with their like only: nothing is known of them beside another dtype."""

NONE = "-"
"""The key of operands that are not given."""
DISAGREE = "!"
"""The key of operands that do not agree, or that do not promote."""


def flat(operands: Operands, slots: Sequence[int]) -> Iterator[Operand]:
    """The operands of some slots, lists opened."""
    for slot in slots:
        operand = operands[slot]
        if operand is None:
            continue
        if operand and isinstance(operand[0], str):
            yield operand
        else:
            yield from (item for item in operand if item is not None)


def _promoted(operands: Operands, slots: Sequence[int]) -> str:
    given = [operand for operand in flat(operands, slots) if operand[1] != DTYPE]
    if not given:
        return NONE
    dtype = result_dtype(given)
    return DISAGREE if dtype is None else CODES[dtype]


def _agreed(operands: Operands, slots: Sequence[int]) -> str:
    dtypes = {dtype for dtype, rank in flat(operands, slots) if rank != NUMBER}
    if len(dtypes) > 1:
        return DISAGREE
    return CODES[dtypes.pop()] if dtypes else NONE


def _only(operands: Operands, slot: int) -> str:
    """The dtype of one slot, whatever its rank."""
    dtypes = {dtype for dtype, _ in flat(operands, (slot,))}
    if len(dtypes) > 1:
        return DISAGREE
    return CODES[dtypes.pop()] if dtypes else NONE


def _fitting(operands: Operands, slots: Sequence[int]) -> str:
    """Does what the operands promote to fit the first of them, as an in-place op demands? `torch.can_cast`."""
    into = _only(operands, slots[0])
    promoted = _promoted(operands, slots[1:])
    if into in (NONE, DISAGREE) or promoted in (NONE, DISAGREE):
        return promoted if promoted in (NONE, DISAGREE) else into
    fits = DTYPES[DTYPE_OF_CODE[promoted]].category <= DTYPES[DTYPE_OF_CODE[into]].category
    return "y" if fits else "n"


def _dtypes(operands: Operands, slots: Sequence[int]) -> str:
    return "".join(_only(operands, slot) for slot in slots)


def _beside(operands: Operands, slots: Sequence[int]) -> str:
    """The first slot's dtype, beside what the others promote to: `alpha` must fit the result of `add`."""
    return _only(operands, slots[0]) + _promoted(operands, slots[1:])


_KEYS: dict[str, Callable[[Operands, Sequence[int]], str]] = {
    "promote": _promoted,
    "agree": _agreed,
    "fit": _fitting,
    "dtypes": _dtypes,
    "beside": _beside,
}
"""How operands become a key. A rule names one of these and its slots: "promote 0 1"."""


def has_letters(key: str) -> bool:
    """Are the key's values single letters? Those of several slots' dtypes are longer, and written with "|" between."""
    name, _, slots = key.partition(" ")
    return name != "beside" and (name != "dtypes" or (bool(slots) and " " not in slots))


@cache
def _reader(key: str) -> tuple[Callable[[Operands, Sequence[int]], str], tuple[int, ...]]:
    name, *slots = key.split()
    return _KEYS[name], tuple(map(int, slots))


def key_of(key: str, operands: Operands) -> str:
    """The operands reduced as `key` says: a dtype's letter, NONE, DISAGREE, or several letters."""
    function, slots = _reader(key)
    return function(operands, slots)


def feature_of(feature: str, operands: Operands, constant: Callable[[str], str | None]) -> str | None:
    """What a call is like, as far as a rule's cases ask: "has 1", is slot 1 given; "rank 1", the ranks in slot 1;
    "arg keepdim", the token of a constant, None when it is unknown."""
    kind, _, name = feature.partition(" ")
    if kind == "arg":
        return constant(name)
    if kind == "has":
        return "0" if operands[int(name)] is None else "1"
    return "".join(map(str, sorted({rank for _, rank in flat(operands, (int(name),))}))) or NONE


# -- how torch spells a dtype in its messages ---------------------------------------------------------------------------

_SCALAR_TYPES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
"""c10::toString(ScalarType)."""

_CPP_TYPES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex32": "c10::complex<c10::Half>",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}
"""caffe2::TypeMeta's names of the element types, as Linux builds print them."""


def spellings(dtype: str) -> dict[str, str]:
    """How torch's messages spell a dtype, by style."""
    scalar = _SCALAR_TYPES.get(dtype, dtype.replace("float8", "Float8"))
    return {
        "torch": f"torch.{dtype}",
        "scalar": scalar,
        "cpp": _CPP_TYPES.get(dtype, scalar),
        "name": dtype,
        "type": f"CPU{scalar}Type",
        "legacy": f"torch.{scalar}Tensor",
    }


PROMOTED = "p"
"""In a message, the dtype that all operands promote to; a digit is the dtype of that slot."""

_PLACE = re.compile(r"\{(\d+|p)\.(\w+)\}")


def named_dtype(who: str, operands: Operands) -> str | None:
    """The dtype that a place in a message stands for: that of a slot (of a list's first), or what all promote to."""
    slots = range(len(operands)) if who == PROMOTED else (int(who),)
    if who == PROMOTED:
        return DTYPE_OF_CODE.get(_promoted(operands, slots))
    return next((dtype for dtype, _ in flat(operands, slots)), None)


def rendered(message: str, operands: Operands) -> str:
    """A message with its places filled: "expected {0.scalar} but got {1.scalar}"."""

    def fill(match: re.Match[str]) -> str:
        dtype = named_dtype(match[1], operands)
        return "?" if dtype is None else spellings(dtype)[match[2]]

    return _PLACE.sub(fill, message)
