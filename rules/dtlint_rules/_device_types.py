"""A device, or the text of one with its index, where autocast wants the type of a device."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.infer.names import path_of
from dtlint.infer.values import Device, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments, bound_once, source_of
from dtlint_rules._functions import parameters
from dtlint_rules._known import known
from dtlint_rules._names import last_name, names_in

if TYPE_CHECKING:
    from dtlint.infer.events import Call, Flow
    from dtlint.source.place import Place

__all__ = ["device_for_type"]

_HAVE_DEVICE = frozenset({"from_pretrained", "from_single_file", "Accelerator", "Fabric"})
"""What makes something with a `device` that is a torch.device: models of transformers, pipelines of diffusers, what
accelerate and Fabric prepare models with."""


def device_for_type(call: Call) -> Finding | None:
    """What autocast is given in place of the type of a device: `torch.autocast(x.device)`, `torch.autocast(str(x.device))`."""
    node = call.argument_node(0, "device_type")
    if node is None:
        return None
    if _is_device(call, node):
        return Finding(
            node,
            f"Autocast wants the type of a device, a string, and `{ast.unparse(node)}` is a device: it raises",
            help=f"Use `{ast.unparse(node)}.type`",
            fix=partial(_typed, node, node),
        )
    return _text(call, node)


def _is_device(call: Call, node: ast.expr) -> bool:
    """Is it a device for certain: one that is made here, that of a tensor, or of what a library loads or makes? What else
    has a `device` may mean a string by it."""
    if isinstance(call.argument(0, "device_type"), Device):
        return isinstance(node, (ast.Name, ast.Attribute))
    if isinstance(node, ast.Name):
        if any(parameter.arg == node.id for parameter in parameters(call.flow.scope)):
            return False
        local = call.flow.scope if node.id in assignments(call.flow.scope) else call.flow.tree
        made = bound_once(node.id, local)
        return isinstance(made, ast.Call) and path_of(made.func) == "torch.device"
    return isinstance(node, ast.Attribute) and node.attr == "device" and _has_device(node.value, call.flow)


def _has_device(node: ast.expr, flow: Flow) -> bool:
    if isinstance(known(flow, node), Tensor):
        return True
    made = source_of(node, flow) or node
    return isinstance(made, ast.Call) and (
        last_name(made) in _HAVE_DEVICE or (last_name(made) == "next" and "parameters" in names_in(made))
    )


def _text(call: Call, node: ast.expr) -> Finding | None:
    """`torch.autocast(str(x.device))`, which is "cuda:0"."""
    written = call.constant(0, "device_type")
    if isinstance(written, str):
        kind, colon, index = written.partition(":")
        if not (colon and kind and index.isdecimal()):
            return None
        return _refused(node, f"`{written!r}` has the index of a device", f'`"{kind}"`', None)
    text = node
    if isinstance(node, ast.Name):
        values = assignments(call.flow.scope).get(node.id, ())
        made = values[0][1] if len(values) == 1 else None
        if made is None or any(parameter.arg == node.id for parameter in parameters(call.flow.scope)):
            return None
        text = made
    device = _written_out(text)
    if not isinstance(device, ast.Attribute) or device.attr != "device" or not _has_index(device.value, call.flow):
        return None
    told = f"`{ast.unparse(text)}` has the index of the device, as in `cuda:0`"
    return _refused(node, told, f"`{ast.unparse(device)}.type`", device if text is node else None)


def _refused(node: ast.expr, told: str, wanted: str, device: ast.expr | None) -> Finding:
    return Finding(
        node,
        f"{told}, and autocast wants its type: torch before 2.4 raises RuntimeError, and newer ones leave out the checks "
        "that they make for the type",
        help=f"Use {wanted}",
        severity=Severity.INFO,
        fix=None if device is None else partial(_typed, node, device),
    )


def _written_out(node: ast.expr) -> ast.expr | None:
    """The device of `str(x.device)` and `f"{x.device}"`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str":
        return node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(node, ast.JoinedStr) and len(node.values) == 1 and isinstance(node.values[0], ast.FormattedValue):
        return node.values[0].value
    return None


def _has_index(node: ast.expr, flow: Flow) -> bool:
    """Has the device of this an index for certain, on a GPU? That of a tensor has, and so has that of a module that looks it
    up in its weights; one that a program keeps has what it was told."""
    if path_of(node) != "self":
        return _has_device(node, flow)
    owner = flow.function.owner if flow.function is not None else None
    return (
        owner is not None
        and any(isinstance(part, ast.FunctionDef) and part.name == "forward" for part in owner.node.body)
        and not any(
            isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and path_of(part) == "self.device"
            for part in nodes([flow.tree])
        )
    )


def _typed(node: ast.expr, device: ast.expr, place: Place) -> Fix:
    edit = Edit(place.source.span(node), f"{ast.unparse(device)}.type")
    return Fix("Give the type of the device", (edit,), Applicability.SAFE)
