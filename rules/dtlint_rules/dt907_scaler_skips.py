"""DT907: the GradScaler skipped more steps than it needs to find its scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Scaler

WARM_UP = 16
"""Halvings from the usual first scale of 65536 down to 1."""

GROWTH_INTERVAL = 2000
"""torch.amp.GradScaler doubles its scale after so many good steps; the skip that may follow is usual."""


class ScalerSkips(RuntimeRule):
    """The GradScaler skipped steps beyond its search for a scale.

    ## What it does
    Counts skipped steps exactly and names the operator whose overflow caused most of them. Skips before the first
    good step are the scale finding its level, and one skip per 2000 steps is the scale trying to grow: neither is
    reported. Reported are later skips, a run in which no step was ever taken, and skips whose cause is a NaN or inf of
    the forward, which no scale can mend.

    ## Why it matters
    A skipped step trains nothing. A scale that falls below 1 means that gradients overflow float16 unscaled, and the
    scaler then halves it for ever while the loss stays where it was.

    ## Example
    ```python
    import torch

    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = (layer(torch.ones(2, 4)).half() * 60000.0).pow(2).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = layer(torch.ones(2, 4)).float().pow(2).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    ```

    ## References
    - [torch.amp.GradScaler](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code, name, severity = "DT907", "scaler-skips", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """At most one diagnostic per run."""
        scaler = record.scaler
        if scaler is None or not scaler.skipped:
            return
        why = self._why(record, scaler)
        if why is None:
            return
        place = scaler.place
        cause = ""
        notes: tuple[tuple[int, str], ...] = ()
        if scaler.causes:
            event = record.events[scaler.causes[0].event]
            cause = f"; {record.what(event)} caused {scaler.causes[0].count} of them"
            if event.place is not None:
                place, notes = event.place, () if scaler.place is None else ((scaler.place, "the scaler updates here"),)
        hopeless = scaler.skipped == scaler.updates and scaler.updates > WARM_UP
        yield record.diagnostic(
            self,
            place,
            f"GradScaler skipped {scaler.skipped} of {scaler.updates} steps, {why}{cause}",
            help="find why gradients are not finite: the loss scale cannot mend an overflow of the forward",
            severity=Severity.ERROR if hopeless or (scaler.scale or 1) < 1 else None,
            notes=notes,
        )

    def _why(self, record: TraceRecord, scaler: Scaler) -> str | None:
        forward = [c for c in scaler.causes if self._forward(record, c.event)]
        if forward:
            return "because the forward was not finite"
        if scaler.skipped == scaler.updates:
            return "and took none" if scaler.updates > 3 else None
        late = scaler.skipped - scaler.leading
        if late > 1 + scaler.updates // GROWTH_INTERVAL:
            return f"{late} of them after the first good step"
        return None

    def _forward(self, record: TraceRecord, event: int) -> bool:
        entry = record.events[event].entry
        return entry is not None and record.entries[entry].phase == "forward"
