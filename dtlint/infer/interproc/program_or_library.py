"""Is a file a program that is run, or a library whose definitions others call?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["runs_something"]


def runs_something(tree: ast.Module) -> bool:
    """Is the file a program, and not only definitions for others: has it a main guard, a loop or a region, does it call
    what it has made itself, or hand over what that gives, or does it define nothing and call what it imports?"""
    made: set[str] = set()
    defines = calls = False
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made.add(statement.name)
            defines = True
        elif isinstance(statement, ast.Assign):
            made.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.For, ast.While, ast.With)):
            if any(isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) for part in ast.walk(statement)):
                return True
        elif isinstance(statement, ast.If) and "__name__" in {
            part.id for part in ast.walk(statement.test) if isinstance(part, ast.Name)
        }:
            return True
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            called = {_root(one) for one in (statement.value, *_handed_over(statement.value))}
            if not called.isdisjoint(made - {"logger"}):
                return True
            calls = True
    return calls and not defines


def _handed_over(call: ast.Call) -> Iterator[ast.Call]:
    """The calls whose results are printed, or given to a method of what was just made: `Trainer().fit(Net())`."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(owner, ast.Call) or (isinstance(call.func, ast.Name) and call.func.id == "print"):
        given = (*call.args, *(one.value for one in call.keywords))
        yield from (one for value in given for one in ast.walk(value) if isinstance(one, ast.Call))


def _root(node: ast.expr) -> str | None:
    """The name that an expression begins with: `Net` of `Net().eval()(x)`."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
