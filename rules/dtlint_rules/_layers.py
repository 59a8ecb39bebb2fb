"""The layers with weights that a module makes itself: what goes into one has to be of the dtype of its weights."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import SCOPES
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name, said
from dtlint_rules._origin import NOTHING, Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dtlint.infer.events import Flow
    from dtlint_rules._origins import Origins

__all__ = ["LAYERS", "ends_with_layer", "entered", "layers_of", "own_layer"]

LAYERS = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Bilinear"}
)
"""Layers that raise where their input is not of the dtype of their weights, and give half under autocast."""
_WRAPPING = frozenset({"weight_norm", "spectral_norm", "orthogonal"})
"""Functions of torch.nn.utils that give the layer back that they are handed, with its weight computed anew."""


@kept
def layers_of(owner: ast.AST, names: Collection[str]) -> frozenset[str]:
    """The layers of these kinds that a class makes and tells no dtype, as its methods call them: `self.to_q`."""
    return frozenset(path for path, made in _attributes(owner) if _is_layer(made, names))


@kept
def entered(owner: ast.AST) -> frozenset[str]:
    """What a class makes that raises where its input is not of the dtype of its weights: its layers, and what begins with
    one, `self.mlp = nn.Sequential(nn.Linear(256, 64), nn.SiLU())`."""
    return frozenset(path for path, made in _attributes(owner) if _is_layer(_first_of(made), LAYERS))


def ends_with_layer(callee: ast.expr, scope: ast.AST, owner: ast.ClassDef, tree: ast.Module) -> bool:
    """Is what is called a layer of its class, or ends with one: a Sequential, a module of the file that returns what its
    layer gives, an item of a ModuleList of such, `for expert in self.experts`? Under autocast it gives half."""
    path = path_of(callee.value if isinstance(callee, ast.Subscript) else callee)
    is_item = isinstance(callee, ast.Subscript)
    if isinstance(callee, ast.Name):
        path, is_item = _iterated(callee.id, scope), True
    made = [value for known, value in _attributes(owner) if known == path]
    return bool(made) and all(_gives_of_layer(value, is_item, tree) for value in made)


def _iterated(name: str, scope: ast.AST) -> str | None:
    """What a loop takes a name from: `self.experts`, of `for i, expert in enumerate(self.experts)`; None where several do."""
    found: set[str | None] = set()
    for node in statements(scope):
        if not isinstance(node, ast.For):
            continue
        target, over = node.target, node.iter
        if (
            isinstance(over, ast.Call)
            and last_name(over) == "enumerate"
            and over.args
            and isinstance(target, ast.Tuple)
        ):
            target, over = target.elts[-1], over.args[0]
        if isinstance(target, ast.Name) and target.id == name:
            found.add(path_of(over))
    return found.pop() if len(found) == 1 else None


def _gives_of_layer(made: ast.expr, is_item: bool, tree: ast.Module) -> bool:
    if not isinstance(made, ast.Call):
        return False
    if is_item:
        listed = made.args[0] if last_name(made) == "ModuleList" and len(made.args) == 1 else None
        inner = [listed.elt] if isinstance(listed, ast.ListComp) else getattr(listed, "elts", [])
        return bool(inner) and all(_gives_of_layer(item, False, tree) for item in inner)
    if last_name(made) == "Sequential":
        items = [item for item in made.args if last_name(item) not in _KEEPING]
        return bool(items) and not made.keywords and _gives_of_layer(items[-1], False, tree)
    return _is_layer(made, LAYERS) or _returns_of_layer(last_name(made), tree)


_KEEPING = frozenset(
    {"ReLU", "ReLU6", "LeakyReLU", "ELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid", "Hardswish", "Dropout", "Identity"}
)
"""Layers without weights that autocast lets compute in the dtype that comes."""


def _returns_of_layer(name: str, tree: ast.Module) -> bool:
    """Does a class of the file return from `forward` what a layer of its own gives, and nothing else?"""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    if len(classes) != 1:
        return False
    forwards = [node for node in classes[0].body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    returned = (
        [node.value for node in statements(forwards[0], SCOPES) if isinstance(node, ast.Return)] if forwards else []
    )
    if not returned or not {"autocast", "custom_fwd"}.isdisjoint(said(forwards[0])):
        return False
    layers, origins = layers_of(classes[0], LAYERS), origins_of(forwards[0])
    roots = [origins[value] if value is not None else NOTHING for value in returned]
    return all(
        bool(each) and all(origin.kind == Kind.CALLED and origin.text in layers for origin in each) for each in roots
    )


def _attributes(owner: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in statements(owner):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            path = path_of(target)
            if path is not None and path.startswith("self."):
                yield path, node.value


def _first_of(made: ast.expr) -> ast.expr:
    """What the input of a Sequential goes into."""
    while isinstance(made, ast.Call) and last_name(made) == "Sequential" and made.args:
        made = made.args[0]
    return made


def _is_layer(made: ast.expr, names: Collection[str]) -> bool:
    while isinstance(made, ast.Call) and last_name(made) in _WRAPPING and made.args:
        made = made.args[0]
    return (
        isinstance(made, ast.Call)
        and last_name(made) in names
        and not any(keyword.arg == "dtype" for keyword in made.keywords)
    )


def own_layer(
    maker: ast.Call, operations: Sequence[ast.BinOp | ast.Call], origins: Origins, place: Flow
) -> ast.Call | None:
    """The layer of its module that a tensor goes into as a call makes it: `self.project(torch.linspace(0, 1, n)[:, None])`."""
    owner = place.function.owner if place.function is not None else None
    if owner is None or not (owner.is_module or _runs(owner.node)) or _is_of_making(place.scope, owner.node):
        return None
    layers = entered(owner.node)
    for node in operations if layers else ():
        if isinstance(node, ast.Call) and node.args and path_of(node.func) in layers:
            roots = origins[node.args[0]]
            if roots and all(root.node is maker for root in roots):
                return node
    return None


def _is_of_making(scope: ast.AST, owner: ast.ClassDef) -> bool:
    """Is a method run while its module is made, in float32, to see what sizes come out: `self.conv(torch.zeros(1, *shape))`?"""
    name = getattr(scope, "name", "")
    made = next((node for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"), None)
    return made is not None and (scope is made or name in facts(made).called)


def _runs(owner: ast.ClassDef) -> bool:
    """Is a class a module by its looks, whose base is defined in another file: `class Generator(NeuralModule)`?"""
    return bool(owner.bases) and any(
        isinstance(node, ast.FunctionDef) and node.name == "forward" for node in owner.body
    )
