"""DT918: gradients were clipped while they still had the GradScaler's scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule
from dtlint.trace.words import shorten, times

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord


class ScaledClip(RuntimeRule):
    """Gradients were clipped while they still had the GradScaler's scale.

    ## What it does
    Reports calls of `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` that clipped gradients which the GradScaler
    divided by its scale only after that. Both are seen in the run: the very gradients that were clipped, and the scale
    that they had then. A limit that changes with the scale was made for gradients with the scale, as
    `max_norm * scaler.get_scale()`, and is left alone. While the scale has not changed, so is a limit of at least 1/64 of
    it. So is a call that clipped nothing. What DT203 finds in the source may also stand in a library, or depend on a flag.

    ## Why it matters
    With a scale of 65536, gradients that are clipped to norm 1 have norm 1.5e-05 once the scaler has divided them.
    With SGD the model hardly learns, and nothing says so.

    ## Example
    ```python
    import torch

    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(layer(torch.ones(2, 4)).pow(2).sum()).backward()
    torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(layer(torch.ones(2, 4)).pow(2).sum()).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    ```

    ## References
    - [Working with unscaled gradients](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#working-with-unscaled-gradients)
    """

    code, name, severity = "DT918", "scaled-clip", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per call in the source."""
        for clip in record.clips:
            what = "their largest value" if clip.by_value else "their norm"
            yield record.diagnostic(
                self,
                clip.place,
                f"{shorten(record.places[clip.place].expression)} clipped gradients that had the GradScaler's scale of"
                f" {clip.scale:g}, {times(clip.times)}: {what} was {clip.size:.3g} in step {clip.step + 1}, which is"
                f" {clip.size / clip.scale:.2g} without the scale, and was clipped to {clip.limit:g}, which is"
                f" {clip.limit / clip.scale:.2g}",
                help="call scaler.unscale_(optimizer) before it",
            )
