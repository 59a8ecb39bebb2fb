"""DT914: an operator refused the dtypes of its operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import DtypeError


HELP = "cast one of them where it is made, or run the whole block under autocast"
HELP_NUMBER = "write -inf or torch.finfo(x.dtype).min to bar positions, or compute in float32 (x.float())"


class DtypeErrorMet(RuntimeRule):
    """An operator raised because of the dtypes of its operands.

    ## What it does
    Reports each expression at which an operator refused its dtypes, and says where each operand's dtype was decided.
    So too where an operator is given a number that its operand's dtype cannot hold, such as -1e9 in float16.
    The exception itself carries the same as a note. An error that the program caught is information.

    ## Why it matters
    The exception names two dtypes and the operator; what one needs to know is which line made the operand half, or
    left it float32, and that may be far away.

    ## Example
    ```python
    import torch

    x = torch.randn(4, 4).half()
    weight = torch.randn(4, 4)
    print(x @ weight)
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(4, 4).half()
    weight = torch.randn(4, 4)
    print(x @ weight.to(x.dtype))
    ```

    ## References
    - [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch-dtype)
    """

    code, name, severity = "DT914", "dtype-error", Severity.ERROR

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per error."""
        for error in record.errors:
            yield record.diagnostic(
                self,
                error.place,
                f"{error.op} {_why(error)}: {_told(record, error)}",
                help=HELP_NUMBER if error.too_large else HELP,
                severity=None if error.fatal else Severity.INFO,
                notes=tuple(
                    (record.entries[operand.origin].place, f"{name} became {operand.dtype} here")
                    for name, operand in zip(error.arguments, error.operands, strict=False)
                    if operand.origin is not None
                ),
            )


def _why(error: DtypeError) -> str:
    return "was given a number beyond the range of its dtype" if error.too_large else "refused its operands"


def _told(record: TraceRecord, error: DtypeError) -> str:
    return "; ".join(
        f"{name} is {operand.dtype}, from {record.origin(operand)}"
        for name, operand in zip(error.arguments, error.operands, strict=False)
    )
