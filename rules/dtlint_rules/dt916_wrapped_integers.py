"""DT916: integers wrapped around, or a cast to integers cut its values to 0."""

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

FEWEST = 64
"""Values other than 0, cut to 0 without exception, below which that says nothing."""

BYTES = frozenset(("uint8", "int8"))
"""What integers are cut to on purpose, as where they are packed or hashed."""


class WrappedIntegers(RuntimeRule):
    """Values did not fit the integer dtype that they were put into.

    ## What it does
    Looks, on a sample of the calls, at casts to integers and at sums and products of integers of at most 32 bits, and
    reports those whose exact values lie beyond the dtype: they wrapped around, and of a float the result is not even
    defined. Floats that are not finite are left to the rules that tell where these came from. It also reports a cast
    that cut each of at least 64 values to 0, as one of probabilities does. That integers are cut to bytes is
    information; arithmetic in int64, as in a hash, is not looked at.

    ## Why it matters
    200 becomes -56 in int8, and a counter of int32 turns negative after 2,147,483,647, without an error or a NaN.

    ## Example
    ```python
    import torch

    x = torch.linspace(-300, 300, 16)
    print(x.to(torch.int8).sum())
    ```

    ## Use instead
    ```python
    import torch

    x = torch.linspace(-300, 300, 16)
    print(x.round().clamp(-128, 127).to(torch.int8).sum())
    ```

    ## References
    - [torch.iinfo](https://docs.pytorch.org/docs/stable/type_info.html)
    """

    code, name, severity = "DT916", "wrapped-integers", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per expression."""
        found = [entry for entry in record.entries if entry.wrapped or _all_cut(entry)]
        for group in record.by_line(found):
            entry = max(group, key=lambda entry: entry.wrapped)
            output = entry.output or ""
            yield record.diagnostic(
                self,
                entry.place,
                self._message(entry, output) + record.modules(group),
                help=self._help(entry, output),
                severity=Severity.INFO
                if output in BYTES and _is_integer(entry.inputs[-1].dtype) and _casts(entry)
                else None,
            )

    def _message(self, entry: Entry, output: str) -> str:
        if not entry.wrapped:
            return (
                f"all of {entry.nonzero:,} sampled values other than 0 became 0 as they were cast from"
                f" {entry.inputs[-1].dtype} to {output}"
            )
        low, high = int(DTYPES[output].min), int(DTYPES[output].max)
        beyond = (
            f"{entry.wrapped:,} of {entry.looked:,} sampled values lie beyond {output}, which holds {low} to {high},"
        )
        if _casts(entry):
            return f"{beyond} and were cast to it from {entry.inputs[-1].dtype}"
        return f"{beyond} and wrapped around in {entry.op}"

    def _help(self, entry: Entry, output: str) -> str:
        if not entry.wrapped:
            return "scale or round the values before the cast"
        return "clamp the values before the cast, or cast to a wider dtype" if _casts(entry) else "compute it in int64"


def _all_cut(entry: Entry) -> bool:
    return entry.nonzero >= FEWEST and entry.cut == entry.nonzero


def _casts(entry: Entry) -> bool:
    return bool(entry.author)


def _is_integer(dtype: str) -> bool:
    return "int" in dtype
