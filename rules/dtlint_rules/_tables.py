"""A table kept on `self` that is moved to the device of a tensor, and keeps its dtype: `self.kernel.to(x.device)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor, Trait
from dtlint.rule import Finding
from dtlint_rules._meanings import counts, is_device
from dtlint_rules._names import last_name
from dtlint_rules._parts import below, receiver
from dtlint_rules._sinks import RAISING
from dtlint_rules._widths import meets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call
    from dtlint_rules._origins import Origins

__all__ = ["factors", "is_moved", "of_tables"]

_FORMS = frozenset({"expand", "expand_as", "repeat", "unsqueeze", "squeeze", "view", "reshape", "clone", "contiguous"})
"""Methods that give a table in another form."""
_PRODUCTS = RAISING - {"einsum"}


def is_moved(call: Call) -> bool:
    """Is it `self.table.to(x.device)`, of what is no weight of a module?"""
    if len(call.node.args) + len(call.node.keywords) != 1:
        return False
    path = _table_of(call.node)
    if path is None or not path.startswith("self.") or path.count(".") > 1:
        return False  # a part of a model is cast with it
    if isinstance(call.receiver, Tensor) and call.receiver.traits & (Trait.PARAMETER | Trait.BUFFER):
        return False
    device = call.argument_node(0, "device")
    return (
        isinstance(device, ast.Attribute)
        and device.attr == "device"
        and path_of(device) != "self.device"
        and is_device(device)
    )


def _table_of(moved: ast.Call) -> str | None:
    """What is moved: `self.kernel` of `self.kernel.expand(c, 1, -1, -1).to(x.device)`."""
    held = receiver(moved)
    return None if held is None else path_of(below(held, _FORMS))


def factors(node: ast.AST) -> list[ast.expr]:
    """The two operands of a product that does not promote: `F.conv2d(x, kernel)`."""
    if isinstance(node, ast.BinOp):
        return [node.left, node.right] if isinstance(node.op, ast.MatMult) else []
    return node.args[:2] if isinstance(node, ast.Call) and last_name(node) in _PRODUCTS and len(node.args) > 1 else []


def of_tables(
    operands: list[ast.expr], origins: Origins, moved: Iterable[ast.Call], *, raises: bool = False
) -> Iterator[Finding]:
    """Of what was moved to the device of a tensor and meets it: in a product, which raises, by whatever name."""
    for call in moved:
        device = call.args[0] if call.args else call.keywords[0].value
        assert isinstance(device, ast.Attribute)
        table, tensor = _table_of(call), path_of(device.value)
        if tensor is None or table is None:
            continue
        with_table = [node for node in operands if {root.text for root in origins[node]} == {table}]
        of_tensor = origins[device.value] if raises else frozenset()
        with_tensor = [node for node in operands if meets(origins[node], tensor) or of_tensor & origins[node]]
        if with_table and with_tensor and not any(counts(root) for node in with_tensor for root in origins[node]):
            yield Finding(
                call,
                f"`{table}` is moved to the device of `{tensor}` but keeps its dtype: a half `{tensor}` is promoted or raises",
                help=f"Cast it with the move: `.to(device={tensor}.device, dtype={tensor}.dtype)`",
                notes=((with_table[0], "they meet here"),),
                conditional=True,
            )
