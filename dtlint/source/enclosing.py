"""Which functions and classes hold a place, found without walking the tree for each place anew.

A generated file may have thousands of findings in one scope, or one in each of thousands of scopes.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Enclosing", "FunctionNode", "Scope"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Scope = FunctionNode | ast.ClassDef


class Enclosing:
    """The scopes of a module, by where their bodies stand."""

    def __init__(self, tree: ast.Module) -> None:
        found = [(*_body(node), node) for node in _scopes(tree)]
        found.sort(key=lambda entry: entry[0])
        self._starts = [start for start, _, _ in found]
        self._ends = [end for _, end, _ in found]
        self._scopes = [scope for _, _, scope in found]
        self._outer: list[int] = []
        """The number of the scope around each; -1 for the module."""
        open_: list[int] = []
        for number, (start, _, _) in enumerate(found):
            while open_ and self._ends[open_[-1]] <= start:
                open_.pop()
            self._outer.append(open_[-1] if open_ else -1)
            open_.append(number)

    def of(self, at: ast.AST) -> list[Scope]:
        """The scopes whose bodies hold the node, the outermost first. Decorators and defaults stand outside."""
        place: tuple[int, int] = (at.lineno, at.col_offset)  # type: ignore[attr-defined]
        number = bisect_right(self._starts, place) - 1
        scopes = []
        while number >= 0:
            if place < self._ends[number]:
                scopes.append(self._scopes[number])
            number = self._outer[number]
        return scopes[::-1]


def _scopes(tree: ast.Module) -> Iterator[Scope]:
    """All functions and classes, in no certain order: in half the time of `ast.walk`."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Scope):
            yield node
        for name in node._fields:
            part = getattr(node, name, None)
            if type(part) is list:
                waiting += [each for each in part if isinstance(each, ast.AST)]
            elif isinstance(part, ast.AST) and part._fields:
                waiting.append(part)


def _body(scope: Scope) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where the body of a scope begins and ends."""
    first = scope.body[0] if isinstance(scope.body, list) else scope.body
    end_line, end_column = scope.end_lineno, scope.end_col_offset
    assert end_line is not None and end_column is not None, "parsed code has places"
    return (first.lineno, first.col_offset), (end_line, end_column)
