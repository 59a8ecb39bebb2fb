"""DT904: a softmax over a row in which everything is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Event


class FullyMaskedRow(RuntimeRule):
    """A softmax met a row in which every score is -inf, and gave NaN.

    ## What it does
    Tells the NaN of a fully masked row from other NaNs: its inputs are a mask's -inf, which alone is harmless.

    ## Why it matters
    A padded sequence of length 0, or a query that may attend to nothing, turns a whole row into NaN; through the
    backward it reaches every weight, though the row's output is never used.

    ## Example
    ```python
    import torch

    scores = torch.randn(2, 4)
    keep = torch.tensor([[True, True, False, False], [False, False, False, False]])
    print(scores.masked_fill(~keep, float("-inf")).softmax(-1).sum())
    ```

    ## Use instead
    ```python
    import torch

    scores = torch.randn(2, 4)
    keep = torch.tensor([[True, True, False, False], [False, False, False, False]])
    lowest = torch.finfo(scores.dtype).min
    print((scores.masked_fill(~keep, lowest).softmax(-1) * keep.any(-1, keepdim=True)).sum())
    ```

    ## References
    - [pytorch#131060: fully masked rows in attention](https://github.com/pytorch/pytorch/issues/131060)
    """

    code, name, severity = "DT904", "fully-masked-row", Severity.WARNING

    def _severity(self, record: TraceRecord, event: Event) -> Severity | None:
        if record.harmless(event):
            return Severity.INFO
        return None if record.trains else Severity.ERROR

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line at which a masked row gave NaN."""
        for group in record.events_of("masked-row"):
            event = group[0]
            yield record.diagnostic(
                self,
                event.place,
                f"{record.what(event)} gave NaN{record.when(event)} for a row in which everything is masked: {event.fate}",
                help="leave one position of each row unmasked, or mask with torch.finfo(dtype).min and zero the row after",
                severity=record.severity(event, self._severity(record, event)),
            )
