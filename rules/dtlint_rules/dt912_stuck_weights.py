"""DT912: weights in half precision did not move, because the update was less than half of their last digit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Weight

MOST = 0.5
"""A share of values that keep still from which the weight is stuck: a few always are."""

FEWEST = 16
"""Values below which a share says nothing."""


SPOILT = frozenset(("gradients", "weights"))
"""What says nothing of how weights move, once it is not finite."""


class StuckWeights(RuntimeRule):
    """Weights in float16 or bfloat16 kept their values though their gradient was not 0.

    ## What it does
    On a sample of the steps it compares values of each half weight before and after `optimizer.step()`, and reports
    weights of which more than half of the values that had a gradient did not change by a single bit. Steps with a
    learning rate of 0 do not count, nor do gradients that are no more than rounding, as of a bias that a softmax or a
    norm makes irrelevant, nor runs whose gradients or weights were not finite.

    ## Why it matters
    bfloat16 has 8 significant bits: a weight near 1 moves by 0.004 or not at all. With a usual learning rate most
    updates are smaller and round to nothing, and training stalls though loss and gradients look healthy.

    ## Example
    ```python
    import torch

    layer = torch.nn.Linear(16, 16).to(torch.bfloat16)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-5)
    for _ in range(4):
        optimizer.zero_grad()
        layer(torch.ones(4, 16, dtype=torch.bfloat16)).float().pow(2).mean().backward()
        optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    layer = torch.nn.Linear(16, 16)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-5)
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = layer(torch.ones(4, 16)).float().pow(2).mean()
        loss.backward()
        optimizer.step()
    ```

    ## References
    - [Revisiting BFloat16 Training](https://arxiv.org/abs/2010.06192)
    """

    code, name, severity = "DT912", "stuck-weights", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per call of step()."""
        if any(event.hurts and SPOILT & set(event.reached) for event in record.events):
            return
        by: dict[int | None, list[Weight]] = {}
        for weight in record.weights:
            if weight.checked >= FEWEST:
                by.setdefault(weight.place, []).append(weight)
        for place, weights in by.items():
            stuck = sorted((w for w in weights if w.share_stuck > MOST), key=lambda w: -w.checked)
            if not stuck:
                continue
            share = sum(w.stuck for w in stuck) / sum(w.checked for w in stuck)
            yield record.diagnostic(
                self,
                place,
                f"{len(stuck)} of {len(weights)} half weights hardly move: {share:.0%} of their values that had a gradient"
                f" kept still in {stuck[0].dtype}, as in {stuck[0].name}",
                help="keep the weights in float32 and use autocast, or an optimizer that rounds stochastically",
            )
