"""DT101: a whole model cast to half, which is right neither for training nor, as a rule, for inference."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.values import Key, Module, Optimizer, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._imports import is_a_test
from dtlint_rules._kept import kept
from dtlint_rules._needs import HALF_BY_NAME
from dtlint_rules._parts import receiver, root_of, subject_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Condition, End, Flow
    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["ModelHalf"]

Identity = tuple["ClassInfo | None", Key]
"""A module, and for what is known by its path from `self`, the class that path begins in."""


class ModelHalf(Rule):
    """Whole model cast to float16 or bfloat16.

    ## What it does
    Reports `.half()`, `.bfloat16()`, `.to(torch.float16)` and their like on a whole model: as a warning where the file
    shows that the model is trained, else as information. Single layers, casts of `self` inside a module, copies that
    are only made to be saved, for inference models whose norms are cast back in a loop, and what tests make are left
    alone.

    ## Why it matters
    Training needs more than a half dtype has. In float16, gradients below 3e-8 become 0, GradScaler refuses float16
    parameters, and the `eps=1e-8` of Adam becomes 0, so that a zero gradient gives NaN. In bfloat16, an update smaller
    than 1/512 of a weight leaves the weight unchanged: `1 - 1e-3` is 1. Autocast keeps weights and updates in float32
    and casts the operations that gain from it.

    In inference a float16 model overflows to inf beyond 65504 anywhere, and a bfloat16 model has 8 bits of precision
    everywhere; autocast computes sums, norms, softmax and losses in float32 (on CUDA). Where memory decides, a
    half model may still be right, so that this is information alone and does not fail a run.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).half()
    optimizer = torch.optim.Adam(model.parameters())
    loss = model(torch.rand(4, 8).half()).sum()
    loss.backward()
    optimizer.step()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.rand(4, 8)).sum()
    loss.backward()
    optimizer.step()
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    - [torch.nn.Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    """

    code, name = "DT101", "model-half"
    triggers = HALF_BY_NAME
    targets = frozenset({ast.Attribute})

    def __init__(self) -> None:
        self.casts: list[_Cast] = []
        self.optimizers: dict[Identity, _Seen] = {}
        self.evaluated: set[Identity] = set()
        """Modules in evaluation mode, as far as reading has come."""
        self.partial: set[Identity | tuple[ast.AST, str]] = set()
        """Modules of which a part is frozen or has its own dtype: who trains the rest may train it in float32. Those
        that are known by name alone are here with scope and name."""
        self.parts: set[ClassInfo] = set()
        """Classes that modules of the project make layers of."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if isinstance(call.receiver, Module):
            self._module_called(call, call.receiver)
        name = _called_name(call)
        if isinstance(call.result, Optimizer):
            self._optimizer_made(call, call.result.of)
        elif _trains(name):
            self._trainer_called(call)
        elif call.method == "backward":
            self._backward_run(call)
        if _divides(call, name):
            self.partial.update((call.flow.scope, root) for root in _roots(call.node))
            if isinstance(call.receiver, Module):
                self.partial.add(_identity(call.receiver.key, call.flow))
        made, function = call.result, call.flow.function
        if isinstance(made, Module) and made.info is not None and _in_module(function):
            self.parts.add(made.info)
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        target = assign.target
        given = assign.value.dtypes if isinstance(assign.value, Tensor) else None
        if isinstance(target, ast.Attribute) and target.attr == "data" and given and given <= _WIDE:
            self._part_widened(subject_of(target), assign.flow)  # `p.data = ...` and `m.weight.data = ...`
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            walk = assign.flow.walk_over(target.value.id) if target.attr in ("requires_grad", "data") else None
            if walk is not None and walk.of is not None:
                self.partial.add(_identity(walk.of, assign.flow))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None or not self.casts or is_a_test(end.flow.tree):
            return
        for cast in self.casts:
            partial = cast.identity in self.partial or (cast.seen.scope, cast.root) in self.partial
            if not partial and (cast.trained_by is not None or (cast.training and cast.whole and cast.called)):
                yield _of_training(cast)
            elif (
                cast.is_for_inference
                and not cast.widened
                and cast.info not in self.parts
                and not _saves(cast.seen.scope)
            ):
                yield _of_inference(cast)

    def _module_called(self, call: Call, module: Module) -> None:
        is_cast, dtypes = call.cast if call.method in CAST_METHODS else (False, None)
        if is_cast and dtypes and dtypes <= _WIDE:
            self._part_widened(receiver(call.node), call.flow)
        if is_cast and dtypes and dtypes & LOW_PRECISION:
            if module.key not in _NOT_ONE_MODEL:
                self.casts.append(_Cast.made(call, module, dtypes))
            return
        if call.method in ("train", "eval"):
            (self.evaluated.add if call.method == "eval" else self.evaluated.discard)(_identity(module.key, call.flow))
        effect = _EFFECTS.get(call.method) or (_undone if is_cast and dtypes else None)
        if call.target == "torch.nn.Module.__call__":
            effect = _called
        if effect is not None:
            identity = _identity(module.key, call.flow)
            for cast in self.casts:
                if cast.identity == identity and not _exclusive(cast.seen.conditions, call.flow.conditions):
                    effect(cast, call)

    def _part_widened(self, part: ast.expr | None, flow: Flow) -> None:
        """`for m in model.modules(): if isinstance(m, nn.BatchNorm2d): m.float()`, and a parameter's `data` so."""
        walk = flow.walk_over(part.id) if isinstance(part, ast.Name) else None
        if walk is not None and walk.of is not None:
            identity = _identity(walk.of, flow)
            for cast in self.casts:
                if cast.identity == identity and not _exclusive(cast.seen.conditions, flow.conditions):
                    cast.widened = True

    def _trainer_called(self, call: Call) -> None:
        from dtlint.infer.calls import modules_of

        given = frozenset().union(*map(modules_of, call.args))
        if not call.target or call.target.startswith("torch."):
            self._optimizer_made(call, given)
        else:  # optimizers of other packages may keep float32 copies of the weights
            self.partial.update(_identity(key, call.flow) for key in given)

    def _optimizer_made(self, call: Call, of: frozenset[Key]) -> None:
        seen = _Seen.at(call)
        for key in of - _NOT_ONE_MODEL:
            identity = _identity(key, call.flow)
            self.optimizers[identity] = seen
            for cast in self.casts:
                if cast.identity == identity and cast.precedes(seen):
                    cast.trained_by = cast.trained_by or seen

    def _backward_run(self, call: Call) -> None:
        seen = _Seen.at(call)
        alone = _optimizes(seen.scope) and not any(made.scope is seen.scope for made in self.optimizers.values())
        for cast in self.casts:
            if cast.seen.scope is not seen.scope or not cast.precedes(seen):
                continue
            made = self.optimizers.get(cast.identity)
            if made is not None and not _exclusive(made.conditions, cast.seen.conditions):
                cast.trained_by = cast.trained_by or made
            elif (
                alone
                and cast.whole
                and cast.called
                and cast.identity not in self.evaluated
                and _hands_out(seen.scope, cast.root)
            ):
                cast.trained_by = cast.trained_by or seen


@dataclass(slots=True)
class _Seen:
    """A call that matters, and where it was seen."""

    node: ast.Call
    target: str
    scope: ast.AST
    function: FunctionInfo | None
    conditions: list[Condition]
    keywords: frozenset[str] = frozenset()

    @classmethod
    def at(cls, call: Call) -> _Seen:
        flow = call.flow
        return cls(call.node, call.target, flow.scope, flow.function, list(flow.conditions), frozenset(call.keywords))


@dataclass(slots=True)
class _Cast:
    """A cast of a module to a half dtype, and what became of the module afterwards."""

    seen: _Seen
    identity: Identity
    info: ClassInfo | None
    dtype: str
    surely: bool
    """Is half what the program is written for, not a setting, nor what a test of some dtype asks for?"""
    whole: bool
    """Is it a model, not a layer?"""
    root: str
    """The name that it is known by, up to the first dot behind `self.`."""
    undone: bool = False
    widened: bool = False
    """Was a part of it cast back, in a loop over its layers or parameters? Then the rest alone is half."""
    training: bool = False
    """`train()` was called on it, and no `eval()` since."""
    called: bool = False
    """Was the model run while it was half?"""
    trained_by: _Seen | None = None
    """The optimizer over its parameters, or the backward pass through it."""

    @property
    def lasts(self) -> bool:
        """Was the model run in half, or may it be later? Cast back before that, it was only rounded."""
        return self.called or not self.undone

    @property
    def is_for_inference(self) -> bool:
        """Is a whole model to compute in half for good, by what the program is written for?"""
        return self.whole and self.surely and self.lasts

    @classmethod
    def made(cls, call: Call, module: Module, dtypes: frozenset[str]) -> _Cast:
        identity = _identity(module.key, call.flow)
        subject = root_of(call.node)
        whole = _is_whole(call.flow.function, module, path_of(subject) or "")
        dtype = max(dtypes & LOW_PRECISION)
        surely = dtypes <= LOW_PRECISION and not any("dtype" in ast.unparse(part.test) for part in call.flow.conditions)
        return cls(_Seen.at(call), identity, module.info, dtype, surely, whole, next(iter(_roots(subject)), ""))

    def precedes(self, later: _Seen) -> bool:
        """Does the program surely cast before `later`, on a path that goes through both?"""
        if self.undone or _exclusive(self.seen.conditions, later.conditions):
            return False
        function = self.seen.function
        # Functions are read in any order; but what a module's statements or `__init__` do comes first, and so does
        # what was done where the model was made.
        return (
            self.seen.scope is later.scope or function is None or function.name == "__init__" or self._made_in(function)
        )

    def _made_in(self, function: FunctionInfo) -> bool:
        key = self.identity[1]
        if not key.startswith("@"):
            return False
        line = int(key[1:].partition(":")[0])
        body = [*function.node.body] if isinstance(function.node.body, list) else []
        return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)


def _undone(cast: _Cast, call: Call) -> None:
    cast.undone = True


def _mode_set(cast: _Cast, call: Call) -> None:
    given = call.constant(0, "mode") if call.args or call.keywords else True
    cast.training = call.method == "train" and given is True


def _called(cast: _Cast, call: Call) -> None:
    cast.called = cast.called or not cast.undone


_EFFECTS: dict[str, Callable[[_Cast, Call], None]] = {"train": _mode_set, "eval": _mode_set}
"""What methods of the module say of it, after the cast."""

_WIDE = frozenset({"float32", "float64"})
_NOT_ONE_MODEL = frozenset({"self", "submodule"})
"""Keys of a module's own `self`, and of the variable of a loop over submodules."""

_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.Transformer"})
_MODEL_NAME = re.compile(r"model|net(work)?$|unet|transformer$|classifier$", re.IGNORECASE)
"""How models are called, where the name is all that tells them from layers."""


def _identity(key: Key, flow: Flow) -> Identity:
    function = flow.function
    return (function.owner if function is not None and key.startswith("self") else None), key


def _exclusive(some: list[Condition], others: list[Condition]) -> bool:
    from dtlint.infer.conditions import exclusive  # loaded only once a model is cast: rules start up with every run

    return exclusive(some, others)


_TRAINER = re.compile(r"optim|adam|adagrad|adafactor|rmsprop|sgd|lamb(?!da)|\blion|\bmuon|clip_grad", re.IGNORECASE)
"""How functions are called that train the parameters they are given: optimizers from elsewhere, gradient clipping."""


def _called_name(call: Call) -> str:
    return call.target or path_of(call.node.func) or ""


_DIVIDER = re.compile(r"freeze|adapter|peft|lora|cast_training|upcast", re.IGNORECASE)


def _divides(call: Call, name: str) -> bool:
    """`model.encoder.requires_grad_(False)`, `freeze(model.encoder)`, `get_peft_model(model, config)`."""
    if call.method == "requires_grad_":
        return call.constant(0, "requires_grad") is False
    return _is_divider(name)


@lru_cache(maxsize=16_384)
def _trains(name: str) -> bool:
    return _TRAINER.search(name) is not None


@lru_cache(maxsize=16_384)
def _is_divider(name: str) -> bool:
    return _DIVIDER.search(name) is not None


def _roots(node: ast.AST) -> set[str]:
    """The names in an expression, with the attribute where the name is `self`."""
    roots = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - {"self", "torch"}
    return roots | {
        f"self.{part.attr}"
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
    }


@kept
def _hands_out(scope: ast.AST, root: str) -> bool:
    """Does a function ask the model of that name for its parameters? Who trains it must."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("parameters", "named_parameters")
        and path_of(node.value) == root
        for node in ast.walk(scope)
    )


@kept
def _optimizes(scope: ast.AST) -> bool:
    """Does a function step an optimizer? A backward pass alone may be a measurement, or an attack on the input."""
    return any(
        isinstance(node, ast.Attribute)
        and (node.attr == "zero_grad" or (node.attr == "step" and "optim" in (path_of(node.value) or "").lower()))
        for node in ast.walk(scope)
    )


_SAVING = frozenset({"torch.save", "torch.onnx.export", "torch.jit.trace", "torch.jit.script", "torch.export.export"})
_SAVING_METHODS = frozenset({"save_pretrained", "push_to_hub", "state_dict", "save_checkpoint"})


@kept
def _saves(scope: ast.AST) -> bool:
    """Does a function write models out? Then half may be the format of the file."""
    return any(
        isinstance(node, ast.Attribute) and (node.attr in _SAVING_METHODS or path_of(node) in _SAVING)
        for node in ast.walk(scope)
    )


def _in_module(function: FunctionInfo | None) -> bool:
    return function is not None and function.owner is not None and function.owner.is_module


def _is_whole(function: FunctionInfo | None, module: Module, path: str) -> bool:
    """Is it a model and not a layer? By its class, or else its name; what a module keeps in itself is a part of it."""
    if _in_module(function):
        return False
    if module.info is not None or not module.name.startswith("torch.nn."):
        return True
    named = _MODEL_NAME.search(path.rpartition(".")[2]) is not None
    return named and module.name in ("torch.nn.Module", *_CONTAINERS)


# -- what is said -----------------------------------------------------------------------------------------------------

_ADAMS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop"})
"""Optimizers that divide by a root of gradients plus an eps, which is 1e-8 unless it is given."""


def _of_training(cast: _Cast) -> Finding:
    by = cast.trained_by
    optimizer = "" if by is None or "eps" in by.keywords else by.target.rpartition(".")[2]
    if cast.dtype == "float16":
        also = f"does the eps of {optimizer}, 1e-8" if optimizer in _ADAMS else "do updates below 1/4096 of a weight"
        message = f"Training with float16 weights: gradients below 3e-8 become 0, and so {also}"
    else:
        message = "Training with bfloat16 weights: updates below 1/512 of a weight are lost"
    by_optimizer = by is not None and by.target.startswith("torch.optim.")
    what = "its parameters are trained here" if by_optimizer else "its loss goes backward here"
    return Finding(
        cast.seen.node,
        message,
        help="Keep the weights in float32 and compute the loss under "
        f"`torch.autocast(device_type, dtype=torch.{cast.dtype})`",
        notes=() if by is None else ((by.node, what),),
    )


def _of_inference(cast: _Cast) -> Finding:
    effect = (
        "values beyond 65504 become inf, and those below 3e-8 become 0"
        if cast.dtype == "float16"
        else "weights, norms and softmax keep 8 bits of precision"
    )
    return Finding(
        cast.seen.node,
        f"The whole model computes in {cast.dtype}: {effect}",
        help=f"Keep float32 weights, and run under `torch.autocast(device_type, dtype=torch.{cast.dtype})`",
        severity=Severity.INFO,
    )
