"""DT302: a layer or a model gets an input that has not the dtype of its weights."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import FACTORIES, FLOAT32
from dtlint_rules._half import half_at
from dtlint_rules._names import last_name, names
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._regions import decided_here
from dtlint_rules._widths import cast_to_float32

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
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
_FEATURES = re.compile(r"^Timesteps$|FourierProj|SinusoidalTime|SinusoidalPosEmb$|TimestepProjection$")
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
    """A layer or a model gets an input that has not the dtype of its weights.

    ## What it does
    Reports what goes uncast into a layer or a model although its dtype is known to be another, or left to chance:

    - features computed in float32 in a module, such as frequencies of positions, that enter its own linear or convolutional
      layer, and what a weightless module such as `Timesteps` gives to a layer with weights;
    - what an image processor or feature extractor returns, which is float32;
    - in a program that casts a model, `unet.to(device, dtype=weight_dtype)`: an item of the batch that is not cast, where
      another is, and what another model that was not cast computed;
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
    triggers = ("dtype", ".half(", *sorted(_PREPARED), "Timestep", "FourierProj", "SinusoidalTime", "SinusoidalPosEmb")

    calls = frozenset({"__call__"})

    def __init__(self) -> None:
        self.cast_for: dict[tuple[object, str], str] = {}
        """Models by class and path, with the dtype that an input of theirs is cast to somewhere: their own."""
        self.cast_else: list[_Cast] = []

    def on_call(self, call: Call) -> Iterator[Finding]:
        flow = call.flow
        layer = call.receiver
        if flow.function is None or not isinstance(layer, Module) or layer.name not in _LAYERS:
            return
        if layer.dtypes == _FLOAT32 or not call.args or not call.node.args or flow.autocast is not None:
            return
        given, node = call.args[0], call.node.args[0]
        if isinstance(given, Tensor) and given.dtypes is not None and given.dtypes != _FLOAT32:
            return
        cast = cast_to_float32(given, origins_of(flow.scope)[node])
        if cast is None or last_name(cast) not in _MAKING or (path_of(call.node.func) or "").split(".")[0] != "self":
            return  # who writes `self.head(x.float())` keeps the layer in float32
        if half_at(flow, dtype=None) is None:
            return
        text, layer_path = ast.unparse(node), path_of(call.node.func)
        yield Finding(
            node,
            f"`{_short(text)}` is float32, and `{layer_path}` raises if its weights are half",
            help=f"Cast the input: `.to({layer_path}.weight.dtype)`",
            notes=((cast, "float32 since here"),) if cast.lineno != node.lineno else (),
        )

    def on_end(self, end: End) -> Iterator[Finding]:
        function = end.flow.function
        if function is None:
            yield from self._cast_to_another()
            return
        weightless = _weightless(function.owner.node, end.flow.tree) if function.owner is not None else {}
        if not (weightless or _may_matter(end.node, end.flow.tree)) or half_at(end.flow, dtype=None) is None:
            return
        origins = origins_of(end.node)
        inputs = list(_inputs(end.node, origins))
        yield from _of_features(inputs, origins, weightless)
        yield from _of_processors(inputs, origins, end.node)
        yield from _of_programs(inputs, origins, end)
        yield from self._of_own_dtype(inputs, origins, end)

    def _of_own_dtype(self, inputs: list[_Input], origins: Origins, end: End) -> Iterator[Finding]:
        """An input that is cast to the model's own dtype: on one path only, or elsewhere to another."""
        owner = end.flow.function.owner if end.flow.function is not None else None
        for given in inputs:
            model = given.owner
            if model is None or not given.is_first:
                continue
            roots = origins[given.node]
            own = [root for root in roots if root.kind == Kind.CAST and _is_own(root.text, model)]
            others = [root for root in roots if root not in own]
            if own and not others:
                self.cast_for.setdefault((owner, model), own[0].text)
            elif own and all(root.kind in (Kind.GIVEN, Kind.CALLED) for root in others):
                if any(_asks_dtype(root.node, end.flow.tree) for root in own) or not _are_paths_of_one(own, others):
                    continue
                yield Finding(
                    own[0].node,
                    f"The input of `{model}` is cast to its dtype on this path only: on the others it stays as it is",
                    help=f"Cast it where `{given.callee}` is called: `.to({model}.dtype)`",
                    notes=((given.node, f"it goes into `{model}` here, whatever the path"),),
                )
            elif others and all(root.kind == Kind.CAST and not root.text.startswith("torch.") for root in others):
                self.cast_else.append(_Cast(others[0], owner, model, given))

    def _cast_to_another(self) -> Iterator[Finding]:
        for cast in self.cast_else:
            own = self.cast_for.get((cast.owner, cast.model))
            if own is not None and not _is_named_after(cast.origin.text, cast.model):
                yield Finding(
                    cast.origin.node,
                    f"This is cast to `{cast.origin.text}` and goes into `{cast.model}`, whose inputs are cast to `{own}` elsewhere",
                    help=f"Cast it to `{own}`",
                    notes=((cast.given.node, f"it goes into `{cast.model}` here"),),
                )


class _Input:
    """An argument of a call."""

    __slots__ = ("call", "callee", "is_first", "node")

    def __init__(self, node: ast.expr, call: ast.Call, callee: str, is_first: bool) -> None:
        self.node, self.call, self.callee, self.is_first = node, call, callee, is_first

    @property
    def owner(self) -> str | None:
        """The model, where the call is one of a model: `self.vae` of `self.vae.decode(x)`, `self.unet` of `self.unet(x)`."""
        owner, _, name = self.callee.rpartition(".")
        if name in _METHODS:
            return owner or None
        return self.callee if owner == "self" or (not owner and _MODELS.search(name)) else None


_METHODS = frozenset({"encode", "decode", "forward", "generate", "get_image_features", "encode_image", "tiled_decode"})


class _Cast:
    """A cast to another dtype than that of the model that it goes into."""

    __slots__ = ("given", "model", "origin", "owner")

    def __init__(self, origin: Origin, owner: object, model: str, given: _Input) -> None:
        self.origin, self.owner, self.model, self.given = origin, owner, model, given


def _inputs(scope: ast.AST, origins: Origins) -> Iterator[_Input]:
    for node in nodes([scope]):
        callee = path_of(node.func) if isinstance(node, ast.Call) else None
        if callee is None or not isinstance(node, ast.Call) or callee.startswith(("torch.", "F.")):
            continue
        for position, argument in enumerate([*node.args, *(keyword.value for keyword in node.keywords)]):
            if origins[argument]:
                yield _Input(argument, node, callee, position == 0)


def _may_matter(scope: ast.AST, tree: ast.Module) -> bool:
    """Does a function speak of dtypes or of prepared inputs, and does it cast something, or prepare it?"""
    first, last = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", 0)
    return all(bisect_left(lines, first) < bisect_right(lines, last) for lines in _lines(tree))


@lru_cache(maxsize=2)
def _lines(tree: ast.Module) -> tuple[list[int], list[int]]:
    """The lines of a module that speak of dtypes or of prepared inputs, and those that cast or prepare; in order."""
    speaking, doing = [], []
    for node in nodes([tree]):
        if isinstance(node, ast.Attribute):
            if node.attr in _SPEAKING:
                speaking.append(node.lineno)
            if node.attr in _CASTS:
                doing.append(node.lineno)
        elif isinstance(node, ast.keyword):
            if node.arg == "dtype":
                speaking.append(node.lineno)
            elif node.arg == "return_tensors":
                doing.append(node.lineno)
        elif isinstance(node, ast.Name) and node.id.endswith("dtype"):
            speaking.append(node.lineno)
    return sorted(speaking), sorted(doing)


# -- features of a module without weights -----------------------------------------------------------------------------


def _of_features(inputs: list[_Input], origins: Origins, weightless: dict[str, str]) -> Iterator[Finding]:
    for given in inputs if weightless else ():
        roots = origins[given.node]
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


@lru_cache(maxsize=8)
def _weightless(owner: ast.ClassDef, tree: ast.Module) -> dict[str, str]:
    """The attributes of a module that hold features without weights, with their classes; inference knows those of the file."""
    if not any(map(_FEATURES.search, names(tree))):
        return {}
    found: dict[str, str] = {}
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    for node in nodes([owner]):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = last_name(node.value)
            if _FEATURES.search(made) and made not in defined:
                found.update({path: made for target in node.targets if (path := path_of(target))})
    return {path: made for path, made in found.items() if path.startswith("self.")}


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


def _of_programs(inputs: list[_Input], origins: Origins, end: End) -> Iterator[Finding]:
    casts = _cast_models(end.node, origins)
    if not casts:
        return
    trained = _trained(end.node)
    items_cast = [
        root for roots in list(origins.of.values()) for root in roots if root.kind == Kind.CAST and _items_of(root.of)
    ]
    seen: set[ast.expr] = set()
    for given in inputs:
        if given.callee not in casts or given.callee in trained:
            continue
        roots = origins[given.node]
        items = _items_of(roots)
        batch = {item.text.partition("[")[0] for item in items}
        place = next(iter(items)).node if items else given.node
        if items and len(items) == len(roots):
            others = any(batch & {item.text.partition("[")[0] for item in _items_of(root.of)} for root in items_cast)
            what = f"`{ast.unparse(place)}`" if others else None
        else:
            models = {
                root.text
                for root in roots
                if root.kind == Kind.CALLED and root.text in trained and root.text not in casts
            }
            what = f"What `{models.pop()}` gives" if len(models) == 1 and len(roots) == 1 else None
        if what is None or place in seen or decided_here(given.call, end.flow.tree):
            continue
        seen.add(place)
        yield Finding(
            place,
            f"{what} goes into `{given.callee}` uncast, and `{given.callee}` is cast to `{casts[given.callee].text}`",
            help=f"Cast it: `.to(dtype={casts[given.callee].text})`",
            notes=((casts[given.callee].node, f"`{given.callee}` is cast here"), (given.node, "it goes in here")),
        )


class _ModelCast:
    __slots__ = ("node", "text")

    def __init__(self, node: ast.Call, text: str) -> None:
        self.node, self.text = node, text


def _cast_models(scope: ast.AST, origins: Origins) -> dict[str, _ModelCast]:
    """What a function casts as a whole and calls: `unet.to(device, dtype=weight_dtype)`."""
    called = {path_of(node.func) for node in nodes([scope]) if isinstance(node, ast.Call)}
    found: dict[str, _ModelCast] = {}
    for node in nodes([scope]):
        if (
            not isinstance(node, ast.Expr)
            or not isinstance(node.value, ast.Call)
            or not isinstance(node.value.func, ast.Attribute)
        ):
            continue
        path, dtype = path_of(node.value.func.value), origins.told(node.value)
        if path in called and path is not None and dtype is not None and dtype not in (*FLOAT32, "torch.float64"):
            found[path] = _ModelCast(node.value, dtype)
    return found


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


def _asks_dtype(cast: ast.expr, tree: ast.Module) -> bool:
    """Is a cast made where the dtype of the very tensor was looked at: `if x.dtype != dtype: x = x.to(dtype)`? Or where
    that of the weights was, which are whole numbers once they are quantized."""
    subject = path_of(cast.func.value) if isinstance(cast, ast.Call) and isinstance(cast.func, ast.Attribute) else None
    tests = [part.test for part in around(cast, tree) if isinstance(part, ast.If)]
    if any(last_name(part) == "is_floating_point" for test in tests for part in ast.walk(test)):
        return True
    return subject is not None and any(
        path_of(part) == f"{subject}.dtype"
        for test in tests
        for part in ast.walk(test)
        if isinstance(part, ast.Attribute)
    )


def _is_named_after(dtype: str, model: str) -> bool:
    """Is it a name that says it is the model's: `vae_dtype` for `self.vae`?"""
    return model.rpartition(".")[2].lower() in dtype.lower()


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."
