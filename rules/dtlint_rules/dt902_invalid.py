"""DT902: an operator gave NaN from inputs that had none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Event

HELP_RATE = "look at the learning rate, and at what computes it"
HELP_OF = dict.fromkeys(
    ("std", "var", "std_mean", "var_mean"), "of a single value it is 0/0: give correction=0, or more values"
)
HELP_NUMBER = "look at the line where the program computes this number"
HELP_ZERO = "keep the divisor away from 0 with an eps that its dtype can hold"
HELP = "keep the input inside the function's domain: clamp it, or add an eps that the dtype can hold"


def _help(record: TraceRecord, event: Event) -> str:
    """What to do about the cause, where that is known."""
    if event.by_eps or event.entry is None:
        return event.help_with_eps or (HELP_RATE if event.by_rate else "")
    if record.zero(event):
        return HELP_ZERO
    return event.help_with_growth or HELP_OF.get(record.entries[event.entry].op, HELP)


class Invalid(RuntimeRule):
    """An operator gave NaN from inputs that held none.

    ## What it does
    Reports where a NaN was born: the square root or logarithm of a negative number, 0/0, inf - inf. Operators that
    only inherited it are counted, not reported.

    ## Why it matters
    NaN survives every operation and reaches the loss and the weights; by then the line that made it is long past.

    ## Example
    ```python
    import torch

    variance = torch.tensor([1.0, -1e-7]) * 1.0
    print(torch.sqrt(variance).sum())
    ```

    ## Use instead
    ```python
    import torch

    variance = torch.tensor([1.0, -1e-7]) * 1.0
    print(torch.sqrt(variance.clamp(min=0.0)).sum())
    ```

    ## References
    - [torch.sqrt](https://docs.pytorch.org/docs/stable/generated/torch.sqrt.html)
    """

    code, name, severity = "DT902", "invalid", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line at which a NaN was born."""
        for group in record.events_of("invalid"):
            event = group[0]
            spans = " and ".join(f"[{r.low:.4g}, {r.high:.4g}]" for r in event.inputs)
            number = event.number
            given = number is not None and not math.isfinite(number)
            yield record.diagnostic(
                self,
                event.place,
                f"{record.what(event)} {f'was given the number {number}, and ' * given}gave NaN{record.when(event)}"
                + (f" from inputs in {spans}" if spans else "")
                + record.written(event)
                + f"{record.zero(event)}{event.by_eps}{event.by_rate}{event.by_growth}: {event.fate}",
                help=HELP_NUMBER if given else _help(record, event),
                severity=record.severity(event, Severity.INFO if record.harmless(event) else None),
            )
