"""The public names of torch that an entry of the operator database is about: functions, methods, operators, aliases."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import Any

import torch

__all__ = ["names_of", "resolved"]

NAMESPACES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.signal.windows",
    "torch.sparse",
    "torch.masked",
    "torch.Tensor",
)
"""Where the names are public."""

DUNDERS = {
    "add": ("__add__", "__radd__", "__iadd__"),
    "sub": ("__sub__", "__rsub__", "__isub__"),
    "mul": ("__mul__", "__rmul__", "__imul__"),
    "div": ("__truediv__", "__rtruediv__", "__itruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    "remainder": ("__mod__", "__rmod__", "__imod__"),
    "pow": ("__pow__", "__rpow__", "__ipow__"),
    "matmul": ("__matmul__", "__rmatmul__", "__imatmul__"),
    "bitwise_and": ("__and__", "__rand__", "__iand__"),
    "bitwise_or": ("__or__", "__ror__", "__ior__"),
    "bitwise_xor": ("__xor__", "__rxor__", "__ixor__"),
    "bitwise_left_shift": ("__lshift__", "__rlshift__", "__ilshift__"),
    "bitwise_right_shift": ("__rshift__", "__rrshift__", "__irshift__"),
    "eq": ("__eq__",),
    "ne": ("__ne__",),
    "lt": ("__lt__",),
    "le": ("__le__",),
    "gt": ("__gt__",),
    "ge": ("__ge__",),
    "neg": ("__neg__",),
    "abs": ("__abs__",),
    "positive": ("__pos__",),
    "bitwise_not": ("__invert__",),
}
"""The operators of Python and the op whose samples ask about them."""


def resolved(name: str) -> Any:
    """The object of a qualified name, or None."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


@cache
def _public_names() -> dict[int, list[str]]:
    """The public names of every function of torch, by its identity."""
    found: dict[int, list[str]] = defaultdict(list)
    for namespace in NAMESPACES:
        holder = resolved(namespace)
        for name in (name for name in sorted(dir(holder)) if not name.startswith("_")):
            value = getattr(holder, name, None)
            if _is_function(value):
                found[id(value)].append(f"{namespace}.{name}")
    return found


def names_of(info: Any) -> list[str]:
    """The public names that an entry of the database is about: function, method, in-place, operators, aliases."""
    names = list(_public_names().get(id(info.op), ()))
    for base in (info.name, *(alias.name for alias in info.aliases)):
        names.append(f"torch.{base}")
        if "." not in base:
            names += [f"torch.Tensor.{base}", f"torch.Tensor.{base}_"]
            names += [f"torch.Tensor.{dunder}" for dunder in DUNDERS.get(base, ())]
        else:
            names += [f"torch.{base}_"]
    for variant in (info.method_variant, info.inplace_variant):
        names += _public_names().get(id(variant), ())
        if hasattr(variant, "__name__"):
            names.append(f"torch.Tensor.{variant.__name__}")
    return [name for name in dict.fromkeys(names) if _is_public(name) and _is_function(resolved(name))]


def _is_public(name: str) -> bool:
    return re.fullmatch(r"__\w+__|(?!_)\w+", name.rpartition(".")[2]) is not None


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)
