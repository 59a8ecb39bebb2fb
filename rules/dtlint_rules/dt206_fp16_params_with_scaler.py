"""DT206: parameters that a GradScaler is to unscale are float16."""

from __future__ import annotations

import ast
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
    Reports where parameters become float16 that a GradScaler's optimizer trains; `scaler.step(optimizer)` where that is in
    another file. A program that binds a method of its own for GradScaler's `_unscale_grads_` is left alone.

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
    triggers = ("*Scaler*", "*scaler*", "Accelerator")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        refused = list(facts.events("step of half parameters"))
        if not refused or _replaces_unscaling(facts):
            return
        steps: dict[ast.expr, dict[ast.expr, None]] = {}
        for seen in refused:
            since = [one for place in seen.what.about[2:] if isinstance(one := facts.place(place), ast.expr)]
            for one in since:
                steps.setdefault(one, {})[seen.node] = None
            if not since:
                yield Finding(
                    seen.node, f"The parameters are float16: {_RAISES}", help=_HELP, elsewhere=called_from(seen)
                )
        for node, at in steps.items():
            notes = tuple((step, "GradScaler steps them here") for step in at)
            yield Finding(node, f"Trained parameters become float16 here: {_RAISES}", help=_HELP, notes=notes)


def _replaces_unscaling(facts: ModuleFacts) -> bool:
    """Does the file bind another method for the one of GradScaler that refuses float16 gradients?"""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and one.attr == "_unscale_grads_"
        for one in ast.walk(facts.tree)
    )


_RAISES = 'GradScaler raises "Attempting to unscale FP16 gradients."'
_HELP = "Keep what is trained float32 and run its forward under autocast"
