"""Probabilities that a function of the file returns, for whoever takes their logarithm elsewhere: `_, p = net.act(x)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import SCOPES
from dtlint_rules._assignments import bound_once
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["returned_softmax"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CHOOSING = frozenset({"gather", "squeeze", "unsqueeze", "view", "reshape", "permute", "transpose", "index_select"})
"""Methods that take numbers out of a softmax, or put them in another shape."""
_ELSEWHERE = ("np.", "numpy.", "scipy.", "jnp.", "jax.", "tf.")
_COMMON = frozenset({"forward", "__call__", "predict"})
"""Methods that everything has, under one name."""


def returned_softmax(node: ast.expr, flow: Flow) -> ast.Call | None:
    """The softmax behind a name that was bound, last above the running statement, to what a function of the file returns."""
    if not isinstance(node, ast.Name):
        return None  # the probability of one action, `p[action]`, is not 0: it has been drawn
    last: ast.Assign | None = None
    for statement in statements(flow.scope, SCOPES):
        if isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)) and _binds(statement.target, node.id):
            return None
        if isinstance(statement, ast.Assign) and any(_binds(target, node.id) for target in statement.targets):
            if last is not None:
                return None  # bound twice: who knows which is meant
            last = statement
    if last is None or last.lineno >= flow.statement.lineno or not isinstance(last.value, ast.Call):
        return None
    function = _defined(flow.tree).get(last_name(last.value))
    return None if function is None else _given(function, last.targets[0], node.id)


def _binds(target: ast.expr, name: str) -> bool:
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


@kept
def _defined(tree: ast.Module) -> dict[str, ast.FunctionDef | None]:
    """The functions and methods of a file that have their name alone."""
    found: dict[str, ast.FunctionDef | None] = {}
    for part in statements(tree):
        if isinstance(part, _FUNCTIONS) and part.name not in _COMMON:
            only = part.name not in found and isinstance(part, ast.FunctionDef) and not part.decorator_list
            found[part.name] = part if only and isinstance(part, ast.FunctionDef) else None
    return found


def _given(function: ast.FunctionDef, target: ast.expr, name: str) -> ast.Call | None:
    """The softmax that is what the target gets, whichever way the function is left."""
    found: ast.Call | None = None
    for part in statements(function, SCOPES):
        if not isinstance(part, ast.Return):
            continue
        value = part.value
        if isinstance(target, ast.Tuple):
            if not isinstance(value, ast.Tuple) or len(value.elts) != len(target.elts):
                return None
            position = next(place for place, each in enumerate(target.elts) if _binds(each, name))
            value = value.elts[position]
        found = None if value is None else _softmax(value, function)
        if found is None:
            return None
    return found


def _softmax(node: ast.expr, function: ast.FunctionDef) -> ast.Call | None:
    for _ in range(8):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Name):
            made = bound_once(node.id, function)
            if made is None:
                return None
            node = made
        elif isinstance(node, ast.Call) and last_name(node) in _CHOOSING and receiver(node) is not None:
            node = receiver(node) or node
        else:
            break
    if not isinstance(node, ast.Call) or last_name(node) != "softmax":
        return None
    return None if (path_of(node.func) or "").startswith(_ELSEWHERE) else node
