"""DT206: parameters that a GradScaler is to unscale are float16."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule
from dtlint_rules._scalers import called_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["Fp16ParamsWithScaler"]


class Fp16ParamsWithScaler(Rule):
    """Parameters in float16 are trained with a GradScaler.

    ## What it does
    Reports `scaler.step(optimizer)` where the parameters that the optimizer trains were cast to float16.

    ## Why it matters
    `scaler.unscale_` and `scaler.step` raise "Attempting to unscale FP16 gradients." for float16 parameters. They must
    be float32: autocast makes the float16 copies that the forward pass computes with.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    loss = model(torch.randn(4, 8).half()).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(4, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## References
    - [torch.amp.GradScaler.unscale_](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler.unscale_)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT206", "fp16-params-with-scaler"
    triggers = ("*Scaler*", "*scaler*")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("step of half parameters"):
            yield Finding(
                seen.node,
                'The parameters are float16: GradScaler raises "Attempting to unscale FP16 gradients."',
                help="Keep the model float32 and run its forward under autocast",
                elsewhere=called_from(seen),
            )
