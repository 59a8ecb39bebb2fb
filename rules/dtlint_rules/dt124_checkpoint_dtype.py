"""DT124: a checkpoint whose dtype becomes that of the model in training."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Optimizer
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._names import last_name
from dtlint_rules._parts import given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call

__all__ = ["CheckpointDtype"]

_SAVERS = frozenset({"torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model"})


class CheckpointDtype(Rule):
    """A model cast to half in place to be saved, or loaded in the dtype of the file and then trained.

    ## What it does
    Reports `torch.save(model.half().state_dict(), path)`, and `{"model": model.half()}` where that dict is saved, if
    the model is trained further: in a loop, in a function that is handed the model, or before a backward pass. And
    `model.load_state_dict(state, assign=True)` where an optimizer is then made over the model's parameters, and
    nothing casts the model in between.

    Conditional, and so reported with `--preview` only: a model that is saved itself, where only its key says that
    it is one.

    ## Why it matters
    `Module.half` casts in place. What was meant for the file happens to the model: after the first checkpoint,
    training goes on in float16, gradients below 6e-8 become 0, and GradScaler raises `Attempting to unscale FP16
    gradients`. Where the model is cast back, `model.float()`, each weight has lost all but 11 bits of it.

    `load_state_dict` copies into the parameters that are there, in their dtype; with `assign=True` the parameters of
    the file take their place, and a file saved in half makes a half model of it.

    ## Example
    ```python
    import torch
    from torch import nn

    def train(model: nn.Module, batches, optimizer):
        for step, batch in enumerate(batches):
            model(batch).sum().backward()
            optimizer.step()
            torch.save(model.half().state_dict(), f"step{step}.pt")
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    def train(model: nn.Module, batches, optimizer):
        for step, batch in enumerate(batches):
            model(batch).sum().backward()
            optimizer.step()
            state = model.state_dict()
            state = {key: value.half() if value.is_floating_point() else value for key, value in state.items()}
            torch.save(state, f"step{step}.pt")
    ```

    ## References
    - [torch.nn.Module.half](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half)
    - [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
    """

    code, name = "DT124", "checkpoint-dtype"
    triggers = (".half", "self.half", ".bfloat16", "self.bfloat16", "assign")
    needs = (("state_dict", "load_state_dict", ".save", "save"),)

    def __init__(self) -> None:
        self.assigned: dict[tuple[ast.AST, str], Call] = {}
        """Loads that take the file's dtype, by the scope and key of the module, as long as nothing has cast it."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target in _SAVERS:
            return self._saved(call)
        if isinstance(call.receiver, Module):
            key = (call.flow.scope, call.receiver.key)
            if call.method == "load_state_dict" and call.constant(None, "assign") is True:
                self.assigned[key] = call
            elif call.method in ("to", "float", "double", "half", "bfloat16", "type"):
                self.assigned.pop(key, None)
        elif self.assigned and isinstance(call.result, Optimizer):
            return self._trained(call, call.result)
        return ()

    def _saved(self, call: Call) -> Iterator[Finding]:
        around = parents(call.flow.tree)
        for argument in given(call.node):
            held = source_of(argument, call.flow) or argument
            for node in ast.walk(held):
                path = _halved(node)
                if path is None or not isinstance(node, ast.Call):
                    continue
                whole = isinstance(parent := around.get(node), ast.Attribute) and parent.attr == "state_dict"
                if (whole or (isinstance(held, ast.Dict) and _is_kept(node, held))) and _goes_on(call, path):
                    fate = (
                        "casting back does not restore the weights"
                        if _is_cast_back(call, path)
                        else "after the save it goes on in half"
                    )
                    yield Finding(
                        node,
                        f"`{path}` itself is cast to half, in place: {fate}",
                        help="Cast a copy, `copy.deepcopy(model).half()`, or the tensors of the state dict",
                        conditional=not whole,
                    )

    def _trained(self, call: Call, optimizer: Optimizer) -> Iterator[Finding]:
        for key in optimizer.of:
            load = self.assigned.pop((call.flow.scope, key), None)
            if load is not None:
                yield Finding(
                    load.node,
                    "With `assign=True` the model is trained in the dtype of the file",
                    help="Cast the model to float32 after loading, or load without `assign=True`",
                    notes=((call.node, "its parameters are trained here"),),
                )


def _halved(node: ast.AST) -> str | None:
    """The path that `path.half()` or `path.bfloat16()` casts: `model` of `(model.module if parallel else model).half()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    cast = node.func.value
    if isinstance(cast, ast.IfExp):
        paths = {(path_of(each) or "").removesuffix(".module") for each in (cast.body, cast.orelse)}
        path = paths.pop() if len(paths) == 1 else None
    else:
        path = path_of(cast)
    return path if node.func.attr in ("half", "bfloat16") and not node.args else None


def _is_kept(node: ast.expr, held: ast.Dict) -> bool:
    """Is it an item of the dict, alone or in a tuple, under a name that speaks of models? Tensors are saved in half, too."""
    for key, value in zip(held.keys, held.values, strict=True):
        if node in (value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]):
            return isinstance(key, ast.Constant) and key.value in _MODELS
    return False


_MODELS = frozenset({"model", "net", "network", "ema", "model_ema", "ema_model", "generator", "discriminator"})


_COPIES = frozenset({"deepcopy", "copy", "clone"})


def _goes_on(call: Call, path: str) -> bool:
    """Is the model used behind the save, and is it no copy?"""
    flow, line = call.flow, call.node.lineno
    bound = assignments(flow.scope).get(path, ())
    if flow.loops and any(at >= flow.loops[-1].node.lineno for at, _ in bound):
        return False  # each iteration has a model of its own
    if any(at <= line and isinstance(made, ast.Call) and last_name(made) in _COPIES for at, made in bound):
        return False
    if flow.loops:
        return True
    if _is_cast_back(call, path):
        return False  # saved once, perhaps at the end
    handed = path.partition(".")[0] in {parameter.arg for parameter in parameters(flow.scope)}
    return handed or any(method.attr in ("backward", "train") for method in _behind(call))


def _is_cast_back(call: Call, path: str) -> bool:
    return any(method.attr in ("float", "to") and path_of(method.value) == path for method in _behind(call))


def _behind(call: Call) -> Iterator[ast.Attribute]:
    """The methods that are called behind the save, or in the loop around it."""
    line = call.node.end_lineno or call.node.lineno
    first = call.flow.loops[-1].node.lineno if call.flow.loops else line + 1
    for node in own_nodes(call.flow.scope):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.lineno > line or node.lineno >= first:
            yield node.func
