"""What the classes of torch.amp and the older ones of torch.cuda.amp are given in the place of one another's arguments:
the new ones take the device first, the old ones know none."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Device, Dtype, Unknown
from dtlint.rule import Finding

if TYPE_CHECKING:
    from dtlint.infer.events import Call
    from dtlint.infer.values import Value

__all__ = ["is_device", "misplaced"]

_OLD = {
    f"torch.{device}.amp.{name}": first
    for device in ("cuda", "cpu")
    for name, first in (("autocast", "enabled"), ("GradScaler", "init_scale"))
}
"""The old classes, and what each takes first."""
_DEVICE = frozenset({"device", "device_type"})
"""How a device or its type is called; `to_device`, `args.fp16_on_device` and their like are switches."""


def misplaced(call: Call) -> Finding | None:
    """The device that an old class is given, `torch.cuda.amp.autocast("cuda")`, or the switch that a new class is given in
    the place of a device or a dtype, `torch.amp.autocast("cuda", False)`."""
    if (first := _OLD.get(call.target)) is not None:
        return _unknown_keyword(call) or _device(call, first)
    if not call.complete:
        return None
    return _region(call) if call.target == "torch.amp.autocast" else _scaler(call)


def _unknown_keyword(call: Call) -> Finding | None:
    for keyword in call.node.keywords:
        if keyword.arg in ("device", "device_type"):
            told = f"`{call.target}` has no argument `{keyword.arg}`: this raises TypeError"
            return Finding(keyword.value, told, _advice(call))
    return None


def _device(call: Call, first: str) -> Finding | None:
    """A device, or the dtype of an autocast, in the first place of an old class."""
    node, value = call.argument_node(0, ""), call.argument(0, "")
    if node is None or not ((dtype := isinstance(value, Dtype)) or is_device(node, value)):
        return None
    of_scaler = call.target.endswith("GradScaler")
    if first in call.keywords:
        fate = f"TypeError, got multiple values for argument '{first}'"
    else:
        fate = f"TypeError {'where a loss is scaled' if of_scaler else 'where the region is entered'}"
    return Finding(
        node,
        f"`{call.target}` takes `{first}` here, and `{ast.unparse(node)}` is a {'dtype' if dtype else 'device'}: {fate}",
        help="Name it: `dtype=`" if dtype and not of_scaler else _advice(call),
    )


def _advice(call: Call) -> str:
    return f"Use `torch.amp.{call.target.rpartition('.')[2]}`, which takes the device first"


def _region(call: Call) -> Finding | None:
    """`torch.autocast(enabled=...)` without a device, and bools in the places of the device and the dtype."""
    if not call.args and "device_type" not in call.keywords:
        return Finding(
            call.node,
            "`torch.autocast` needs a device type: this raises TypeError",
            help='Pass it first: `torch.autocast("cuda", ...)`',
        )
    for position, name in enumerate(("device_type", "dtype")):
        node = call.argument_node(position, "")
        if node is not None and isinstance(call.constant(position, ""), bool):
            fate = "it raises" if position == 0 else "it is taken for the dtype"
            return Finding(
                node,
                f"`torch.autocast` takes `{name}` here, and `{ast.unparse(node)}` is none: {fate}",
                help="Name it: `enabled=`",
            )
    return None


def _scaler(call: Call) -> Finding | None:
    """`torch.amp.GradScaler(False)`, which is on."""
    node, given = call.argument_node(0, ""), call.constant(0, "")
    if node is None or not isinstance(given, (bool, int, float)):
        return None
    meant = "enabled" if isinstance(given, bool) else "init_scale"
    return Finding(
        node,
        f"`torch.amp.GradScaler` takes `device` here: `{ast.unparse(node)}` does not set `{meant}`",
        help=f"Name it: `{meant}=`",
    )


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
