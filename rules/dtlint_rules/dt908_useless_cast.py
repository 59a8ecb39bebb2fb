"""DT908: a value was cast and cast straight back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

BITS = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 16}


class UselessCast(RuntimeRule):
    """A value was cast to a wider dtype and straight back, with nothing computed in between.

    ## What it does
    Reports casts whose input is the untouched result of a cast from the very dtype that they restore. Only widening
    round trips count, and narrowing ones that autocast made: a program that rounds on purpose is left alone. Casts of
    the backward mirror the forward's and are not reported.

    ## Why it matters
    Each cast reads and writes the whole tensor and keeps a second copy of it alive; under autocast such pairs can
    cost more than the lower precision saves.

    ## Example
    ```python
    import torch

    x = torch.randn(64, 64).half()
    y = x.float()
    print(y.half().sum())
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(64, 64).half()
    print(x.sum())
    ```

    ## References
    - [Autocast operator reference](https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference)
    """

    code, name, severity = "DT908", "useless-cast", Severity.INFO

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per expression that undoes a cast."""
        found = [entry for entry in record.entries if entry.round_trips and self._useless(record, entry)]
        for group in record.by_line(found):
            entry = group[0]
            assert entry.undoes is not None
            first = record.entries[entry.undoes]
            trips = sum(e.round_trips for e in group)
            nbytes = sum(2 * e.nbytes // e.count * e.round_trips for e in group)
            source, middle = entry.output, entry.inputs[-1].dtype
            yield record.diagnostic(
                self,
                entry.place,
                f"{source} was cast to {middle} and straight back to {source}{record.modules(group)},"
                f" {trips} time{'s' * (trips != 1)}, {nbytes / 1e6:.3g} MB moved",
                help="use the value as it was before both casts",
                notes=((first.place, f"cast to {middle} here ({first.author})"),),
            )

    def _useless(self, record: TraceRecord, entry: Entry) -> bool:
        if entry.phase != "forward" or entry.undoes is None:
            return False
        authors = {entry.author, record.entries[entry.undoes].author}
        widened = BITS.get(entry.inputs[-1].dtype, 0) > BITS.get(entry.output or "", 99)
        return "backward" not in authors and (widened or "autocast" in authors)
