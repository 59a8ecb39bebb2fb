"""The buffers that a class registers, as far as names tell: which hold whole numbers, and which are not saved."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import bound_once
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._parts import keyword, receiver

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["is_of_constants", "is_whole"]

_WHOLE = frozenset({"int8", "uint8", "int16", "short", "int32", "int", "int64", "long", "bool"})


def is_whole(path: str, flow: Flow) -> bool:
    """Is it `self.x`, registered with an integer dtype?"""
    registered = _registered(path, flow)
    return registered is not None and registered[1]


def is_of_constants(node: ast.expr, flow: Flow) -> bool:
    """Is all that an expression is made of buffers that are not saved? They are the same whenever the module is made."""
    own = {path_of(part) for part in nodes([node]) if isinstance(part, ast.Attribute) and path_of(part.value) == "self"}
    rest = {part.id for part in nodes([node]) if isinstance(part, ast.Name)} - {"self", "torch"}
    if rest or not own:
        return False
    known = [None if path is None else _registered(path, flow) for path in own]
    return all(registered is not None and registered[0] for registered in known)


def _registered(path: str, flow: Flow) -> tuple[bool, bool] | None:
    """Of a buffer: is it left out of the state dict, and does it hold whole numbers? None for what is no buffer."""
    owner = flow.function.owner if flow.function is not None else None
    own, _, name = path.partition(".")
    return None if owner is None or own != "self" else _buffers(owner.node).get(name)


@kept
def _buffers(owner: ast.ClassDef) -> dict[str, tuple[bool, bool]]:
    found: dict[str, tuple[bool, bool]] = {}
    for method in owner.body:
        for call in facts(method).calls if isinstance(method, ast.FunctionDef) else ():
            name = call.args[0] if call.args and last_name(call) == "register_buffer" else None
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                kept_out = keyword(call, "persistent")
                apart = isinstance(kept_out, ast.Constant) and kept_out.value is False
                value = call.args[1] if len(call.args) > 1 else keyword(call, "tensor")
                if isinstance(value, ast.Name):
                    value = bound_once(value.id, method)
                found[name.value] = (apart and not _is_run(owner, name.value), _holds_whole(value))
    return found


def _holds_whole(value: ast.expr | None) -> bool:
    dtype = keyword(value, "dtype") if isinstance(value, ast.Call) else None
    return dtype is not None and last_name(dtype) in _WHOLE


def _is_run(owner: ast.ClassDef, name: str) -> bool:
    """Does `forward` change a buffer, as it does statistics that run along: `self.mean.mul_(0.9)`, `self.mean = mean`?"""
    path = f"self.{name}"
    forward = [part for part in owner.body if isinstance(part, ast.FunctionDef) and part.name == "forward"]
    return any(
        (isinstance(part, ast.Attribute) and path_of(part) == path and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.Call) and last_name(part).endswith("_") and path_of(receiver(part) or part) == path)
        for part in nodes(forward)
    )
