"""DT909: a batch or a weight was not finite when it was used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Event


class CameIn(RuntimeRule):
    """A batch, a weight or a constant held NaN or inf when the program used it.

    ## What it does
    Reports data that was non-finite before any traced operator touched it, at the line that first used it; and memory
    that NumPy or another thread changed later, at the line that met the change. Tensors whose only non-finite value
    is -inf are masks and are left alone.

    ## Why it matters
    No change of dtype mends data that is already broken, so this must be known first: a NaN in the data set, a
    damaged checkpoint, a weight that an earlier run spoilt.

    ## Example
    ```python
    import numpy as np
    import torch

    batch = torch.from_numpy(np.array([1.0, np.nan], dtype=np.float32))
    print((batch * 2).sum())
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    batch = torch.from_numpy(np.nan_to_num(np.array([1.0, np.nan], dtype=np.float32)))
    print((batch * 2).sum())
    ```

    ## References
    - [torch.nan_to_num](https://docs.pytorch.org/docs/stable/generated/torch.nan_to_num.html)
    """

    code, name, severity = "DT909", "came-in", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line that read bad data which then spread."""
        for group in record.events_of("came-in"):
            event = group[0]
            if not event.spread and not event.reached:
                continue
            yield record.diagnostic(
                self,
                event.place,
                f"{_what(record, event)}{record.when(event)}: {event.fate}",
                help=f"it was made where this trace does not look: {_elsewhere(record)}"
                if event.brought or event.entry is None
                else "check the data or the checkpoint with torch.isfinite before the loop",
                severity=Severity.ERROR if event.hurts else None,
            )


def _elsewhere(record: TraceRecord) -> str:
    """Where else to look."""
    if record.world > 1:
        return "see the other ranks' records too"
    return "trace all steps and all modules, without --steps, --every and --module"


def _what(record: TraceRecord, event: Event) -> str:
    if event.entry is None:
        whose = f"{event.brought} brought it so" if event.brought else "nothing that was traced had made it so"
        return f"the gradient was not finite, and {whose}: {record.what(event)} went bad"
    value = "NaN" if event.low != event.low else "inf"
    subject = event.subject or (
        f"what {event.brought} brought" if event.brought else "data from outside (a batch or a constant)"
    )
    return f"{subject} held {value} when {record.what(event)} used it"
