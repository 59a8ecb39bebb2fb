"""What a function is made of: its parameters, their defaults, and what it runs itself."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.walk import SCOPES, nodes
from dtlint_rules._kept import kept

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["body_of", "defaults", "own_nodes", "parameters"]


def parameters(scope: ast.AST) -> list[ast.arg]:
    """The parameters of a function that can be given alone, `*args` and `**kwargs` aside; none of a module."""
    arguments = getattr(scope, "args", None)
    if not isinstance(arguments, ast.arguments):
        return []
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters that have a default, each with it."""
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(positional), reversed(arguments.defaults), strict=False)
    for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield parameter, default


def body_of(scope: ast.AST) -> list[ast.AST]:
    """The statements of a function or a module, and the expression of a lambda."""
    body = getattr(scope, "body", [])
    return list(body) if isinstance(body, list) else [body]


@kept
def own_nodes(scope: ast.AST) -> tuple[ast.AST, ...]:
    """What a function runs itself: the nodes of its body, and of functions inside it only that they are there."""
    return tuple(nodes(body_of(scope), SCOPES))
