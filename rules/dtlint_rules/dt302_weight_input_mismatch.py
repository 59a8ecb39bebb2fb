"""DT302: a layer or a model gets an input that has not the dtype of its weights."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.survey import facts
from dtlint.infer.values import Module, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._calls import inputs_of
from dtlint_rules._casts import TO_FLOATING
from dtlint_rules._float32_features import (
    RAISING,
    calls_weightless,
    may_be_features,
    may_be_made_wide,
    of_features,
    of_made,
    of_weightless,
    weightless_of,
)
from dtlint_rules._half import half_at
from dtlint_rules._model_dtypes import ModelDtypes
from dtlint_rules._needs import CASTS, TORCH
from dtlint_rules._origins import origins_of
from dtlint_rules._refusals import refused
from dtlint_rules._training import casts_to_half, may_cast_models
from dtlint_rules._uncast_inputs import PREPARED, of_processors, of_programs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from dtlint.infer.events import Call, End, Flow
    from dtlint.infer.facts import ModuleFacts

__all__ = ["WeightInputMismatch"]

_FLOAT32 = frozenset({"float32"})
_SPEAKING = PREPARED | {"dtype", "half"}


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

    Conditional, and so reported with `--preview` only: all but what a model is given that is cast to a half dtype
    in view.

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
    triggers = ("*dtype*", ".half", ".float", *sorted(PREPARED), "*Timestep*", "*FourierProj*", "*Sinusoidal*")
    needs = (TORCH, (*CASTS, "float32", "return_tensors", "*Timestep*", "*FourierProj*", "*Sinusoidal*"))

    calls = frozenset({"__call__"})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def __init__(self) -> None:
        self.model_dtypes = ModelDtypes()
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
        if layer.name in RAISING and may_be_made_wide(flow.scope, given) and (found := list(of_made(call, given))):
            return found
        return of_features(call) if may_be_features(layer, flow.scope, flow.tree) else ()

    def on_end(self, end: End) -> Iterable[Finding]:
        place = end.flow  # it is the function's own, and does not move on
        if place.function is None:
            return self._at_last(place.tree)
        own = facts(end.node)
        self.called |= own.called
        judged = False
        prepares = "return_tensors" in own.keywords
        if prepares or "dtype" in own.keywords or not TO_FLOATING.isdisjoint(own.called):
            judged = prepares or may_cast_models(end.node) or self.model_dtypes.may_be_own(place)
            judged = judged and _may_matter(end.node)
        if place.function.owner is not None:
            self.methods.append((place, judged))
        found = list(self._judged(place)) if judged else []
        return found if found and (half_at(place, dtype=None) is not None or casts_to_half(place.scope)) else ()

    def _judged(self, place: Flow) -> Iterator[Finding]:
        origins = origins_of(place.scope)
        inputs = inputs_of(origins)
        yield from of_processors(inputs, origins, place.scope)
        yield from of_programs(inputs, origins, place)
        yield from self.model_dtypes.of_paths(inputs, origins, place)

    def _at_last(self, tree: ast.Module) -> Iterator[Finding]:
        """What takes all functions of the module to have been read."""
        known: dict[ast.ClassDef, dict[str, str]] = {}
        for place, judged in self.methods if calls_weightless(self.called) else ():
            assert place.function is not None and place.function.owner is not None
            owner = place.function.owner.node
            if owner not in known:
                known[owner] = weightless_of(owner, tree)
            weightless = known[owner]
            if weightless and half_at(place, dtype=None) is not None:
                origins = origins_of(place.scope)
                yield from of_weightless(inputs_of(origins), origins, weightless)
                if not judged:
                    yield from self._judged(place)
        for place in self.model_dtypes.waited():
            if _may_matter(place.scope):
                origins = origins_of(place.scope)
                yield from self.model_dtypes.of_paths(inputs_of(origins), origins, place)
        yield from self.model_dtypes.of_others()


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
    return isinstance(node, ast.Attribute) and node.attr in TO_FLOATING


def _speaks(node: ast.AST) -> TypeGuard[ast.expr | ast.keyword]:
    if isinstance(node, ast.Attribute):
        return node.attr in _SPEAKING
    if isinstance(node, ast.Name):
        return node.id.endswith("dtype")
    return isinstance(node, ast.keyword) and node.arg == "dtype"
