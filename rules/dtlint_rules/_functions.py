"""What a function is made of: its parameters, their defaults, and what it runs itself; and where a file has which."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.walk import SCOPES, nodes
from dtlint_rules._kept import kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["body_of", "defaults", "named_functions", "own_nodes", "parameters"]


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


@kept
def named_functions(tree: ast.Module) -> Mapping[tuple[str, str], ast.FunctionDef]:
    """The functions of a file by their names, and those of its classes by both names; none that is defined twice."""
    found: dict[tuple[str, str], ast.FunctionDef] = {}
    twice: set[tuple[str, str]] = set()
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for where, body in [("", tree.body), *((owner.name, owner.body) for owner in classes)]:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                key = (where, node.name)
                twice |= {key} & found.keys()
                found[key] = node
    return {key: node for key, node in found.items() if key not in twice}
