"""DT906: float64 entered a program that computes in narrower floats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry


class Float64(RuntimeRule):
    """float64 appeared where nobody asked for it.

    ## What it does
    Reports operators that raised a narrower float to float64 or made float64 from other dtypes, and, as information,
    computation on float64 data that came from outside, as NumPy arrays do. Casts and `dtype=torch.float64` that the
    program wrote are not reported, nor anything if float64 is the default dtype.

    ## Why it matters
    NumPy's default is float64 and torch keeps it: memory doubles, GPUs compute float64 at a fraction of their speed,
    MPS cannot at all, and the next Linear raises `expected m1 and m2 to have the same dtype`.

    ## Example
    ```python
    import numpy as np
    import torch

    weight = torch.from_numpy(np.linspace(0.0, 1.0, 4))
    print((torch.randn(4) * weight).dtype)
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    weight = torch.from_numpy(np.linspace(0.0, 1.0, 4, dtype=np.float32))
    print((torch.randn(4) * weight).dtype)
    ```

    ## References
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    """

    code, name, severity = "DT906", "float64", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per expression at which float64 entered."""
        found = [entry for entry in record.entries if entry.phase == "forward" and self._entered(entry)]
        for group in record.by_line(found):
            entry = group[0]
            yield record.diagnostic(
                self,
                entry.place,
                f"{self._message(record, entry)} in {entry.op}{record.modules(group)}, {record.calls(group)}",
                help="make the data float32 where it enters: .float(), or dtype=np.float32 in NumPy",
                severity=Severity.INFO if entry.finding == "float64-data" else None,
            )

    def _entered(self, entry: Entry) -> bool:
        raised = entry.finding == "promoted" and entry.output == "float64"
        return raised or entry.finding in ("float64", "float64-data")

    def _message(self, record: TraceRecord, entry: Entry) -> str:
        if entry.finding == "float64":
            return "float64 was made from " + " and ".join(sorted({o.dtype for o in entry.inputs}))
        assert entry.culprit is not None
        culprit = entry.inputs[entry.culprit]
        if entry.finding == "float64-data":
            return f"a float64 operand, {record.origin(culprit)}, is computed on in float64"
        return f"the result is float64 because of one operand, {record.origin(culprit)},"
