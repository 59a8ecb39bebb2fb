"""What each dtype is: its names, its category, its range and its resolution.

A dtype is spelled throughout dtlint as torch spells it without the prefix: `"float16"`.
Source of the figures: IEEE 754-2019, the OCP 8-bit floating point specification, and `torch.finfo` / `torch.iinfo` of torch 2.13.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

__all__ = [
    "ALIASES",
    "ARITHMETIC",
    "COMPLEX",
    "DTYPES",
    "FLOATING",
    "INTEGRAL",
    "LEGACY_TENSORS",
    "LOW_PRECISION",
    "REAL_PARTS",
    "SMALL_INTEGERS",
    "Category",
    "Info",
    "named",
]


class Category(IntEnum):
    """The ladder of promotion: a value of a higher category lifts one of a lower."""

    BOOL = 0
    INTEGER = 1
    FLOAT = 2
    COMPLEX = 3


@dataclass(frozen=True, slots=True)
class Info:
    """The facts of one dtype. `tiny` is the smallest positive normal value, `smallest` the smallest subnormal, `eps`
    the gap above 1; all three are 0 for integers."""

    name: str
    category: Category
    bits: int
    max: float
    min: float
    eps: float = 0.0
    tiny: float = 0.0
    smallest: float = 0.0


def _float(name: str, bits: int, exponent: int, mantissa: int, top: float, bias: int | None = None) -> Info:
    lowest = 1 - (2 ** (exponent - 1) - 1 if bias is None else bias)
    return Info(name, Category.FLOAT, bits, top, -top, 2.0**-mantissa, 2.0**lowest, 2.0 ** (lowest - mantissa))


def _int(name: str, bits: int, signed: bool) -> Info:
    top = 2 ** (bits - signed) - 1
    return Info(name, Category.INTEGER, bits, top, -top - 1 if signed else 0)


def _complex(name: str, part: Info) -> Info:
    return Info(name, Category.COMPLEX, 2 * part.bits, part.max, part.min, part.eps, part.tiny, part.smallest)


_HALF = _float("float16", 16, 5, 10, 65504.0)
_FLOAT = _float("float32", 32, 8, 23, (2 - 2.0**-23) * 2.0**127)
_DOUBLE = _float("float64", 64, 11, 52, (2 - 2.0**-52) * 2.0**1023)

DTYPES: dict[str, Info] = {
    info.name: info
    for info in (
        Info("bool", Category.BOOL, 8, 1, 0),
        *(_int(f"uint{bits}", bits, False) for bits in (8, 16, 32, 64)),
        *(_int(f"int{bits}", bits, True) for bits in (8, 16, 32, 64)),
        _float("float8_e4m3fn", 8, 4, 3, 448.0),
        _float("float8_e5m2", 8, 5, 2, 57344.0),
        _float("float8_e4m3fnuz", 8, 4, 3, 240.0, bias=8),
        _float("float8_e5m2fnuz", 8, 5, 2, 57344.0, bias=16),
        _HALF,
        _float("bfloat16", 16, 8, 7, (2 - 2.0**-7) * 2.0**127),
        _FLOAT,
        _DOUBLE,
        _complex("complex32", _HALF),
        _complex("complex64", _FLOAT),
        _complex("complex128", _DOUBLE),
    )
}

ALIASES: dict[str, str] = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "char": "int8",
    "byte": "uint8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "chalf": "complex32",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
"""torch's second names: `torch.half is torch.float16`; the tensor methods of these names cast to them."""

LEGACY_TENSORS: dict[str, str] = {
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
"""The tensor classes of before torch 0.4, as in `x.type(torch.HalfTensor)` and `x.type("torch.cuda.HalfTensor")`."""

FLOATING = frozenset(name for name, info in DTYPES.items() if info.category is Category.FLOAT and info.bits > 8)
"""The floating dtypes that arithmetic is defined for. float8 is a storage format: its arithmetic raises."""
ARITHMETIC = tuple(
    name
    for name, info in DTYPES.items()
    if info.category is not Category.FLOAT or info.bits > 8
    if name not in ("uint16", "uint32", "uint64", "complex32")
)
"""The dtypes that programs compute in. float8 and the wide unsigned integers are for storage, complex32 is experimental."""
COMPLEX = frozenset(name for name, info in DTYPES.items() if info.category is Category.COMPLEX)
REAL_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""The dtype of the real part, and of the imaginary one, of a complex tensor."""
INTEGRAL = frozenset(name for name, info in DTYPES.items() if info.category is Category.INTEGER)
SMALL_INTEGERS = frozenset({"int8", "uint8", "int16", "uint16"})
"""Integers that a float's usual values do not fit."""
LOW_PRECISION = frozenset({"float16", "bfloat16"})


def named(name: str) -> str | None:
    """The dtype that `torch.<name>` is, or None: `named("half") == "float16"`."""
    name = ALIASES.get(name, name)
    return name if name in DTYPES else None
