"""DT609: a LightningModule that optimizes by hand calls `backward` past the trainer's scaler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import External
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["UnscaledManualBackward"]

_TRAINERS = ("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
_SCALED = ("16-mixed", "16", 16)


class UnscaledManualBackward(Rule):
    """`loss.backward()` goes past the scaler of Lightning's trainer under manual optimization.

    ## What it does
    Reports calls of `backward` in the methods of a LightningModule that sets `automatic_optimization = False`, where the
    file makes a Trainer with `precision="16-mixed"`.

    ## Why it matters
    The trainer steps the optimizers with a GradScaler, which raises "Attempted unscale_ but _scale is None" or "No inf
    checks were recorded for this optimizer." where no loss went through it. `self.manual_backward(loss)` scales the loss.

    ## Example
    ```python
    import lightning as L
    import torch
    from torch import nn

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.layer = nn.Linear(8, 1)

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            loss = self.layer(batch).mean()
            loss.backward()
            optimizer.step()

    trainer = L.Trainer(accelerator="gpu", precision="16-mixed")
    ```

    ## Use instead
    ```python
    import lightning as L
    import torch
    from torch import nn

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.layer = nn.Linear(8, 1)

        def training_step(self, batch, index):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            loss = self.layer(batch).mean()
            self.manual_backward(loss)
            optimizer.step()

    trainer = L.Trainer(accelerator="gpu", precision="16-mixed")
    ```

    ## References
    - [Manual optimization](https://lightning.ai/docs/pytorch/stable/model/manual_optimization.html)
    """

    code, name = "DT609", "unscaled-manual-backward"
    triggers = ("automatic_optimization",)
    needs = ((".backward",), ("precision",))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        scaled = next((call for call in facts.calls(*_TRAINERS) if _is_scaled(call)), None)
        if scaled is None:
            return
        for part in facts.around.of_kind(ast.ClassDef):
            if not _is_manual(facts, part):
                continue
            for node in nodes([part]):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
                    owner = node.func.value
                    if isinstance(owner, ast.Name) and owner.id != "self":
                        yield Finding(
                            node,
                            "The loss goes past the trainer's GradScaler, which raises when it steps the optimizer",
                            help=f"Use `self.manual_backward({owner.id})`",
                            notes=((scaled.node, "the trainer scales here"),),
                        )


def _is_scaled(call: Call) -> bool:
    value = call.constant(None, "precision")
    return not isinstance(value, bool) and value in _SCALED and call.constant(None, "accelerator") != "cpu"


def _is_manual(facts: ModuleFacts, part: ast.ClassDef) -> bool:
    """Is a class a LightningModule that sets `automatic_optimization` to False?"""
    bases = [facts.value(base) for base in part.bases]
    if not any(isinstance(base, External) and base.name.rpartition(".")[2] == "LightningModule" for base in bases):
        return False
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is False
        and any(isinstance(to, ast.Attribute) and to.attr == "automatic_optimization" for to in node.targets)
        for node in nodes([part])
    )
