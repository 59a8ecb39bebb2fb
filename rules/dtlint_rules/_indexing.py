"""Where a function indexes by a name, or by what it takes of it: `x[perm]`, `x[..., ~mask]`, `for row in masks: x[row]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint_rules._assignments import assignments
from dtlint_rules._functions import own_nodes
from dtlint_rules._kept import kept
from dtlint_rules._parts import below

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["indexed_by"]

_SHAPING = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "expand", "repeat", "clone"})


def indexed_by(name: str, scope: ast.AST) -> ast.Subscript | None:
    """The first subscript by that name, or by a part of it under another name; None where there is none, or where the
    name is bound more than once: to a cast of itself, say."""
    if len(assignments(scope).get(name, ())) != 1:
        return None
    known = {name}
    taken = _taken(scope)
    while more := {target for target, source in taken if source in known} - known:
        known |= more
    return next((subscript for index, subscript in _indices(scope) if index in known), None)


@kept
def _taken(scope: ast.AST) -> tuple[tuple[str, str], ...]:
    """The names that a function binds to a part of what another name is, each with that."""
    return tuple(
        (target.id, source.id)
        for target, value in _bound(scope)
        if isinstance(target, ast.Name) and isinstance(source := _whole(value), ast.Name)
    )


def _bound(scope: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in own_nodes(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield node.targets[0], node.value
        elif isinstance(node, (ast.For, ast.comprehension)):
            yield node.target, node.iter


def _whole(node: ast.expr) -> ast.expr:
    """What a subscript, or a method that changes no more than the shape, is of."""
    while isinstance(node, ast.Subscript) or below(node, _SHAPING) is not node:
        node = node.value if isinstance(node, ast.Subscript) else below(node, _SHAPING)
    return node


@kept
def _indices(scope: ast.AST) -> tuple[tuple[str, ast.Subscript], ...]:
    """The names that stand alone in a subscript, or turned around by `~`, as they follow in the source."""
    found = []
    for node in own_nodes(scope):
        if not isinstance(node, ast.Subscript):
            continue
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,):
            index = part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert) else part
            if isinstance(index, ast.Name):
                found.append((index.id, node))
    return tuple(sorted(found, key=lambda pair: (pair[1].lineno, pair[1].col_offset)))
