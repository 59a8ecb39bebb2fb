"""Tensor types of before torch 0.4, `torch.FloatTensor` and its kin: a dtype and a device under one name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import LEGACY_TENSORS
from dtlint.infer.values import Constant, External

if TYPE_CHECKING:
    import ast

    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["METHODS", "TensorType", "cast_by_method", "tensor_type"]

METHODS = {
    "float32": "float",
    "float64": "double",
    "float16": "half",
    "bfloat16": "bfloat16",
    "int64": "long",
    "int32": "int",
    "int16": "short",
    "int8": "char",
    "uint8": "byte",
    "bool": "bool",
}
"""The method that casts to a dtype and leaves the tensor where it is."""


@dataclass(slots=True)
class TensorType:
    """`torch.cuda.FloatTensor`."""

    name: str
    dtype: str
    device: str


def tensor_type(value: Value | None) -> TensorType | None:
    """The tensor type that a value names, as an object or as a string; None for anything else."""
    name = value.name if isinstance(value, External) else value.value if isinstance(value, Constant) else None
    if not isinstance(name, str) or not name.startswith("torch.") or not name.endswith("Tensor"):
        return None
    package, _, last = name.rpartition(".")
    dtype = LEGACY_TENSORS.get(last)
    if dtype is None or last == "Tensor" or package not in ("torch", "torch.cuda"):
        return None
    return TensorType(name, dtype, "CUDA" if package == "torch.cuda" else "the CPU")


def cast_by_method(node: ast.Call, method: str, place: Place) -> Fix | None:
    """The fix that makes `x.float()` of `x.type(...)`, and keeps comments; None where a comma would be left."""
    (argument,) = node.args
    behind = place.text(node).rpartition(place.text(argument))[2]
    if "," in behind:
        return None
    edits = (place.rename_method(method), place.replace(argument, ""))
    return Fix(f"Use `.{method}()`", edits, Applicability.UNSAFE)
