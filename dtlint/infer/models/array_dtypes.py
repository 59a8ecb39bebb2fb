"""NumPy's dtypes: the names that they go by, and the values that stand for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import NO_TENSOR, Const, External, Value, choices

if TYPE_CHECKING:
    from dtlint.infer.domain.values import Dtypes

__all__ = ["CODES", "SCALARS", "as_value", "dtype_named"]

SCALARS: dict[str, str] = {
    **{name: name for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64")},
    **{name: name for name in ("uint8", "uint16", "uint32", "uint64", "complex64", "complex128")},
    "half": "float16",
    "single": "float32",
    "double": "float64",
    "float_": "float64",
    "int_": "int64",
    "intp": "int64",
    "longlong": "int64",
    "intc": "int32",
    "short": "int16",
    "byte": "int8",
    "ubyte": "uint8",
    "ushort": "uint16",
    "uint": "uint64",
    "bool": "bool",
    "bool_": "bool",
    "complex_": "complex128",
    "csingle": "complex64",
    "cdouble": "complex128",
}
"""The classes of NumPy's scalars, which are its dtypes' second names: `np.half` is `np.float16`."""

_PYTHON = {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128"}
_CODES = {
    "?": "bool",
    "b": "int8",
    "B": "uint8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "l": "int64",
    "q": "int64",
    "Q": "uint64",
    "L": "uint64",
    "e": "float16",
    "f": "float32",
    "d": "float64",
    "F": "complex64",
    "D": "complex128",
    "b1": "bool",
    "i1": "int8",
    "i2": "int16",
    "i4": "int32",
    "i8": "int64",
    "u1": "uint8",
    "u2": "uint16",
    "u4": "uint32",
    "u8": "uint64",
    "f2": "float16",
    "f4": "float32",
    "f8": "float64",
    "c8": "complex64",
    "c16": "complex128",
}


def dtype_named(value: Value | None) -> Dtypes:
    """The dtypes that a `dtype=` argument names; None where that is not known."""
    found: set[str] = set()
    for choice in () if value is None else choices(value):
        name: str | None = None
        if isinstance(choice, External):
            package, _, last = choice.name.rpartition(".")
            name = SCALARS.get(last) if package == "numpy" else _PYTHON.get(last) if package == "builtins" else None
        elif isinstance(choice, Const) and isinstance(choice.value, str):
            text = choice.value.lstrip("<=|")
            name = _PYTHON.get(text) or SCALARS.get(text) or _CODES.get(text)
        if name is None:
            return None
        found.add(name)
    return frozenset(found) or None


def as_value(dtypes: Dtypes) -> Value:
    """What `array.dtype` is."""
    if dtypes is None:
        return NO_TENSOR
    return join_all(External(f"numpy.{dtype}") for dtype in sorted(dtypes)) or NO_TENSOR


def _texts(dtype: str) -> dict[str, str]:
    """What NumPy calls a dtype: the letter of its kind, and that with its bytes, the lowest first."""
    code = next(code for code, named in _CODES.items() if named == dtype and code[-1].isdigit())
    return {"name": dtype, "kind": code[0], "str": f"{'|' if code.endswith('1') else '<'}{code}"}


CODES = {
    f"numpy.{name}.{which}": Const(text) for name, dtype in SCALARS.items() for which, text in _texts(dtype).items()
}
"""The attributes of dtypes that are texts: `numpy.float32.str`."""
