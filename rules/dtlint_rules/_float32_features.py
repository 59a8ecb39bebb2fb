"""What a module computes in float32 and gives to a layer with weights uncast: positions, masks and frequencies of time
steps, made where they are given, by a function of the file, or by a module without weights."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Module
from dtlint.infer.walk import nodes
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import MAKING, WIDE
from dtlint_rules._features import enters_layer, features_of, is_kept_wide, may_be_given_features
from dtlint_rules._flags import cast_flags, casts_flags
from dtlint_rules._half import half_at
from dtlint_rules._kept import kept
from dtlint_rules._layers import LAYERS
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._origins import origins_of
from dtlint_rules._statements import statements
from dtlint_rules._texts import short
from dtlint_rules._widths import cast_to_float32, may_be_cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call
    from dtlint.infer.values import Value
    from dtlint_rules._calls import Input
    from dtlint_rules._origins import Origins

__all__ = [
    "RAISING",
    "calls_weightless",
    "may_be_features",
    "may_be_made_wide",
    "of_features",
    "of_made",
    "of_weightless",
    "weightless_of",
]

_FLOAT32 = frozenset({"float32"})
RAISING = frozenset(f"torch.nn.{name}" for name in (*LAYERS, "GRU", "LSTM", "RNN"))
"""Layers that raise where input and weight differ in dtype."""
_WEIGHTLESS = re.compile(r"^Timesteps$|FourierProj|SinusoidalTime|SinusoidalPosEmb$|TimestepProjection$", re.MULTILINE)
"""Names of modules without weights that compute in float32: frequencies of a time step, of a position."""


def may_be_made_wide(scope: ast.AST, given: Value) -> bool:
    """May an input be float32 because the function makes it so? Ask it before origins are read."""
    makes = not MAKING.isdisjoint(facts(scope).called) or casts_flags(scope)
    return makes and may_be_cast(scope, given)


def of_made(call: Call, given: Value) -> Iterator[Finding]:
    """What a function makes in float32 goes into a layer of its own module."""
    flow, node = call.flow, call.node.args[0]
    layer = path_of(call.node.func) or ""
    if layer.partition(".")[0] != "self":
        return
    cast = cast_to_float32(given, origins_of(flow.scope)[node])
    if cast is not None and last_name(cast) not in MAKING:
        cast = _counted(node, flow.scope) or cast
    if cast is None or (last_name(cast) not in MAKING and cast_flags(node, flow.scope) is None):
        return  # who writes `self.head(x.float())` keeps the layer in float32, but for what has no digits to keep
    if half_at(flow, dtype=None) is None:
        return
    yield Finding(
        node,
        f"`{layer}` raises if its weights are half: `{short(node)}` is float32",
        help=f"Cast the input: `.to({layer}.weight.dtype)`",
        notes=((cast, "float32 since here"),) if cast.lineno != node.lineno else (),
        conditional=True,
    )


_ORDERED = frozenset({"arange", "linspace"})
"""Functions that give numbers in order: positions and frequencies are made of these."""


def _counted(node: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The numbers in order that an expression is computed from, by what its names are assigned; no mask or index made of
    some."""
    queue, asked = [node], set[str]()
    while queue:
        part = queue.pop()
        if isinstance(part, ast.Call) and last_name(part) in _ORDERED:
            return part
        if isinstance(part, ast.Name) and part.id not in asked:
            asked.add(part.id)
            queue += [value for _, value in assignments(scope).get(part.id, ()) if value is not None]
        elif isinstance(part, ast.Subscript):
            queue.append(part.value)
        elif not isinstance(part, ast.Compare):
            queue += [each for each in ast.iter_child_nodes(part) if isinstance(each, ast.expr)]
    return None


def may_be_features(layer: Module, scope: ast.AST, tree: ast.Module) -> bool:
    """May a module that begins with weights be given features in float32, as far as names tell? Ask it before origins are
    read."""
    return may_be_given_features(scope, tree) and _begins_with_weights(layer)


def _begins_with_weights(layer: Module) -> bool:
    """Does the input of a module meet weights first: of a layer, of a Sequential or a module of the file that begins with one?"""
    if layer.name == "torch.nn.Sequential":
        first = layer.items[0] if layer.items else None
        return isinstance(first, Module) and first.name in RAISING and first.dtypes != _FLOAT32
    return layer.name in RAISING or (layer.info is not None and enters_layer(layer.info.node))


def of_features(call: Call) -> Iterator[Finding]:
    """`self.mlp(self.timestep_embedding(t, 256))`, of a function of the file that gives float32 whatever `t` is."""
    flow, node, layer = call.flow, call.node.args[0], path_of(call.node.func) or ""
    owner = flow.function.owner if flow.function is not None else None
    if owner is None or not layer.startswith("self.") or getattr(flow.scope, "name", "") == "__init__":
        return
    features = features_of(origins_of(flow.scope)[node], owner.node, flow.tree)
    if features is None or _knows_its_dtype(owner.node) or layer in _made_wide(owner.node):
        return
    if is_kept_wide(flow.tree, layer) or half_at(flow, dtype=None) is None:
        return
    yield Finding(
        node,
        f"`{layer}` raises if its weights are half: `{features}` always gives float32",
        help="Cast it to the dtype of the weights or hidden states: `.to(x.dtype)`",
        conditional=True,
    )


@kept
def _knows_its_dtype(owner: ast.ClassDef) -> bool:
    """Does a class keep the dtype that it computes in, `self.dtype = dtype`, and cast to it what it wants to?"""
    targets = (target for node in statements(owner) if isinstance(node, ast.Assign) for target in node.targets)
    return "self.dtype" in map(path_of, targets)


@kept
def _made_wide(owner: ast.ClassDef) -> frozenset[str | None]:
    """What a class makes in float32 or float64, by a dtype that is written out: `nn.Linear(8, 8, dtype=torch.float32)`."""
    return frozenset(
        path_of(target)
        for node in statements(owner)
        if isinstance(node, ast.Assign)
        if any(isinstance(part, ast.keyword) and path_of(part.value) in WIDE for part in nodes([node.value]))
        for target in node.targets
    )


def calls_weightless(called: Iterable[str]) -> bool:
    """Is the class of a module without weights among all that a file calls?"""
    return _WEIGHTLESS.search("\n".join(called)) is not None


def weightless_of(owner: ast.ClassDef, tree: ast.Module) -> dict[str, str]:
    """The attributes of a module that hold features without weights, with their classes; inference knows those of the file."""
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return {
        path: name
        for node in reversed(statements(owner))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if _WEIGHTLESS.search(name := last_name(node.value)) and name not in defined
        for path in map(path_of, node.targets)
        if path is not None and path.startswith("self.")
    }


def of_weightless(inputs: list[Input], origins: Origins, weightless: dict[str, str]) -> Iterator[Finding]:
    """What a module without weights gives to one with weights; told once for each function."""
    for given in inputs:
        roots = in_order(origins[given.node])
        for root in roots if all(root.kind in (Kind.CALLED, Kind.GIVEN) for root in roots) else ():
            if root.text not in weightless or given.callee in weightless:
                continue
            if not given.callee.startswith("self.") and "block" not in given.callee:
                continue
            yield Finding(
                root.node,
                f"`{given.callee}` raises if its weights are half: `{weightless[root.text]}` gives float32",
                help="Cast it to the dtype of the model: `.to(sample.dtype)`",
                notes=((given.node, f"it goes into `{given.callee}` here"),),
                conditional=True,
            )
            return
