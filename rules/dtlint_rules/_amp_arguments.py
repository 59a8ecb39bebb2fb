"""What is a device, or the type of one, by what it is or by how it is called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Device, Unknown

if TYPE_CHECKING:
    from dtlint.infer.values import Value

__all__ = ["is_device"]

_DEVICE = frozenset({"device", "device_type"})
"""How a device or its type is called; `to_device`, `args.fp16_on_device` and their like are switches."""


def is_device(node: ast.expr, value: Value | None = None) -> bool:
    """Is it a device, the type of one, or a text, by what it is or by how it is called?"""
    if isinstance(value, Device) or (isinstance(value, Constant) and isinstance(value.value, str)):
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.IfExp):
        return is_device(node.body) and is_device(node.orelse)
    if value is not None and not isinstance(value, Unknown):
        return False
    path = path_of(node) or ""
    return path in _DEVICE or path.removesuffix(".type").endswith(".device") or path == "device.type"
