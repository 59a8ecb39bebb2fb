"""What the rest of a file tells of a tensor that a function is handed, or finds in an attribute: that it is float32.

A private function is called by its own file alone, and a plain attribute is not cast with a module.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import scopes
from dtlint_rules._effects import FACTORIES, TORCH, WIDE
from dtlint_rules._functions import parameters
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import keyword
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow

_CASTING = frozenset({"to", "type", "type_as", "half", "bfloat16"})

__all__ = ["is_handed_wide", "is_made_wide"]


def is_handed_wide(name: str, flow: Flow) -> bool:
    """Is a parameter of a private function float32, by a cast or a factory, wherever the file calls the function?"""
    function = flow.function.node if flow.function is not None else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or not function.name.startswith("_"):
        return False
    names = [parameter.arg for parameter in parameters(function)]
    if name not in names or function.name.endswith("__"):
        return False
    handed = [
        (scope, _handed(call, names, name))
        for scope, own in scopes(flow.tree)
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and scope is not function
        for call in own.calls
        if last_name(call) == function.name
    ]
    return bool(handed) and all(argument is not None and _is_wide(argument, scope) for scope, argument in handed)


def _is_wide(argument: ast.expr, scope: ast.AST) -> bool:
    """Is an argument made of what was cast to float32, `transpose(weight.float(), self.transposed)`, or of nothing but what
    a factory made that was told no dtype?"""
    roots = origins_of(scope)[argument]
    if any(origin.kind == Kind.CAST and origin.text in WIDE for origin in roots):
        return True
    return bool(roots) and all(origin.kind == Kind.MADE for origin in roots)


def _handed(call: ast.Call, names: list[str], name: str) -> ast.expr | None:
    """What a call hands on as a parameter; None where that cannot be told."""
    position = names.index(name) - (names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute))
    if 0 <= position < len(call.args) and not any(isinstance(argument, ast.Starred) for argument in call.args):
        return call.args[position]
    return keyword(call, name)


def is_made_wide(path: str, flow: Flow) -> bool:
    """Does the class make a plain attribute, `self.scores`, by a factory of torch that is told no dtype?"""
    owner = flow.function.owner if flow.function is not None else None
    return owner is not None and path in _made(owner.node)


@kept
def _made(owner: ast.AST) -> frozenset[str]:
    """The attributes that methods of a class assign such a tensor. What is registered, or made a parameter, is none."""
    return frozenset(_assigned(owner))


def _assigned(owner: ast.AST) -> Iterator[str]:
    for node in statements(owner):
        made = node.value if isinstance(node, ast.Assign) else None
        while (
            isinstance(made, ast.Call)
            and isinstance(made.func, ast.Attribute)
            and isinstance(made.func.value, ast.Call)
            and made.func.attr not in _CASTING
        ):
            made = made.func.value  # `torch.tensor([0.0]).repeat(n)`
        if not isinstance(node, ast.Assign) or not isinstance(made, ast.Call):
            continue
        told = any(part.arg in ("dtype", "out", None) and path_of(part.value) not in WIDE for part in made.keywords)
        of_torch = isinstance(made.func, ast.Attribute) and path_of(made.func.value) in TORCH
        if of_torch and last_name(made) in FACTORIES and not told:
            yield from filter(None, map(path_of, node.targets))
