"""DT302: a layer or a model gets an input that has not the dtype of its weights."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Module, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import FACTORIES, FLOAT32, SCALAR, WIDE
from dtlint_rules._features import enters_layer, features_of, is_kept_wide, may_be_given_features
from dtlint_rules._flags import cast_flags, casts_flags
from dtlint_rules._half import half_at
from dtlint_rules._kept import kept
from dtlint_rules._meanings import is_device, names_dtype
from dtlint_rules._names import last_name
from dtlint_rules._needs import CASTS, TORCH
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given as arguments_of
from dtlint_rules._parts import receiver
from dtlint_rules._provenance import follows
from dtlint_rules._regions import decided_here
from dtlint_rules._statements import around, statements
from dtlint_rules._texts import short
from dtlint_rules._widths import cast_to_float32, may_be_cast
from dtlint_rules._within import statement_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from dtlint.infer.events import Call, End, Flow
    from dtlint.infer.survey import Facts
    from dtlint.infer.values import Value
    from dtlint_rules._origin import Origin
    from dtlint_rules._origins import Origins

__all__ = ["WeightInputMismatch"]

_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        *("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        *("Bilinear", "GRU", "LSTM", "RNN"),
    )
)
"""Layers that raise where input and weight differ in dtype."""
_FEATURES = re.compile(r"^Timesteps$|FourierProj|SinusoidalTime|SinusoidalPosEmb$|TimestepProjection$", re.MULTILINE)
"""Names of modules without weights that compute in float32: frequencies of a time step, of a position."""
_PREPARING = re.compile(r"processor|feature_extractor|preprocess", re.IGNORECASE)
"""Names of what turns pictures and sound into float32 tensors."""
_PREPARED = frozenset({"pixel_values", "input_features", "input_values", "pixel_values_videos"})
_SPEAKING = _PREPARED | {"dtype", "half"}
_CASTS = frozenset({"to", "type", "type_as", "half", "float", "bfloat16", "double"})
_MAKING = FACTORIES | {"arange"}
_FLOAT32 = frozenset({"float32"})
_MODELS = re.compile(r"model|encoder|decoder|net$|unet|vae|transformer|checker|estimator|tower|backbone|^G$|^D$")
_NO_FLOATS = re.compile(
    r"(?:^|_)(?:ids?|mask|index|labels?|tokens?|lengths?|sizes?|crops?|paths?|names?)(?:$|_|\d)|(?:text|prompt|caption)s?$"
)
"""Names of batch items that are no floating tensors."""


class WeightInputMismatch(Rule):
    """An input made in float32, or cast on one path only, goes uncast into a layer or a model.

    ## What it does
    Reports what goes uncast into a layer or a model although its dtype is known to be another, or left to chance:

    - features computed in float32 in a module, such as frequencies of positions, or a mask or one-hot tensor that is
      cast to float32 by hand, that enter its own linear or convolutional layer; what a function of the file makes in
      float32 whatever it is given, where that enters a layer, or a module that begins with one; and what a weightless
      module such as `Timesteps` gives to a layer with weights;
    - what an image processor or feature extractor returns, which is float32;
    - in a program that casts a model, `unet.to(device, dtype=weight_dtype)`: an item of the batch that is not cast,
      where another is, what another model that was not cast computed, and an input to try the model with, that a
      factory makes in float32: `model.half()`, `model(torch.zeros(1, 3, 640, 640))`, in no `with` that may be autocast;
    - an input that is cast to the dtype of a model, `self.vae.dtype`, on one path only, or to another dtype than at the
      other calls of that model.

    ## Why it matters
    Linear, convolutional and recurrent layers do not promote: "mat1 and mat2 must have the same dtype, but got Float and
    Half". A module whose `forward` works in float32 raises as soon as somebody calls `.half()` on it.

    ## Example
    ```python
    import torch


    class Positions(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.project = torch.nn.Linear(1, width)

        def forward(self, n: int) -> torch.Tensor:
            steps = torch.arange(n, dtype=torch.float32, device=self.project.weight.device)
            return self.project(steps[:, None] / n)
    ```

    ## Use instead
    ```python
    import torch


    class Positions(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.project = torch.nn.Linear(1, width)

        def forward(self, n: int) -> torch.Tensor:
            steps = torch.arange(n, dtype=torch.float32, device=self.project.weight.device)
            return self.project((steps[:, None] / n).to(self.project.weight.dtype))
    ```

    ## References
    - [torch.nn.Linear](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html)
    - [Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    """

    code, name = "DT302", "weight-input-mismatch"
    triggers = ("*dtype*", ".half", ".float", *sorted(_PREPARED), "*Timestep*", "*FourierProj*", "*Sinusoidal*")
    needs = (TORCH, (*CASTS, "float32", "return_tensors", "*Timestep*", "*FourierProj*", "*Sinusoidal*"))

    calls = frozenset({"__call__"})

    def __init__(self) -> None:
        self.cast_for: dict[tuple[object, str], list[tuple[str, Flow]]] = {}
        """Models by class and path, with the dtypes that inputs of theirs are cast to: their own, and where."""
        self.cast_else: list[_Cast] = []
        self.waiting: list[Flow] = []
        """Functions that speak of no model's own dtype: what they cast matters if another of their class does."""
        self.called: set[str] = set()
        """The names of all that is called."""
        self.methods: list[tuple[Flow, bool]] = []
        """The methods that have been read, and whether they have been judged."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        flow = call.flow
        layer = call.receiver
        if flow.function is None or not isinstance(layer, Module) or flow.autocast is not None:
            return ()
        if layer.dtypes == _FLOAT32 or not call.args or not call.node.args:
            return ()
        given = call.args[0]
        if isinstance(given, Tensor) and given.dtypes is not None and given.dtypes != _FLOAT32:
            return ()
        if layer.name in _LAYERS:
            makes = not _MAKING.isdisjoint(facts(flow.scope).called) or casts_flags(flow.scope)
            if makes and may_be_cast(flow.scope, given) and (found := list(self._into_layer(call, given))):
                return found
        own = may_be_given_features(flow.scope, flow.tree) and _begins_with_weights(layer)
        return _of_own_features(call) if own else ()

    def _into_layer(self, call: Call, given: Value) -> Iterator[Finding]:
        """What a function makes in float32 goes into a layer of its own module."""
        flow, node = call.flow, call.node.args[0]
        layer_path = path_of(call.node.func) or ""
        if layer_path.partition(".")[0] != "self":
            return
        cast = cast_to_float32(given, origins_of(flow.scope)[node])
        if cast is None or (last_name(cast) not in _MAKING and cast_flags(node, flow.scope) is None):
            return  # who writes `self.head(x.float())` keeps the layer in float32, but for what has no digits to keep
        if not _may_be_half(flow):
            return
        text = ast.unparse(node)
        yield Finding(
            node,
            f"`{short(text)}` is float32, and `{layer_path}` raises if its weights are half",
            help=f"Cast the input: `.to({layer_path}.weight.dtype)`",
            notes=((cast, "float32 since here"),) if cast.lineno != node.lineno else (),
        )

    def on_end(self, end: End) -> Iterable[Finding]:
        place = end.flow  # it is the function's own, and does not move on
        if place.function is None:
            return self._at_last(place.tree)
        own = facts(end.node)
        self.called |= own.called
        judged = False
        if "return_tensors" in own.keywords or "dtype" in own.keywords or not _CASTS.isdisjoint(own.called):
            signs = _Signs(own)
            judged = signs.prepares or _casts_alone(end.node) or _speaks_of(end.node, signs)
            if signs.models and not judged:
                self.waiting.append(place)
            judged = judged and _may_matter(end.node)
        if place.function.owner is not None:
            self.methods.append((place, judged))
        found = list(self._judged(place)) if judged else []
        return found if found and (_may_be_half(place) or _makes_half(place.scope)) else ()

    def _at_last(self, tree: ast.Module) -> Iterator[Finding]:
        """What takes all functions of the module to have been read."""
        known: dict[ast.ClassDef, dict[str, str]] = {}
        for place, judged in self.methods if _FEATURES.search("\n".join(self.called)) else ():
            assert place.function is not None and place.function.owner is not None
            owner = place.function.owner.node
            if owner not in known:
                known[owner] = _weightless(owner, tree)
            weightless = known[owner]
            if weightless and _may_be_half(place):
                origins = origins_of(place.scope)
                yield from _of_features(list(_inputs(origins)), origins, weightless)
                if not judged:
                    yield from self._judged(place)
        yield from self._cast_to_another()

    def _judged(self, place: Flow) -> Iterator[Finding]:
        origins = origins_of(place.scope)
        inputs = list(_inputs(origins))
        yield from _of_processors(inputs, origins, place.scope)
        yield from _of_programs(inputs, origins, place)
        yield from self._of_own_dtype(inputs, origins, place)

    def _of_own_dtype(self, inputs: list[_Input], origins: Origins, place: Flow) -> Iterator[Finding]:
        """An input that is cast to the model's own dtype: on one path only, or elsewhere to another."""
        owner = _owner_of(place)
        for given in inputs:
            model = given.owner
            if model is None or not given.is_first:
                continue
            roots = in_order(origins[given.node])
            own = [root for root in roots if root.kind == Kind.CAST and _is_own(root.text, model)]
            others = [root for root in roots if root not in own]
            if own and not others:
                self.cast_for.setdefault((owner, model), []).append((own[0].text, place))
            elif own and all(root.kind in (Kind.GIVEN, Kind.CALLED) for root in others):
                if any(_asks_dtype(root.node, place.scope, place.tree) for root in own) or not _are_paths_of_one(
                    own, others
                ):
                    continue
                yield Finding(
                    own[0].node,
                    f"The input of `{model}` is cast to its dtype on this path only: on the others it stays as it is",
                    help=f"Cast it where `{given.callee}` is called: `.to({model}.dtype)`",
                    notes=((given.node, f"it goes into `{model}` here, whatever the path"),),
                )
            elif others and all(root.kind == Kind.CAST and not root.text.startswith("torch.") for root in others):
                self.cast_else.append(_Cast(others[0], owner, model, given, place))

    def _cast_to_another(self) -> Iterator[Finding]:
        owners = {owner for owner, _ in self.cast_for}
        for place in self.waiting:
            if _owner_of(place) in owners and _may_matter(place.scope):
                origins = origins_of(place.scope)
                yield from self._of_own_dtype(list(_inputs(origins)), origins, place)
        for cast in self.cast_else:
            casts = self.cast_for.get((cast.owner, cast.model))
            if casts is None or _is_named_after(cast.origin.text, cast.model) or not _may_be_half(cast.place):
                continue
            own = next((text for text, place in casts if _may_be_half(place)), None)
            if own is not None:
                yield Finding(
                    cast.origin.node,
                    f"This is cast to `{cast.origin.text}` and goes into `{cast.model}`, whose inputs are cast to `{own}` elsewhere",
                    help=f"Cast it to `{own}`",
                    notes=((cast.given.node, f"it goes into `{cast.model}` here"),),
                )


def _owner_of(place: Flow) -> object:
    """The class whose method the function is."""
    return place.function.owner if place.function is not None else None


def _may_be_half(place: Flow) -> bool:
    return half_at(place, dtype=None) is not None


def _makes_half(scope: ast.AST) -> bool:
    """Does a function cast a model that it calls to a half dtype that is written out, whatever else the file says?"""
    return any(cast.text in _HALF for cast in _cast_models(scope, origins_of(scope)).values())


_HALF = frozenset({"torch.float16", "torch.half", "torch.bfloat16"})


class _Input:
    """An argument of a call."""

    __slots__ = ("call", "callee", "is_first", "node")

    def __init__(self, node: ast.expr, call: ast.Call, callee: str, is_first: bool) -> None:
        self.node, self.call, self.callee, self.is_first = node, call, callee, is_first

    @property
    def owner(self) -> str | None:
        """The model, where the call is one of a model."""
        return _model_of(self.callee)


def _model_of(callee: str) -> str | None:
    """The model that is called: `self.vae` of `self.vae.decode(x)`, `self.unet` of `self.unet(x)`."""
    owner, _, name = callee.rpartition(".")
    if name in _METHODS:
        return owner or None
    return callee if owner == "self" or (not owner and _MODELS.search(name)) else None


_METHODS = frozenset({"encode", "decode", "forward", "generate", "get_image_features", "encode_image", "tiled_decode"})


class _Cast:
    """A cast to another dtype than that of the model that it goes into."""

    __slots__ = ("given", "model", "origin", "owner", "place")

    def __init__(self, origin: Origin, owner: object, model: str, given: _Input, place: Flow) -> None:
        self.origin, self.owner, self.model, self.given, self.place = origin, owner, model, given, place


def _inputs(origins: Origins) -> Iterator[_Input]:
    """What the calls of a function are given that has origins, the last call first."""
    for node in reversed(origins.of):
        callee = path_of(node.func) if isinstance(node, ast.Call) else None
        if callee is None or not isinstance(node, ast.Call) or callee.startswith(("torch.", "F.")):
            continue
        for position, argument in enumerate(arguments_of(node)):
            if origins[argument]:
                yield _Input(argument, node, callee, position == 0)


class _Signs:
    """What the calls of a function that casts or prepares something show of it, before anybody looks further.

    Attributes:
        prepares: is a processor called?
        models: the paths of the models that are called.
        told: what calls may take a dtype from: `x.dtype` of `.to(x.dtype)`, `x` of `.type_as(x)`.
    """

    __slots__ = ("models", "prepares", "told")

    def __init__(self, own: Facts) -> None:
        self.prepares = "return_tensors" in own.keywords
        self.models: set[str] = set()
        self.told: list[ast.expr] = []
        following = [call for call in own.telling if follows(call)]
        for call in own.calls if following else ():
            model = _model_of(path_of(call.func) or "") if _may_be_model(call.func) and arguments_of(call) else None
            if model is not None:
                self.models.add(model)
        for call in following:
            given = call.args if last_name(call) in ("to", "type", "type_as") else []
            self.told += [node for node in given if names_dtype(node) or not is_device(node)]
            self.told += [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]


def _may_be_model(called: ast.expr) -> bool:
    """May `_model_of` say yes to the path of what is called? It asks less than what makes the path."""
    if type(called) is ast.Attribute:
        return called.attr in _METHODS or (type(called.value) is ast.Name and called.value.id == "self")
    return type(called) is ast.Name


def _speaks_of(scope: ast.AST, signs: _Signs) -> bool:
    """May a function cast something to the own dtype of a model that it calls?"""
    return bool(signs.models) and (
        any(_is_part_of(node, signs.models) for node in signs.told)
        or any(_is_part_of(node, signs.models) for node in _noted_dtypes(scope))
    )


def _noted_dtypes(scope: ast.AST) -> Iterator[ast.Attribute]:
    """What a function notes the dtype of, in a name: `self.vae.dtype` of `dtype = self.vae.dtype`."""
    parts: Iterable[ast.AST] = nodes([scope]) if facts(scope).has_walrus else _bound_values(scope)
    for node in parts:
        if isinstance(node, ast.Attribute) and node.attr.endswith("dtype"):
            yield node


def _bound_values(scope: ast.AST) -> Iterator[ast.expr]:
    for node in statements(scope):
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) else None
        if isinstance(value, (ast.Tuple, ast.List)):
            yield from value.elts
        elif value is not None:
            yield value


def _is_part_of(node: ast.expr, models: set[str]) -> bool:
    """Is an expression one of some models or an attribute of it, as far as it reads?"""
    path = path_of(node)
    while path:
        if path in models:
            return True
        path = path.rpartition(".")[0]
    return path is None and not isinstance(node, ast.Constant)


def _casts_alone(scope: ast.AST) -> bool:
    """Is something cast in a statement of its own, as models are: `unet.to(device, dtype)`?"""
    alone = [node.value for node in statements(scope) if isinstance(node, ast.Expr)]
    return any(isinstance(value, ast.Call) and _is_told(value) for value in alone)


def _is_told(call: ast.Call) -> bool:
    """May a method be one that casts, to a dtype that it is told, not only a move to a device?"""
    if last_name(call) in ("to", "type"):
        return any(names_dtype(node) or not is_device(node) for node in arguments_of(call))
    return _casts(call.func) or any(keyword.arg == "dtype" for keyword in call.keywords)


def _may_matter(scope: ast.AST) -> bool:
    """Does a function cast something, or prepare it, and does it speak of dtypes or of prepared inputs?"""
    first = getattr(scope, "lineno", 0)  # decorators stand above
    speaks = casts = False
    for node in nodes([scope]):
        casts = casts or _casts(node)
        speaks = speaks or (_speaks(node) and node.lineno >= first)
        if speaks and casts:
            return True
    return False


def _casts(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg == "return_tensors"
    return isinstance(node, ast.Attribute) and node.attr in _CASTS


def _speaks(node: ast.AST) -> TypeGuard[ast.expr | ast.keyword]:
    if isinstance(node, ast.Attribute):
        return node.attr in _SPEAKING
    if isinstance(node, ast.Name):
        return node.id.endswith("dtype")
    return isinstance(node, ast.keyword) and node.arg == "dtype"


# -- features of functions and modules without weights ----------------------------------------------------------------


def _begins_with_weights(layer: Module) -> bool:
    """Does the input of a module meet weights first: of a layer, of a Sequential or a module of the file that begins with one?"""
    if layer.name == "torch.nn.Sequential":
        first = layer.items[0] if layer.items else None
        return isinstance(first, Module) and first.name in _LAYERS and first.dtypes != _FLOAT32
    return layer.name in _LAYERS or (layer.info is not None and enters_layer(layer.info.node))


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


def _of_own_features(call: Call) -> Iterator[Finding]:
    """`self.mlp(self.timestep_embedding(t, 256))`, of a function of the file that gives float32 whatever `t` is."""
    flow, node, layer = call.flow, call.node.args[0], path_of(call.node.func) or ""
    owner = flow.function.owner if flow.function is not None else None
    if owner is None or not layer.startswith("self.") or getattr(flow.scope, "name", "") == "__init__":
        return
    features = features_of(origins_of(flow.scope)[node], owner.node, flow.tree)
    if features is None or _knows_its_dtype(owner.node) or layer in _made_wide(owner.node):
        return
    if is_kept_wide(flow.tree, layer) or not _may_be_half(flow):
        return
    yield Finding(
        node,
        f"`{features}` gives float32, whatever it is given, and `{layer}` gets it uncast: that raises if its weights are half",
        help="Cast it to the dtype of the weights, or of the hidden states that it is added to: `.to(x.dtype)`",
    )


def _of_features(inputs: list[_Input], origins: Origins, weightless: dict[str, str]) -> Iterator[Finding]:
    for given in inputs:
        roots = in_order(origins[given.node])
        for root in roots if all(root.kind in (Kind.CALLED, Kind.GIVEN) for root in roots) else ():
            if root.text not in weightless or given.callee in weightless:
                continue
            if not given.callee.startswith("self.") and "block" not in given.callee:
                continue
            yield Finding(
                root.node,
                f"`{weightless[root.text]}` has no weights and gives float32, and `{given.callee}` gets it uncast: "
                "in half it raises, or computes in float32",
                help="Cast it to the dtype of the model: `.to(sample.dtype)`",
                notes=((given.node, f"it goes into `{given.callee}` here"),),
            )
            return


def _weightless(owner: ast.ClassDef, tree: ast.Module) -> dict[str, str]:
    """The attributes of a module that hold features without weights, with their classes; inference knows those of the file."""
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return {
        path: last_name(node.value)
        for node in reversed(statements(owner))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if _FEATURES.search(last_name(node.value)) and last_name(node.value) not in defined
        for path in map(path_of, node.targets)
        if path is not None and path.startswith("self.")
    }


# -- what a processor returns -----------------------------------------------------------------------------------------


def _of_processors(inputs: list[_Input], origins: Origins, scope: ast.AST) -> Iterator[Finding]:
    for given in inputs:
        roots = origins[given.node]
        name = given.callee.rpartition(".")[2]
        if not any(_is_prepared(root) for root in roots) or not (
            given.callee.startswith("self.") or _MODELS.search(name)
        ):
            continue
        if (
            any(root.kind == Kind.CAST for root in roots)
            or _PREPARING.search(name)
            or not _is_floating(given.node, scope)
        ):
            continue
        place = _moved(given.node, scope) or given.node
        yield Finding(
            place,
            f"What a processor returns is float32, and goes into `{given.callee}` uncast: half weights raise",
            help="Cast it with the move: `.to(device, dtype)`",
            notes=((given.node, f"it goes into `{given.callee}` here"),) if place is not given.node else (),
        )


def _is_prepared(root: Origin) -> bool:
    call = root.node
    return (
        root.kind == Kind.CALLED
        and _PREPARING.search(root.text) is not None
        and isinstance(call, ast.Call)
        and any(keyword.arg == "return_tensors" for keyword in call.keywords)
    )


def _is_floating(node: ast.expr, scope: ast.AST) -> bool:
    """Does an argument take pictures or sound of it: `inputs.pixel_values`?"""
    values = [node]
    if isinstance(node, ast.Name):
        values += [value for _, value in assignments(scope).get(node.id, ()) if value is not None]
    return any(
        (isinstance(part, ast.Attribute) and part.attr in _PREPARED)
        or (isinstance(part, ast.Constant) and part.value in _PREPARED)
        for value in values
        for part in ast.walk(value)
    )


def _moved(node: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The last `x = x.to(device)` before a name is used."""
    if not isinstance(node, ast.Name):
        return None
    before = [value for line, value in assignments(scope).get(node.id, ()) if line <= node.lineno and value is not None]
    return before[-1] if before and isinstance(before[-1], ast.Call) and last_name(before[-1]) == "to" else None


# -- programs that cast a model ---------------------------------------------------------------------------------------


def _of_programs(inputs: list[_Input], origins: Origins, place: Flow) -> Iterator[Finding]:
    casts = _cast_models(place.scope, origins)
    if not casts:
        return
    trained = _trained(place.scope)
    items_cast = [
        root for roots in list(origins.of.values()) for root in roots if root.kind == Kind.CAST and _items_of(root.of)
    ]
    seen: set[ast.expr] = set()
    for given in inputs:
        if given.callee not in casts or given.callee in trained:
            continue
        roots = in_order(origins[given.node])
        items = _items_of(roots)
        batch = {item.text.partition("[")[0] for item in items}
        item = next(iter(items)).node if items else given.node
        if items and len(items) == len(roots):
            others = any(batch & {item.text.partition("[")[0] for item in _items_of(root.of)} for root in items_cast)
            what = f"`{ast.unparse(item)}`" if others else None
        else:
            models = {
                root.text
                for root in roots
                if root.kind == Kind.CALLED and root.text in trained and root.text not in casts
            }
            what = f"What `{models.pop()}` gives" if len(models) == 1 and len(roots) == 1 else None
        statement = statement_of(given.call, place.scope)
        if (
            roots
            and all(map(_is_made_plain, roots))
            and _is_cast_above(given.call, casts[given.callee], place.scope)
            and not _is_within_context(statement, place.tree)
        ):
            what = f"What `{roots[0].text}` makes, float32,"
        if what is None or item in seen or decided_here(statement, place.tree):
            continue
        seen.add(item)
        yield Finding(
            item,
            f"{what} goes into `{given.callee}` uncast, and `{given.callee}` is cast to `{casts[given.callee].text}`",
            help=f"Cast it: `.to(dtype={casts[given.callee].text})`",
            notes=((casts[given.callee].node, f"`{given.callee}` is cast here"), (given.node, "it goes in here")),
        )


def _is_made_plain(root: Origin) -> bool:
    """Is it an input to try a model with, of the default dtype: `model(torch.zeros(1, 3, size, size))`?"""
    return root.kind == Kind.MADE and root.text not in SCALAR


def _is_within_context(statement: ast.AST, tree: ast.Module) -> bool:
    """Does a call stand in a context that may be autocast, by whatever name, and casts its input: `with context:`?"""
    return any(
        last_name(item.context_expr) not in ("no_grad", "inference_mode")
        for part in (statement, *around(statement, tree))
        if isinstance(part, (ast.With, ast.AsyncWith))
        for item in part.items
    )


def _is_cast_above(call: ast.Call, cast: _ModelCast, scope: ast.AST) -> bool:
    """Is a model cast above a call, and not cast back to float32 since?"""
    path = path_of(call.func)
    back = (
        node.lineno
        for node in statements(scope)
        if isinstance(node, ast.Expr)
        and last_name(node.value) in ("float", "double")
        and (held := receiver(node.value)) is not None
        and path_of(held) == path
    )
    return cast.node.lineno < call.lineno and not any(cast.node.lineno < line < call.lineno for line in back)


class _ModelCast:
    __slots__ = ("node", "text")

    def __init__(self, node: ast.Call, text: str) -> None:
        self.node, self.text = node, text


def _cast_models(scope: ast.AST, origins: Origins) -> dict[str, _ModelCast]:
    """What a function casts as a whole and calls: `unet.to(device, dtype=weight_dtype)`."""
    found: dict[str, _ModelCast] = {}
    for node in reversed(statements(scope)):
        cast = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(cast, ast.Call) or not isinstance(cast.func, ast.Attribute):
            continue
        path, dtype = path_of(cast.func.value), origins.told(cast)
        if path is not None and dtype is not None and dtype not in (*FLOAT32, "torch.float64"):
            found[path] = _ModelCast(cast, dtype)
    called = {path_of(node.func) for node in nodes([scope]) if isinstance(node, ast.Call)} if found else ()
    return {path: cast for path, cast in found.items() if path in called}


def _trained(scope: ast.AST) -> set[str]:
    """The models that a function trains or prepares: their weights stay float32, and autocast may be about them."""
    found: set[str] = set()
    for node in nodes([scope]):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        path = path_of(node.func.value)
        if node.func.attr in ("train", "parameters") and path is not None:
            found.add(path)
        elif node.func.attr == "prepare":
            found |= {path for argument in node.args if (path := path_of(argument)) is not None}
    return found


def _items_of(roots: Iterable[Origin]) -> list[Origin]:
    """The floating items of a batch among some origins."""
    return [
        root
        for root in roots
        if root.kind == Kind.GIVEN
        and root.text.endswith("']")
        and root.text.startswith(("batch[", "data[", "inputs[", "sample["))
        and not _NO_FLOATS.search(root.text.partition("['")[2][:-2].lower())
    ]


# -- dtypes of models -------------------------------------------------------------------------------------------------


def _is_own(dtype: str, model: str) -> bool:
    """Is a dtype, as it is written, one that is asked of the model: `self.vae.dtype`, `next(self.vae.parameters()).dtype`?"""
    return re.search(rf"(?<![\w.]){re.escape(model)}\b.*dtype$", dtype) is not None


def _are_paths_of_one(own: list[Origin], others: list[Origin]) -> bool:
    """Is what is cast on the one path the same thing that is not on the other, and no other part of a sum?"""
    return any(inner in others for root in own for inner in root.of)


def _asks_dtype(cast: ast.expr, scope: ast.AST, tree: ast.Module) -> bool:
    """Is a cast made where the dtype of the very tensor was looked at: `if x.dtype != dtype: x = x.to(dtype)`? Or where
    that of the weights was, which are whole numbers once they are quantized."""
    subject = path_of(cast.func.value) if isinstance(cast, ast.Call) and isinstance(cast.func, ast.Attribute) else None
    tests = [part.test for part in _statements_around(cast, scope, tree) if isinstance(part, ast.If)]
    if any(last_name(part) == "is_floating_point" for test in tests for part in ast.walk(test)):
        return True
    return subject is not None and any(
        path_of(part) == f"{subject}.dtype"
        for test in tests
        for part in ast.walk(test)
        if isinstance(part, ast.Attribute)
    )


def _statements_around(node: ast.AST, scope: ast.AST, tree: ast.Module) -> list[ast.AST]:
    statement = statement_of(node, scope)
    return [statement, *around(statement, tree)]


def _is_named_after(dtype: str, model: str) -> bool:
    """Is it a name that says it is the model's: `vae_dtype` for `self.vae`?"""
    return model.rpartition(".")[2].lower() in dtype.lower()
