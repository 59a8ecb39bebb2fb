"""DT917: a running total or average in half precision no longer moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import DTYPES
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

FEWEST = 3
"""Sampled additions in a row that changed nothing, below which that may be chance."""

OFTEN = 8
"""Calls of a factor that changes nothing, below which it may be no average's."""

FACTORS = frozenset(("mul", "mul_"))


class StalledTotal(RuntimeRule):
    """What is added to a running total or average in float16 or bfloat16 is too small to change it.

    ## What it does
    Follows, on a sample of the steps, additions to a tensor of half precision that no gradient flows through, in place
    or as in `total = total + x`, and reports those that in the end leave nearly all values as they are though what is
    added is not 0. It also reports a factor, as the decay of an average, that is so near to 1 that the product is what
    it was.

    ## Why it matters
    bfloat16 has 8 significant bits: 256 + 1 is 256. A loss that is summed up over an epoch, a counter or an average of
    the weights stands still from there on, and nothing tells.

    ## Example
    ```python
    import torch

    total = torch.zeros((), dtype=torch.bfloat16)
    for _ in range(600):
        total += 1
    print(total)
    ```

    ## Use instead
    ```python
    import torch

    total = torch.zeros(())
    for _ in range(600):
        total += 1
    print(total)
    ```

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html)
    """

    code, name, severity = "DT917", "stalled-total", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per expression."""
        for group in record.by_line([entry for entry in record.entries if entry.stalled >= FEWEST]):
            entry = max(group, key=lambda entry: entry.stalled)
            yield record.diagnostic(
                self,
                entry.place,
                f"the last {entry.stalled} of {entry.sums} sampled additions left the {entry.inputs[0].dtype} values as they were"
                f"{record.modules(group)}: what {entry.op.strip('_')} adds is less than half of their last digit",
                help="keep the running value in float32",
            )
        for group in record.by_line([entry for entry in record.entries if _is_one(entry)]):
            entry = group[0]
            yield record.diagnostic(
                self,
                entry.place,
                f"multiplying by {entry.number:.6g} changes nothing in {entry.output}, where the number nearest below 1"
                f" is {1 - DTYPES[entry.output or ''].eps / 2:.6g}{record.modules(group)}, {record.calls(group)}",
                help="keep the running value in float32",
            )


def _is_one(entry: Entry) -> bool:
    """Is the factor another number than 1, and does each product round to what was multiplied?"""
    if entry.number is None or entry.output not in ("float16", "bfloat16") or entry.op not in FACTORS:
        return False
    return entry.count >= OFTEN and 0 < abs(entry.number - 1) < DTYPES[entry.output].eps / 4
