"""DT903: a function was evaluated where it is infinite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Event


HELP = "keep the argument away from 0 with an eps that its dtype can hold, or use the log-space form"
HELP_CTC = "leave such samples out, or pass zero_infinity=True"


HELP_LOG = {
    "_softmax": "take log_softmax of the scores, which does not leave the log space",
    "sigmoid": "take logsigmoid of the scores, or binary_cross_entropy_with_logits",
}
"""By the operator that gave the 0 of which a logarithm was taken."""


def _help(record: TraceRecord, event: Event) -> str:
    if event.entry is None or event.maker is None or not record.entries[event.entry].op.startswith("log"):
        return HELP
    return HELP_LOG.get(record.entries[event.maker].op, HELP)


class Pole(RuntimeRule):
    """A function was evaluated where it is infinite: log(0), x/0, rsqrt(0).

    ## What it does
    Reports the operator that met its pole, and whether the inf went anywhere. A logarithm of zero whose result is
    thrown away, or in training reaches neither the loss nor a gradient nor a weight, is information.

    ## Why it matters
    In float16 every number below 3e-8 is 0, so an eps of 1e-8 protects nothing. In a backward the pole often hides:
    the gradient of sqrt at 0 is inf, and 0 * inf is NaN.

    ## Example
    ```python
    import torch

    p = torch.softmax(torch.tensor([0.0, 200.0]), 0)
    print(-torch.log(p).sum())
    ```

    ## Use instead
    ```python
    import torch

    print(-torch.log_softmax(torch.tensor([0.0, 200.0]), 0).sum())
    ```

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html)
    """

    code, name, severity = "DT903", "pole", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line at which a function met its pole."""
        for group in record.events_of("pole"):
            event = group[0]
            died = not event.spread or not event.reached
            value = "inf" if event.high == math.inf else "-inf"
            ctc = event.entry is not None and record.entries[event.entry].op.endswith("ctc_loss")
            met = f"gave inf{record.when(event)}, as no alignment of a target with its input is possible"
            yield record.diagnostic(
                self,
                event.place,
                f"{record.what(event)} {met if ctc else f'met its pole{record.when(event)} and gave {value}{record.zero(event)}'}: {event.fate}",
                help=HELP_CTC if ctc else _help(record, event),
                severity=record.severity(event, Severity.INFO if died else None),
            )
