"""The statements of a piece of code, without a look into their expressions: an eighth of a walk over all nodes."""

from __future__ import annotations

import ast
from functools import lru_cache

__all__ = ["owners", "statements"]

_BLOCKS: dict[type, tuple[str, ...]] = {
    kind: blocks
    for kind in vars(ast).values()
    if isinstance(kind, type)
    and issubclass(kind, (ast.Module, ast.stmt, ast.excepthandler, ast.match_case))
    and (blocks := tuple(name for name in kind._fields if name in ("body", "handlers", "orelse", "finalbody", "cases")))
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
            stack += [part for part in parts if type(part) in _BLOCKS and type(part) not in closed]
    return found


@lru_cache(maxsize=4)
def owners(scope: ast.AST) -> dict[ast.AST, ast.AST]:
    """What each statement in a function, handlers and cases among them, is directly a part of."""
    known: dict[ast.AST, ast.AST] = {}
    stack = [scope]
    while stack:
        node = stack.pop()
        for block in _BLOCKS.get(type(node), ()):
            parts = getattr(node, block)
            known.update(dict.fromkeys(parts, node))
            stack += parts
    return known
