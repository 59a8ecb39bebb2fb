"""DT911: values came near the largest that their dtype holds, or would not fit the dtype that was asked about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.dtypes.dtype import DTYPES, FLOATING
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

NEAR = 0.5
"""A share of the limit from which the next doubling overflows."""


class NearLimit(RuntimeRule):
    """Values came within a factor of 2 of the largest that their dtype holds.

    ## What it does
    Reports operators whose largest magnitude over the run was more than half of their dtype's limit, though none
    overflowed. Numbers that the program writes to bar positions, such as -1e4 or finfo.min in a mask, do not count,
    and nor do gradients under a GradScaler, which holds them as high as it can. With `--assume float16` it reports the
    results of a run in wider dtypes that float16 could not hold.

    ## Why it matters
    What is at half of 65504 today overflows on the next batch, or after the weights have grown a little. A run that
    is fine in bfloat16 may not be in float16.

    ## Example
    ```python
    import torch

    x = torch.full((4, 4), 200.0).half()
    print(x.pow(2).mean().item())
    ```

    ## Use instead
    ```python
    import torch

    x = torch.full((4, 4), 200.0).half()
    print(x.float().pow(2).mean().item())
    ```

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html)
    """

    code, name, severity = "DT911", "near-limit", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line that came near, and none where a value was born that is not finite."""
        overflowed = {_line(record, event.place) for event in record.events if event.place is not None}
        groups: dict[tuple[str, int], list[Entry]] = {}
        for entry in record.entries:
            if self._near(record, entry) and _line(record, entry.place) not in overflowed:
                groups.setdefault(_line(record, entry.place), []).append(entry)
        for group in sorted(groups.values(), key=lambda group: -max(entry.reach for entry in group)):
            entry = max(group, key=lambda entry: entry.reach)
            output, assume = entry.output or "", self._assumed(record, entry)
            limit = DTYPES[assume or output].max
            share = f"{entry.reach / limit:.0%} of {assume or output}'s limit of {limit:.6g}"
            backward = "the backward of " if entry.phase == "backward" else ""
            kept = assume and _kept_by_autocast(entry.op)
            yield record.diagnostic(
                self,
                entry.place,
                f"{backward}{entry.op}{record.modules(group)} reaches {entry.reach:.5g} in {output}: {share}"
                + (", though autocast on CUDA would keep it in float32" if kept else ""),
                help="keep this in float32 if the model is to run in float16"
                if assume
                else "compute this in float32, or scale the operands down first",
                severity=Severity.INFO if kept else None,
            )

    def _near(self, record: TraceRecord, entry: Entry) -> bool:
        if entry.output not in FLOATING or entry.nonfinite:
            return False
        if entry.phase == "backward" and record.scaler is not None:
            return False
        assume = self._assumed(record, entry)
        return entry.reach > (DTYPES[assume].max if assume else NEAR * DTYPES[entry.output].max)

    def _assumed(self, record: TraceRecord, entry: Entry) -> str:
        """The dtype asked about, where it is narrower in range than the one that ran."""
        wider = entry.output is not None and record.assume and DTYPES[entry.output].max > DTYPES[record.assume].max
        return record.assume if wider else ""


def _line(record: TraceRecord, place: int) -> tuple[str, int]:
    return record.places[place].file, record.places[place].line


def _kept_by_autocast(op: str) -> bool:
    from dtlint.dtypes.table import load

    name = op.strip("_").removeprefix("native_")
    policies = (load().autocast("cuda", f"{where}.{name}") for where in ("torch", "torch.nn.functional"))
    return any(policy is not None and policy.startswith("fp32") for policy in policies)
