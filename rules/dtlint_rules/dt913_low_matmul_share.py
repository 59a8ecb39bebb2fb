"""DT913: under autocast, most of the matrix work still ran in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord

ENOUGH = 0.5
"""A share of the work in half precision from which autocast does what it is for."""


class LowMatmulShare(RuntimeRule):
    """Autocast was on, and yet most matrix products and convolutions ran in float32.

    ## What it does
    Adds up the floating-point operations of matrix products, convolutions and attention by dtype, forward and
    backward. If autocast was used and less than half of them ran in 16 bits, it names the expression that took the
    most and why: autocast was off there, its operands were float64, or autocast does not cover the operator. A
    run that trains in a wide dtype and autocasts its evaluation alone is left alone.

    ## Why it matters
    The speed of mixed precision comes from these operators alone. Autocast that misses them costs its casts and
    saves nothing.

    ## Example
    ```python
    import torch

    encoder, head = torch.nn.Linear(256, 256), torch.nn.Linear(256, 2)
    features = encoder(torch.randn(8, 256))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head(features).float().pow(2).mean()
    loss.backward()
    ```

    ## Use instead
    ```python
    import torch

    encoder, head = torch.nn.Linear(256, 256), torch.nn.Linear(256, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = encoder(torch.randn(8, 256))
        loss = head(features).float().pow(2).mean()
    loss.backward()
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name, severity = "DT913", "low-matmul-share", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """At most one diagnostic per run."""
        from dtlint.trace.balance import only_evaluates, share_low, used_autocast, wide_work

        share = share_low(record)
        if share is None or share >= ENOUGH or not used_autocast(record) or only_evaluates(record):
            return
        wide = wide_work(record)
        heaviest = wide[0]
        part = heaviest.flops / sum(one.flops for one in wide)
        yield record.diagnostic(
            self,
            heaviest.entry.place,
            f"only {share:.0%} of the matrix work ran in half precision though autocast was used; {part:.0%} of the rest"
            f" is {heaviest.entry.op} here, in {heaviest.entry.output} because {heaviest.why}",
            help="run the whole forward and the loss inside one autocast block",
        )
