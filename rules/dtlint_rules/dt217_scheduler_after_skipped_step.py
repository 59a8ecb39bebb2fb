"""DT217: a learning-rate scheduler steps though the GradScaler may have skipped the optimizer's step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import GradScaler
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["SchedulerAfterSkippedStep"]


class SchedulerAfterSkippedStep(Rule):
    """A scheduler steps in every iteration, though the GradScaler skips steps of the optimizer.

    ## What it does
    Reports `scheduler.step()` behind `scaler.step(optimizer)` in the same block of a loop, where nothing compares the
    scale before and after.

    It is off unless selected: nearly every program with a GradScaler does this, and it costs a warning and a few
    iterations of the schedule at the start, while the scaler seeks its scale.

    ## Why it matters
    The scaler begins with 65536 and skips the optimizer's step while gradients overflow. A scheduler that steps all the
    same moves on without training, and where the very first step is skipped torch warns that `lr_scheduler.step()` was
    called before `optimizer.step()`. In a short warm-up or a one-cycle schedule the skipped iterations count.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(3):
        scaler.scale(model(torch.randn(4, 8)).pow(2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(3):
        scaler.scale(model(torch.randn(4, 8)).pow(2).mean()).backward()
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= scale:
            scheduler.step()
    ```

    ## References
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler)
    - [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
    """

    code, name, default = "DT217", "scheduler-after-skipped-step", False
    triggers = ("*Scaler*", "*scaler*")
    needs = (("*sched*", "*Sched*", "*SCHED*"),)
    calls = frozenset({"step"})

    def __init__(self) -> None:
        self.stepped: dict[int, ast.Call] = {}
        """Steps of scalers, by the block that they stand in."""

    def on_call(self, call: Call) -> Iterator[Finding]:
        if call.method != "step" or not isinstance(call.node.func, ast.Attribute):
            return
        block, owner = id(call.flow.block), call.node.func.value
        if isinstance(call.receiver, GradScaler) or "scaler" in last_name(owner).lower():
            self.stepped[block] = call.node
        elif "sched" in last_name(owner).lower() and block in self.stepped and not _asks_scale(call.flow.scope):
            yield Finding(
                call.node,
                f"`{path_of(owner)}` steps even where the scaler skips the optimizer's step",
                help="Step it only if `scaler.update()` did not lower `scaler.get_scale()`",
                notes=((self.stepped.pop(block), "skipped if gradients overflow"),),
            )


def _asks_scale(scope: ast.AST) -> bool:
    """Does the function look at the scale, or at what the step gave?"""
    return any(isinstance(node, ast.Attribute) and node.attr in ("get_scale", "_scale") for node in nodes([scope]))
