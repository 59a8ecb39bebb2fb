"""DT901: a result went past the largest value of its dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord

HELP = {
    "float16": "compute this in float32 (x.float()), scale the operands down first, or use bfloat16",
    "bfloat16": "scale the operands down before this operation, or clamp them",
    "float32": "scale the operands down before this operation, or clamp them",
}

HELP_RATE = "lower the learning rate, or warm it up"

FULL = (
    "an operand holds the dtype's own limit, as a mask of torch.finfo(dtype).min does: give masked_fill the scores, or"
    " mask with a smaller number"
)
"""What to do where a mask was added."""


class Overflow(RuntimeRule):
    """A result went past the largest value of its dtype and became inf.

    ## What it does
    Reports the operator whose finite inputs gave an inf, not the ones that inherited it. An inf that the program
    gives as a constant, such as a mask of -inf, is not reported, nor is an overflow of scaled gradients that made
    the GradScaler skip the step, which is how it finds its scale.

    ## Why it matters
    float16 ends at 65504. One inf becomes NaN at the next subtraction, division or softmax, and from there spreads
    through the loss to every weight.

    ## Example
    ```python
    import torch

    x = torch.full((2, 64), 300.0).half()
    print((x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)).sum())
    ```

    ## Use instead
    ```python
    import torch

    x = torch.full((2, 64), 300.0).half()
    y = x.float()
    print((y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).half().sum())
    ```

    ## References
    - [Automatic mixed precision: examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name, severity = "DT901", "overflow", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line at which an inf was born."""
        for group in record.events_of("overflow"):
            event = group[0]
            operands = record.operands(event)
            inputs = f", {operands}" if operands else ""
            yield record.diagnostic(
                self,
                event.place,
                f"{record.what(event)} overflowed {event.dtype}{record.when(event)}{inputs}{event.by_eps}{event.by_rate}{event.by_growth}: {event.fate}",
                help=event.help_with_eps
                or (HELP_RATE if event.by_rate else event.help_with_growth)
                or (FULL if event.fills_dtype else HELP.get(event.dtype, "")),
                severity=record.severity(event, Severity.INFO if record.harmless(event) else None),
            )
