"""DT217: a learning-rate scheduler steps though the GradScaler may have skipped the optimizer's step."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Ref
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        around = facts.around
        asking = {around.scope(call.node) for call in facts.methods("get_scale")}
        for step in facts.calls("torch.amp.GradScaler.step"):
            for other in facts.methods("step"):
                schedule = other.receiver
                kind = schedule.address.kind if isinstance(schedule, Ref) else ""
                if not isinstance(kind, str) or not kind.startswith("torch.optim.lr_scheduler."):
                    continue
                behind = around.block(other.node) is around.block(step.node) and other.node.lineno > step.node.lineno
                if behind and around.scope(step.node) not in asking and isinstance(other.node.func, ast.Attribute):
                    yield Finding(
                        other.node,
                        f"`{ast.unparse(other.node.func.value)}` steps even where the scaler skips the optimizer's step",
                        help="Step it only if `scaler.update()` did not lower `scaler.get_scale()`",
                        notes=((step.node, "skipped if gradients overflow"),),
                    )
