"""Reaching definitions, by syntax: the expressions that a name may stand for where it is read."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Span
from dtlint.infer.surroundings import FUNCTIONS
from dtlint.infer.walk import nodes, parts
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from dtlint.infer.claims.account import Account
    from dtlint.source.file import Source

__all__ = ["Bindings", "Target", "assigned", "bound_in", "targets"]

Target = tuple[Span, str, Span]
"""Where the target of an assignment is, its text, and where the value is."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_BINDING = (ast.Assign, ast.AnnAssign, ast.NamedExpr)


class Bindings:
    """What the names of a file are bound to, scope by scope."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[ast.Name, ast.AST] = {}
        self._bound: dict[tuple[ast.AST, str], list[tuple[ast.expr, ast.expr]]] = {}
        self._outer: dict[ast.AST, ast.AST] = {}
        scopes: list[ast.AST] = [tree]
        for scope in scopes:
            waiting = list(parts(scope))
            while waiting:
                node = waiting.pop()
                if isinstance(node, ast.Name):
                    self._scopes[node] = scope
                elif isinstance(node, _BINDING):
                    for target, value in bound_in(node):
                        if isinstance(target, ast.Name):
                            self._bound.setdefault((scope, target.id), []).append((target, value))
                if isinstance(node, FUNCTIONS):
                    self._outer[node] = scope
                    scopes.append(node)
                else:
                    waiting += parts(node)

    def reaching(self, name: ast.Name) -> list[ast.expr]:
        """What a name was bound to in its function, the nearest above first, then what is below; else in those around."""
        scope: ast.AST | None = self._scopes.get(name)
        while scope is not None:
            found = self._bound.get((scope, name.id), [])
            if found:
                above = [one for one in found if _place(one[1]) < _place(name)]
                below = [one for one in found if _place(one[1]) >= _place(name)]
                ordered = sorted(above, key=lambda one: _place(one[0]), reverse=True) + below
                return [value for _, value in ordered if value is not name]
            scope = self._outer.get(scope)
        return []

    def parameter(self, name: ast.Name) -> tuple[_Function, ast.arg] | None:
        """The function of which a name is a parameter, and that."""
        scope = self._scopes.get(name)
        if not isinstance(scope, _Function):
            return None
        return next(((scope, one) for one in named_parameters(scope) if one.arg == name.id), None)


def bound_in(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with the expression that is assigned to it, those of `a, b = x, y` one by one."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _paired(target, node.value)
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value


def targets(tree: ast.Module, source: Source) -> list[Target]:
    """The assignments of a file: where each target is, its text, and where the value is."""
    return [
        (source.span(target), ast.unparse(target), source.span(value))
        for node in nodes([tree])
        if isinstance(node, _BINDING)
        for target, value in bound_in(node)
    ]


def assigned(account: Account, path: Path, bound: Iterable[Target], line: int, column: int) -> tuple[str, int | None]:
    """The target of an assignment at a place of a file, and the number of the tensor expression that is assigned to it;
    line from 1, column from 0.

    Args:
        bound: the assignments of the file.
    """
    here = Span(line, column, line, column)
    for where, name, value in bound:
        if where.contains(here):
            found = account.exactly(path, value)
            if found is not None:
                return name, found
    return "", None


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target, value
    elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        for one, given in zip(target.elts, value.elts, strict=True):
            yield from _paired(one, given)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset
