"""Tensor types of before torch 0.4, `torch.FloatTensor` and its kin: a dtype and a device under one name."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import LEGACY_TENSORS
from dtlint.infer.domain.values import Const, External, Value

if TYPE_CHECKING:
    from dtlint.source.place import Place

__all__ = ["METHODS", "TensorType", "as_tensor", "cast_by_method", "is_list", "tensor_type"]

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
    name = value.name if isinstance(value, External) else value.value if isinstance(value, Const) else None
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


def is_list(node: ast.Call) -> bool:
    """Is a constructor given one list of numbers that are written out?"""
    return len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)) and _is_of_numbers(node.args[0])


def _is_of_numbers(node: ast.expr) -> bool:
    if isinstance(node, (ast.List, ast.Tuple)):
        return bool(node.elts) and all(map(_is_of_numbers, node.elts))
    if isinstance(node, ast.UnaryOp):
        return _is_of_numbers(node.operand)
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def as_tensor(node: ast.Call, dtype: str, place: Place, device: str = "") -> Fix:
    """The fix that makes `torch.tensor([0], dtype=torch.int32)` of `torch.IntTensor([0])`."""
    tensor, first = place.spelled("torch.tensor")
    spelled, second = place.spelled(f"torch.{dtype}")
    told = f'dtype={spelled}, device="{device}"' if device else f"dtype={spelled}"
    edits = (place.replace(node.func, tensor), place.append_argument(told), *first, *second)
    return Fix("Use `torch.tensor`", edits, Applicability.SAFE)
