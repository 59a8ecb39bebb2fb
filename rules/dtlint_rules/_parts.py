"""The parts of an expression: what a chain begins with, what a method is called on, what a call is given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["below", "bound_to", "given", "keyword", "receiver", "root_of", "same", "subject_of"]


def root_of(node: ast.expr) -> ast.expr:
    """What a chain of methods and subscripts begins with: `mask` of `mask[:, None].float()`, `x.y` of `x.y.float()`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node


def subject_of(node: ast.expr) -> ast.expr:
    """What a chain of methods, subscripts and attributes begins with: `x` of `x.data[0].float()`."""
    while isinstance(node := root_of(node), ast.Attribute):
        node = node.value
    return node


def below(node: ast.expr, methods: Collection[str]) -> ast.expr:
    """What a chain of these methods is called on: `x` of `x.detach().cpu()`, where both are among them."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
        node = node.func.value
    return node


def receiver(node: ast.expr) -> ast.expr | None:
    """What a method is called on; None where no method is called."""
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def bound_to(node: ast.Call, statement: ast.stmt) -> list[ast.expr]:
    """The targets that a statement binds to the result of a call, as it is: none where the call is only a part of it."""
    if isinstance(statement, ast.Assign):
        return statement.targets if statement.value is node else []
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return [statement.target] if statement.value is node else []
    return []


def given(node: ast.Call) -> list[ast.expr]:
    """All that a call is given, by position and by name."""
    return [*node.args, *(part.value for part in node.keywords)]


def keyword(node: ast.Call, name: str) -> ast.expr | None:
    """What a call is given by that name."""
    return next((part.value for part in node.keywords if part.arg == name), None)


def same(left: ast.AST, right: ast.AST) -> bool:
    """Do two expressions read alike?"""
    return ast.dump(left) == ast.dump(right)
