"""Functions and modules of a file that compute features in float32, whatever they are given: frequencies of a time step.

Their authors cast the positions and make the frequencies with `dtype=torch.float32`, for the digits; who calls them has
float32 on his hands, and sees it in no line of his own.
"""

from __future__ import annotations

import ast
from itertools import repeat
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import SCOPES
from dtlint_rules._calls import calls_of
from dtlint_rules._effects import FLOAT32, MAKING
from dtlint_rules._functions import named_functions
from dtlint_rules._kept import kept
from dtlint_rules._layers import entered
from dtlint_rules._names import last_name, names, said
from dtlint_rules._origin import NOTHING, Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given, receiver
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from dtlint_rules._origin import Origin, Roots

__all__ = ["enters_layer", "features_of", "is_kept_wide", "may_be_given_features"]

_PARTLY = frozenset({"autocast", "custom_fwd", "convert_module_to_f16", "convert_to_fp16"})
"""Names by which a file shows that the model is cast in part, or not at all: what meets time steps stays float32."""

_DEEPEST = 3


def features_of(roots: Roots, owner: ast.ClassDef, tree: ast.Module) -> str | None:
    """What gave an expression, where that computes features in float32 on every path: `self.timestep_embedding`."""
    if not roots or any(origin.kind != Kind.CALLED for origin in roots):
        return None
    if not all(_gives_features(origin.text, owner, tree, _DEEPEST) for origin in roots):
        return None
    return next(iter(roots)).text


def may_be_given_features(scope: ast.AST, tree: ast.Module) -> bool:
    """Does a function call what may give features in float32, as far as names tell? Ask it before origins are read."""
    giving = _giving(tree)
    return bool(giving) and not giving.isdisjoint(facts(scope).called)


@kept
def _giving(tree: ast.Module) -> frozenset[str]:
    """The last names of what may give features: functions of the file that make a tensor and speak of float32, functions
    that call one of these, and what is bound to a module with such a forward."""
    functions = named_functions(tree)
    found = {
        key
        for key, function in functions.items()
        if facts(function).floats and not MAKING.isdisjoint(facts(function).called)
    }
    if not found:
        return frozenset()
    called: set[str] = set()
    for _ in range(_DEEPEST):
        classes = {where for where, name in found if where and name == "forward"}
        called |= {name for _, name in found}
        if classes:
            called |= {bound for maker, bound in _made(tree) if maker in classes}
        found |= {key for key, function in functions.items() if not called.isdisjoint(facts(function).called)}
    return frozenset(called)


@kept
def _made(tree: ast.Module) -> list[tuple[str, str]]:
    """What is called, and the name or attribute that its result is bound to, for all such assignments of a file."""
    return [
        (last_name(node.value), last_name(target))
        for node in statements(tree)
        if type(node) is ast.Assign and type(node.value) is ast.Call
        for target in node.targets
    ]


def enters_layer(owner: ast.ClassDef) -> bool:
    """Does the input of a module go, as it is given, into a layer that the module makes itself?"""
    forward = next((node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "forward"), None)
    if forward is None or len(forward.args.args) < 2:
        return False
    name, layers, origins = forward.args.args[1].arg, entered(owner), origins_of(forward)
    first = [node for node in origins.of if isinstance(node, ast.Call) and path_of(node.func) in layers and node.args]
    return any(
        [(origin.kind, origin.text) for origin in origins[node.args[0]]] == [(Kind.GIVEN, name)] for node in first
    )


@kept
def is_kept_wide(tree: ast.Module, layer: str) -> bool:
    """Does a file keep a layer in float32: by its name, `_keep_in_fp32_modules = ["time_embedder"]`, by a cast of it,
    `self.time_mlp.float()`, or because it casts no model as a whole?"""
    name = layer.rpartition(".")[2]
    if not _PARTLY.isdisjoint(names(tree)) or any(map(_widens, calls_of("float", tree), repeat(name))):
        return True
    if any(map(_widens, calls_of("to", tree), repeat(name))):
        return True
    return any(
        name in said(node.value)
        for node in statements(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if "fp32" in last_name(target).lower() or "float32" in last_name(target).lower()
    )


def _widens(cast: ast.Call, name: str) -> bool:
    """`model.time_mlp.float()`, `self.time_mlp.to(torch.float32)`, `self.time_mlp(x).float()` not."""
    held = receiver(cast)
    if held is None or isinstance(held, ast.Call) or last_name(held) != name:
        return False
    return last_name(cast) == "float" or any(path_of(part) in FLOAT32 for part in given(cast))


def _gives_features(callee: str, owner: ast.ClassDef | None, tree: ast.Module, deep: int) -> bool:
    """Does what a call names compute features in float32: a function of the file, a method, a module without weights?"""
    base, _, name = callee.rpartition(".")
    known = named_functions(tree)
    if not base:
        found = known.get(("", name))
        return found is not None and _makes_features(found, None, tree, deep)
    if owner is None or base not in ("self", "cls", owner.name):
        return False
    method = known.get((owner.name, name))
    if method is not None:
        return _makes_features(method, owner, tree, deep)
    bound = (
        node for node in statements(owner) if isinstance(node, ast.Assign) and callee in map(path_of, node.targets)
    )
    made = {last_name(node.value) for node in bound}
    forward = known.get((made.pop(), "forward")) if len(made) == 1 else None
    return forward is not None and _makes_features(forward, None, tree, deep)


def _makes_features(function: ast.FunctionDef, owner: ast.ClassDef | None, tree: ast.Module, deep: int) -> bool:
    returned = [node.value for node in statements(function, SCOPES) if isinstance(node, ast.Return)]
    if not returned or deep == 0 or any(isinstance(value, (ast.Tuple, ast.List)) for value in returned):
        return False
    origins = origins_of(function)
    parts = [origins[value] if value is not None else NOTHING for value in returned]
    if not all(parts):
        return False
    handed_on = [origin for roots in parts for origin in roots if not _is_float32(origin)]
    if handed_on:
        return all(
            origin.kind == Kind.CALLED and _gives_features(origin.text, owner, tree, deep - 1) for origin in handed_on
        )
    return not MAKING.isdisjoint(facts(function).called)


def _is_float32(origin: Origin) -> bool:
    return origin.kind == Kind.CAST and origin.text in FLOAT32
