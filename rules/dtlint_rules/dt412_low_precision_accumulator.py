"""DT412: a running total kept in half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule
from dtlint_rules._needs import HALF
from dtlint_rules._totals import running_totals

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["LowPrecisionAccumulator"]


class LowPrecisionAccumulator(Rule):
    """A running total is kept in float16 or bfloat16.

    ## What it does
    Reports `total += x` and `total = total + x` in a loop, of half tensors without dimensions, and `total += x` of a half
    total and a float32 tensor, also where the loop stands around the call of the function that adds.

    ## Why it matters
    A total stops growing once it is so large that what is added is less than half of the gap to the next number. Ten
    thousand times 0.7 add up to 2048 in float16 and to 256 in bfloat16, instead of 7000.

    ## Example
    ```python
    import torch

    total = torch.zeros((), dtype=torch.bfloat16)
    for loss in torch.rand(1000):
        total += loss
    ```

    ## Use instead
    ```python
    import torch

    total = torch.zeros((), dtype=torch.float32)
    for loss in torch.rand(1000):
        total += loss
    ```

    ## References
    - [Numerical accuracy](https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html)
    """

    code, name = "DT412", "low-precision-accumulator"
    triggers = HALF

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return running_totals(facts)
