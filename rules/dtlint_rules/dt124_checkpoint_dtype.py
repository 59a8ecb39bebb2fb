"""DT124: a checkpoint whose dtype becomes that of the model in training."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Optimizer
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._parts import given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call

__all__ = ["CheckpointDtype"]

_SAVERS = frozenset({"torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model"})


class CheckpointDtype(Rule):
    """A model cast to half in place to be saved, or loaded in the dtype of the file and then trained.

    ## What it does
    Reports `torch.save(model.half().state_dict(), path)` where the model is trained further: in a loop, in a function
    that is handed the model, or before a backward pass. And `model.load_state_dict(state, assign=True)` where an
    optimizer is then made over the model's parameters, and nothing casts the model in between.

    ## Why it matters
    `Module.half` casts in place. What was meant for the file happens to the model: after the first checkpoint,
    training goes on in float16, gradients below 6e-8 become 0, and GradScaler raises `Attempting to unscale FP16
    gradients`.

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
    needs = (("state_dict", "load_state_dict"),)

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
            for node in ast.walk(argument):
                path = _halved(node)
                if path is None or not isinstance(node, ast.Call):
                    continue
                whole = isinstance(parent := around.get(node), ast.Attribute) and parent.attr == "state_dict"
                if whole and _goes_on(call, path):
                    yield Finding(
                        node,
                        f"`{path}` itself is cast to half here, in place: whatever uses it after the save goes on "
                        "in half",
                        help="Cast the tensors of its state dict, or a copy: `copy.deepcopy(model).half()`",
                    )

    def _trained(self, call: Call, optimizer: Optimizer) -> Iterator[Finding]:
        for key in optimizer.of:
            load = self.assigned.pop((call.flow.scope, key), None)
            if load is not None:
                yield Finding(
                    load.node,
                    "With `assign=True` the model takes the dtype of the file, and is trained in it",
                    help="Cast the model to float32 after loading, or load without `assign=True`",
                    notes=((call.node, "its parameters are trained here"),),
                )


def _halved(node: ast.AST) -> str | None:
    """The path that `path.half()` or `path.bfloat16()` casts."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return path_of(node.func.value) if node.func.attr in ("half", "bfloat16") and not node.args else None


def _goes_on(call: Call, path: str) -> bool:
    """Is the model used behind the save, and not cast back first?"""
    flow, line = call.flow, call.node.end_lineno or call.node.lineno
    first = flow.loops[-1].node.lineno if flow.loops else line + 1
    behind = [
        node.func
        for node in own_nodes(flow.scope)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.lineno > line or node.lineno >= first)
    ]
    if any(method.attr in ("float", "to") and path_of(method.value) == path for method in behind):
        return False
    handed = path.partition(".")[0] in {parameter.arg for parameter in parameters(flow.scope)}
    return handed or bool(flow.loops) or any(method.attr in ("backward", "train") for method in behind)
