"""DT910: values became 0 in float16, or so small that most of their digits are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.dtypes.dtype import DTYPES
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

SHARE = 0.1
"""A share of lost values from which a cast is worth a word: the tail of a distribution is always lost."""

FEWEST = 64
"""Sampled values below which a share says nothing."""

MANY = 0.25
"""A share of the float16 gradients from which their smallness is the run's, and not one operator's."""


class Underflow(RuntimeRule):
    """Values became 0 in float16, or fell below what it holds with all its digits.

    ## What it does
    Counts, on a sample of the calls, how many values other than 0 a cast to float16 turns into 0, and reports casts
    that lose a tenth or more of at least 64 values, as a share of fewer says nothing. Without a GradScaler it also
    reports a run in which a quarter of the gradients computed in float16 never reach 6.1e-05, its smallest normal
    value. With `--assume float16` it tells the same of a run in wider dtypes. In the forward a loss of tiny activations
    is information: attention weights near 0 mean nothing.

    ## Why it matters
    float16 ends at 6e-08 below. A gradient that is 0 trains nothing, and one that is nearly 0 trains on noise; the
    loss then stops falling without any sign of an error.

    ## Example
    ```python
    import torch

    layer = torch.nn.Linear(64, 64)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = layer(torch.ones(8, 64)).float().mean() * 1e-4
    loss.backward()
    ```

    ## Use instead
    ```python
    import torch

    layer = torch.nn.Linear(64, 64)
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.float16):
        loss = layer(torch.ones(8, 64)).float().mean() * 1e-4
    scaler.scale(loss).backward()
    ```

    ## References
    - [Gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    """

    code, name, severity = "DT910", "underflow", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per cast that loses values, and one for the gradients as a whole."""
        losing = [entry for entry in record.entries if entry.sampled >= FEWEST and entry.share_lost >= SHARE]
        casts = [entry for entry in losing if entry.author and entry.output == "float16"]
        for group in record.by_line(casts):
            yield self._cast(record, group)
        if record.assume:
            yield from self._assumed(record, [entry for entry in losing if entry.output != "float16"])
        sound = not any(event.hurts for event in record.events)  # gradients of a loss that is NaN say nothing
        if sound and record.scaler is None and not any(entry.phase == "backward" for entry in casts):
            yield from self._gradients(record)

    def _cast(self, record: TraceRecord, group: list[Entry]) -> Diagnostic:
        entry = max(group, key=lambda entry: entry.share_lost)
        source, backward = entry.inputs[-1].dtype, entry.phase == "backward"
        return record.diagnostic(
            self,
            entry.place,
            f"{entry.share_lost:.0%} of the {'gradient ' if backward else ''}values became 0 as they were cast from"
            f" {source} to float16{record.modules(group)}",
            help="scale the loss with a GradScaler, or use bfloat16" if backward else "keep these values in float32",
            severity=None if backward else Severity.INFO,
        )

    def _gradients(self, record: TraceRecord) -> Iterator[Diagnostic]:
        tiny = DTYPES["float16"].tiny
        half = [e for e in record.entries if e.phase == "backward" and e.output == "float16" and e.reach]
        small = [entry for entry in half if entry.reach < tiny]
        if not small or len(small) < MANY * len(half):
            return
        entry = max(small, key=lambda entry: (entry.flops, entry.count))
        yield record.diagnostic(
            self,
            entry.place,
            f"gradients never reach {tiny:.2g}, float16's smallest normal value, in {len(small)} of {len(half)}"
            f" operators of the backward; here they end at {entry.reach:.2g}",
            help="scale the loss with torch.amp.GradScaler, or use bfloat16",
        )

    def _assumed(self, record: TraceRecord, lost: list[Entry]) -> Iterator[Diagnostic]:
        for group in record.by_line([entry for entry in lost if entry.phase == "forward"]):
            entry = max(group, key=lambda entry: entry.share_lost)
            yield record.diagnostic(
                self,
                entry.place,
                f"{entry.share_lost:.0%} of the values of {entry.op}{record.modules(group)} would be 0 in {record.assume}",
                help="keep this in float32",
                severity=Severity.INFO,
            )
        backward = [entry for entry in lost if entry.phase == "backward"]
        if backward:
            entry = max(backward, key=lambda entry: entry.lost)
            yield record.diagnostic(
                self,
                entry.place,
                f"gradients of {len(backward)} operators would be 0 in {record.assume} for a tenth of their values or"
                f" more; here {entry.share_lost:.0%}",
                help="with float16, scale the loss with torch.amp.GradScaler",
                severity=Severity.INFO,
            )
