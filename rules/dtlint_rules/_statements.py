"""The statements of a piece of code, without a look into their expressions: an eighth of a walk over all nodes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["around", "block_of", "blocks", "statements"]

_BLOCKS: dict[type, tuple[str, ...]] = {
    kind: fields
    for kind in vars(ast).values()
    if isinstance(kind, type)
    and issubclass(kind, (ast.Module, ast.stmt, ast.excepthandler, ast.match_case))
    and (fields := tuple(name for name in kind._fields if name in ("body", "handlers", "orelse", "finalbody", "cases")))
}
"""The fields of each kind of node that hold statements, or handlers and cases that do."""


def statements(root: ast.AST, closed: tuple[type[ast.AST], ...] = ()) -> list[ast.AST]:
    """Every statement in a module, a class, a function or a branch, those of inner functions and classes too; handlers
    and cases are among them. What is `closed` comes, and nothing from inside it."""
    found: list[ast.AST] = []
    stack = [root]
    while stack:
        node = stack.pop()
        for block in _BLOCKS.get(type(node), ()):
            parts = getattr(node, block)
            found += parts
            for part in parts:  # a comprehension would be a function, made and called for each block
                if type(part) in _BLOCKS and type(part) not in closed:
                    stack.append(part)
    return found


def blocks(node: ast.AST | None) -> Iterator[Sequence[ast.stmt]]:
    """The blocks of a statement itself, without those of its handlers and cases."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):  # the body of a lambda, the branches of `a if b else c` are expressions
            yield block


def block_of(statement: ast.AST, parent: ast.AST | None) -> Sequence[ast.stmt]:
    """The block of its parent that a statement stands in; empty where it stands in none."""
    return next((block for block in blocks(parent) if statement in block), [])


def around(statement: ast.AST, root: ast.AST) -> list[ast.AST]:
    """What a statement in a module or function stands in, innermost first and the root last; handlers and cases are among
    them. It is looked for by its line, from the root down. Empty for what is no statement in there."""
    found = _way(root, statement, getattr(statement, "lineno", 0))
    found.reverse()
    return found


def _way(outer: ast.AST, statement: ast.AST, line: int) -> list[ast.AST]:
    for block in _BLOCKS.get(type(outer), ()):
        for part in getattr(outer, block):
            if part is statement:
                return [outer]
            if type(part) in _BLOCKS and _spans(part, line) and (inner := _way(part, statement, line)):
                return [outer, *inner]
    return []


def _spans(node: Any, line: int) -> bool:
    return isinstance(node, ast.match_case) or node.lineno <= line <= node.end_lineno
