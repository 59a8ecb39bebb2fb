"""Functions of a file that make a tensor on the device that they are handed, in the default dtype.

`position_table(n, x.device)` gives float32 whatever `x` is, like a factory that is told no dtype: nobody told it one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts, scopes
from dtlint.infer.walk import SCOPES
from dtlint_rules._effects import FACTORIES, SCALAR
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint_rules._origin import Origin, Roots

__all__ = ["DISTRIBUTIONS", "made_by", "makers_of", "sampled"]

_CLASS_METHODS = ("self", "cls")


def made_by(calls: Sequence[ast.Call], scope: ast.AST, tree: ast.Module) -> Iterator[ast.Call]:
    """Of some calls those that hand such a function the device of a tensor, `x.device`, and no dtype."""
    makers = makers_of(tree)
    for call in calls:
        maker = makers.get(last_name(call))
        base, _, name = (path_of(call.func) or "").rpartition(".")
        if maker is None or not name or base not in ("", *_CLASS_METHODS):
            continue
        on_device = any(isinstance(part, ast.Attribute) and part.attr == "device" for part in given(call))
        if on_device and gives_default(maker) and _hands_numbers(call, scope):
            yield call


def sampled(scope: ast.AST, calls: Sequence[ast.Call]) -> Iterator[ast.Call]:
    """Of some calls those that draw from a distribution of numbers in a shape: `Uniform(0.9, 1.1).rsample(x.shape)`, at
    once or where `jitter = Uniform(...).rsample` is bound."""
    drawing = {
        path: value
        for node in statements(scope, SCOPES)
        if isinstance(node, ast.Assign) and isinstance(value := node.value, ast.Attribute)
        for path in map(path_of, node.targets)
        if path is not None
    }
    for call in calls:
        path = path_of(call.func)
        method = drawing.get(path) if path is not None else call.func
        if not isinstance(method, ast.Attribute) or method.attr not in ("sample", "rsample") or not given(call):
            continue
        distribution = method.value
        if isinstance(distribution, ast.Call) and last_name(distribution) in DISTRIBUTIONS:
            origins = origins_of(scope)
            if all(_is_number(origins[part]) for part in given(distribution)):
                yield call


DISTRIBUTIONS = frozenset({"Uniform", "Normal", "Gumbel", "Laplace", "Exponential", "Beta", "LogNormal"})


def _is_number(roots: Roots) -> bool:
    """Is it a plain number, or `torch.tensor(0.9)`? What is given may be a tensor."""
    return all(root.kind == Kind.MADE and root.text in SCALAR for root in roots)


@kept
def makers_of(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """The functions that take a device and call a factory, by name; none of a name that two have."""
    found: dict[str, ast.FunctionDef] = {}
    seen: set[str] = set()
    for scope, _ in scopes(tree):
        if not isinstance(scope, ast.FunctionDef):
            continue
        if scope.name in seen:
            found.pop(scope.name, None)
            continue
        seen.add(scope.name)
        names = [parameter.arg for parameter in parameters(scope)]
        if any("device" in name for name in names) and not any("dtype" in name for name in names):
            found[scope.name] = scope
    return found


@kept
def gives_default(scope: ast.FunctionDef) -> bool:
    """Is all that a function returns made by factories that are told no dtype, of what it is given as numbers?"""
    if FACTORIES.isdisjoint(facts(scope).called):
        return False
    returned = [node.value for node in statements(scope, SCOPES) if isinstance(node, ast.Return)]
    parts = [
        part
        for value in returned
        if value is not None
        for part in (value.elts if isinstance(value, ast.Tuple) else [value])
    ]
    origins, used = origins_of(scope), _used_as_tensors(scope)
    return bool(parts) and all(_is_made(origins[part], used) and _has_factory(origins[part]) for part in parts)


@kept
def _used_as_tensors(scope: ast.AST) -> frozenset[str]:
    """The names of which a function takes an attribute or an item, or that it casts: numbers have neither."""
    return frozenset(
        node.value.id
        for node in own_nodes(scope)
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.value, ast.Name)
    )


def _is_made(roots: Roots, used: frozenset[str]) -> bool:
    """Was a tensor made by factories, with all that it was computed from, but for numbers?"""
    return all(
        (origin.kind == Kind.MADE and origin.text not in SCALAR)
        or (origin.kind == Kind.GIVEN and origin.text not in used)
        or (origin.kind == Kind.CALLED and origin.text.startswith("torch.") and _is_made(origin.of, used))
        for origin in roots
    )


def _has_factory(roots: Roots) -> bool:
    return any(part.kind == Kind.MADE for origin in roots for part in origin.closure())


def _hands_numbers(call: ast.Call, scope: ast.AST) -> bool:
    """Is all else that a call hands on a number, as far as it reads: `n`, of `n = x.shape[0]`, `self.stride`, `4`?"""
    origins = origins_of(scope)
    return all(
        origin.kind == Kind.GIVEN and (origin.text.startswith("self.") or not _is_tensor(origin, scope))
        for part in given(call)
        for origin in origins[part]
    )


def _is_tensor(origin: Origin, scope: ast.AST) -> bool:
    return origin.text in _used_as_tensors(scope)
