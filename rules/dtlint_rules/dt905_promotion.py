"""DT905: one operand raised the result of a half-precision operand to a wider dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

HALF = frozenset(("float16", "bfloat16"))


class Promotion(RuntimeRule):
    """An operand raised a float16 or bfloat16 operand's result to a wider float.

    ## What it does
    Reports operators whose dimensioned operands had several float dtypes, and names the operand that raised the
    result and where its dtype came from. 0-dim tensors and Python numbers raise nothing and are not reported. Under
    autocast a float32 residual stream is by design, so there it is information; and so it is where the program cast
    the wide operand itself, or where it was made inside the same operator.

    ## Why it matters
    What follows runs in the wider dtype: twice the memory, no tensor cores, or an error at the next Linear. A buffer
    of float32 in a half model is the usual reason.

    ## Example
    ```python
    import torch

    x = torch.randn(4, 8).to(torch.bfloat16)
    position = torch.linspace(0, 1, 8)
    print((x * position).dtype)
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(4, 8).to(torch.bfloat16)
    position = torch.linspace(0, 1, 8).to(x.dtype)
    print((x * position).dtype)
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT905", "promotion", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per expression of the forward that promoted; the backward follows from it."""
        found = [
            entry
            for entry in record.entries
            if entry.finding == "promoted"
            and entry.phase == "forward"
            and not self._within(record, entry)
            and HALF & {operand.dtype for operand in entry.inputs if not operand.zero_dim}
        ]
        for group in record.by_line(found):
            entry = group[0]
            culprit = entry.inputs[entry.culprit or 0]
            low = next(o.dtype for o in entry.inputs if o.dtype in HALF and not o.zero_dim)
            expected = (entry.autocast and entry.output == "float32") or self._meant(record, entry)
            yield record.diagnostic(
                self,
                entry.place,
                f"{low} was raised to {entry.output} by a {culprit.dtype} operand, {record.origin(culprit)},"
                f" in {entry.op}{record.modules(group)}, {record.calls(group)}",
                help=f"cast that operand to {low} where it is made, if the wider result is not meant",
                severity=Severity.INFO if expected else None,
            )

    def _within(self, record: TraceRecord, entry: Entry) -> bool:
        """Was the wide operand made within the same composite operator, as attention widens its own scores?"""
        origin = entry.inputs[entry.culprit or 0].origin
        return bool(entry.inside) and origin is not None and record.entries[origin].place == entry.place

    def _meant(self, record: TraceRecord, entry: Entry) -> bool:
        """Was the wide operand cast by the program itself, or made within this very operator?"""
        origin = entry.inputs[entry.culprit or 0].origin
        if origin is None:
            return False
        maker = record.entries[origin]
        return maker.author == "asked" or maker.place == entry.place
