"""Where code may use an object by the name that a function has for it: in that function alone, in a class, in the file.

One file holds many training loops; what one does with its scaler says nothing of the others, unless they share it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint.infer.walk import nodes
from dtlint_rules._functions import own_nodes
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["binds", "class_of", "helpers", "realm_of", "stands_alone"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ROOTS = frozenset({"Module", "object", "ABC", "Generic", "Protocol"})
"""Bases that keep nothing of a program's own."""
_OF_TORCH = frozenset({"step", "zero_grad", "backward", "update", "train", "eval"})
"""What every training loop calls, and classes of the file have, too: `optimizer.step` is not the `step` of a trainer."""


def realm_of(path: str, scope: ast.AST, tree: ast.Module) -> ast.AST:
    """The function, class or module in which `path` may be the same object as it is in the function `scope`.

    Of `self.x` that is the class, where it has no relatives; of a name the function that binds it; of all others the
    module.
    """
    first, _, rest = path.partition(".")
    if rest:
        owner = class_of(scope, tree)
        return owner if first == "self" and owner is not None and stands_alone(owner, tree) else tree
    for place in (scope, *around(scope, tree)):
        if isinstance(place, _FUNCTIONS) and binds(place, first):
            return place
    return tree


def binds(place: ast.AST, name: str) -> bool:
    """Does a function bind a name, as a parameter or by a statement, or a loop, by what is in it?"""
    arguments = getattr(place, "args", None)
    if isinstance(arguments, ast.arguments):
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        if any(argument is not None and argument.arg == name for argument in every):
            return True
    bound = False
    for node in own_nodes(place) if isinstance(place, (*_FUNCTIONS, ast.Module)) else nodes([place]):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
        bound = bound or (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
    return bound


def class_of(scope: ast.AST, tree: ast.Module) -> ast.ClassDef | None:
    """The innermost class that a function stands in."""
    return next((place for place in around(scope, tree) if isinstance(place, ast.ClassDef)), None)


def stands_alone(owner: ast.ClassDef, tree: ast.Module) -> bool:
    """Has a class neither parents nor children that share its attributes?"""
    if any(last_name(base) not in _ROOTS for base in owner.bases):
        return False
    classes = (node for node in nodes([tree]) if isinstance(node, ast.ClassDef))
    return not any(last_name(base) == owner.name for each in classes for base in each.bases)


def helpers(code: Iterable[ast.AST], tree: ast.Module) -> list[ast.AST]:
    """The functions and classes of the file that a piece of code names, and those that they name in turn, methods of an
    optimizer, a scaler and a model aside."""
    defined: dict[str, list[ast.AST]] = {}
    for node in nodes([tree]):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.setdefault(node.name, []).append(node)
    found: list[ast.AST] = []
    waiting = list(code)
    while waiting:
        named = {last_name(node) for node in nodes(waiting)} - _OF_TORCH
        waiting = [function for name in sorted(named & defined.keys()) for function in defined.pop(name)]
        found += waiting
    return found
