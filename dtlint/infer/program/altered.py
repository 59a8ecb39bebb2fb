"""Layers that a file alters after they were made, or replaces in a subclass: what they give is not what their class says.

By names alone, wherever they stand: `self.steps.append(...)`, `model.steps[0] = ...`, `layer.register_forward_hook(...)`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["AlteredLayers", "altered_layers"]

_ALTERING = frozenset(
    {
        "append",
        "extend",
        "insert",
        "add_module",
        "register_module",
        "register_forward_hook",
        "register_forward_pre_hook",
    }
    | {"pop", "__setitem__", "__setattr__", "set_submodule"}
)
"""Methods of modules and of their containers after which they compute something else."""


class AlteredLayers:
    """The names of such layers: of all classes, and of each class by those that derive from it."""

    def __init__(self, anywhere: frozenset[str], below: dict[str, set[str]]) -> None:
        self.anywhere, self.below = anywhere, below

    def has(self, owner: str, name: str) -> bool:
        """Is the layer of that name, as the methods of a class find it, perhaps another than its class makes?"""
        return name in self.anywhere or name in self.below.get(owner, ())


def altered_layers(tree: ast.Module) -> AlteredLayers:
    """What a file alters."""
    anywhere: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ALTERING:
            anywhere.add(_last(node.func.value))
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            anywhere.add(_last(node.value))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and path_of(node.value) != "self":
            anywhere.add(_last(node.value) if node.attr == "forward" else node.attr)  # `model.head = ...`
    return AlteredLayers(frozenset(anywhere - {""}), _below(tree))


def _below(tree: ast.Module) -> dict[str, set[str]]:
    """For each class the attributes that classes of the file set or define which derive from it."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    bases = {node.name: [_last(base) for base in node.bases] for node in classes}
    below: defaultdict[str, set[str]] = defaultdict(set)
    for node in classes:
        own = set(_set_by(node))
        for base in _ancestors(node.name, bases):
            below[base] |= own
    return below


def _ancestors(name: str, bases: dict[str, list[str]]) -> set[str]:
    found: set[str] = set()
    ahead = list(bases.get(name, ()))
    while ahead:
        base = ahead.pop()
        if base not in found:
            found.add(base)
            ahead += bases.get(base, ())
    return found


def _set_by(node: ast.ClassDef) -> Iterator[str]:
    """The names that a class binds in its body, and those that its methods set."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
            yield part.attr
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.FunctionDef):
            yield part.name


def _last(node: ast.expr) -> str:
    return (path_of(node) or "").rpartition(".")[2]
