"""DT915: a part of the program ran where the trace does not look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import RuntimeRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.record import TraceRecord


class Unseen(RuntimeRule):
    """A part of the program ran where the trace does not look, so its findings may be incomplete.

    ## What it does
    Tells what was not judged and how often: operators in other threads, in captured CUDA graphs, on sparse or nested
    tensors, results of tensor subclasses and of dtypes that have no range, values inside code that torch.compile
    compiled, or, with `--eager`, functions that it would have compiled. What is left out on purpose and made up for
    elsewhere is not told: the operators inside an optimizer's step, whose weights are judged after it.

    ## Why it matters
    A trace without findings says something only about what it saw. `--fail-on unseen` asks for all of it.

    ## Example
    ```python
    import torch

    x = torch.eye(4).to_sparse()
    print((x * 2.0).coalesce().values().sum())
    ```

    ## Use instead
    ```python
    import torch

    x = torch.eye(4)
    print((x * 2.0).sum())
    ```

    ## References
    - [torch.sparse](https://docs.pytorch.org/docs/stable/sparse.html)
    """

    code, name, severity = "DT915", "unseen", Severity.INFO

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per kind of thing that was not seen."""
        for unseen in record.unseen:
            if not unseen.by_design:
                yield record.diagnostic(self, unseen.place, f"not seen: {unseen.what} ({unseen.count:,})")
