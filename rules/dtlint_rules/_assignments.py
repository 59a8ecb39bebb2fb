"""What the names of a function are assigned: each time, the last time above a place, or the only time."""

from __future__ import annotations

import ast
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dtlint.infer.survey import facts
from dtlint.infer.walk import SCOPES, nodes
from dtlint_rules._functions import own_nodes
from dtlint_rules._kept import kept
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Flow

__all__ = ["assignments", "bindings", "bound_once", "source_above", "source_of"]


@kept
def assignments(scope: ast.AST) -> dict[str, list[tuple[int, ast.expr | None]]]:
    """For each name that a function assigns, the lines and what was assigned there; None where that is taken apart."""
    found: dict[str, list[tuple[int, ast.expr | None]]] = {}
    for node in _binding(scope):
        kind = type(node)
        if kind is ast.Assign:
            targets, value = node.targets, node.value
        elif kind in _OF_ONE_VALUE:
            targets, value = [node.target], node.value
        elif kind in _TAKING_APART:
            targets, value = [node.target], None
        else:
            continue
        for target in targets:
            if type(target) is ast.Name:
                found.setdefault(target.id, []).append((node.lineno, value))
            elif type(target) in _HOLDING:
                if value is not None and _is_side_by_side(target, value):
                    for name, each in zip(target.elts, value.elts, strict=True):
                        found.setdefault(name.id, []).append((node.lineno, each))
                    continue
                for name in nodes([target]):
                    if type(name) is ast.Name and type(name.ctx) is ast.Store:
                        found.setdefault(name.id, []).append((node.lineno, None))
    for lines in found.values():
        if len(lines) > 1:
            lines.sort(key=_line)
    return found


_OF_ONE_VALUE = frozenset({ast.AnnAssign, ast.NamedExpr})
_TAKING_APART = frozenset({ast.AugAssign, ast.For, ast.AsyncFor})
_HOLDING = frozenset({ast.Tuple, ast.List, ast.Starred})
"""The targets that names can stand in."""
_line = itemgetter(0)


def _is_side_by_side(target: Any, value: Any) -> bool:
    """`mean, std = x.mean(), x.std()`: names, and something computed for each. `a, b = b, a` tells nothing of either."""
    return (
        type(target) is ast.Tuple
        and type(value) is ast.Tuple
        and len(target.elts) == len(value.elts)
        and all(type(name) is ast.Name for name in target.elts)
        and all(type(each) is ast.Call for each in value.elts)
    )


def _binding(scope: ast.AST) -> Iterable[Any]:
    """What may assign a name: the statements, and where there is a `:=` all nodes. From the last on, so that of two on one
    line the first has the last word."""
    if facts(scope).has_walrus:
        return own_nodes(scope)
    return reversed(statements(scope, SCOPES))


def bindings(statement: ast.AST) -> list[tuple[str, ast.expr]]:
    """The names that an assignment binds as a whole, each with its value; none of another statement."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or statement.value is None:
        return []
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return [(target.id, statement.value) for target in targets if isinstance(target, ast.Name)]


def source_of(node: ast.expr | None, flow: Flow) -> ast.expr | None:
    """What a name was last assigned above it in the running function: by line, so that a branch's assignment counts."""
    if not isinstance(node, ast.Name):
        return None
    here = flow.statement.lineno if flow.statement is not None else node.lineno
    above = [value for line, value in assignments(flow.scope).get(node.id, ()) if line < here]
    return above[-1] if above else None


def source_above(node: ast.expr, line: int, flow: Flow) -> ast.expr | None:
    """What a name was last assigned above a line: `x = x.clamp(min=0)` is not what it clamps."""
    lines = assignments(flow.scope).get(node.id, ()) if isinstance(node, ast.Name) else ()
    return next((value for at, value in reversed(lines) if at < line), None)


def bound_once(name: str, scope: ast.AST) -> ast.expr | None:
    """What a name is assigned, where the function assigns it one thing; None where it is more, or nothing."""
    values = [value for _, value in assignments(scope).get(name, ()) if value is not None]
    return values[0] if len(values) == 1 else None
