"""DT413: a moving average kept in half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule
from dtlint_rules._idle import idle_factors
from dtlint_rules._needs import HALF

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["EmaInHalf"]


class EmaInHalf(Rule):
    """An exponential moving average of weights is kept in half.

    ## What it does
    Reports `average.mul_(0.9999)` and `average.lerp_(x, 0.0001)` of a half tensor, where the step is so small that nothing
    moves: a factor that is 1 in the dtype, or a step that is lost beside 1.

    ## Why it matters
    Each step moves the average by `1 - decay` of the distance. In half such a small step rounds away: with a decay of
    0.999, twenty thousand steps towards 1.0 end at 0.73 in float16 and at 0.50 in bfloat16.

    ## Example
    ```python
    import torch

    average = torch.zeros(8, dtype=torch.bfloat16)

    for weights in torch.rand(100, 8):
        average.lerp_(weights.bfloat16(), 0.0001)
    ```

    ## Use instead
    ```python
    import torch

    average = torch.zeros(8, dtype=torch.float32)

    for weights in torch.rand(100, 8):
        average.lerp_(weights, 0.0001)
    ```

    ## References
    - [torch.optim.swa_utils.AveragedModel](https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html)
    """

    code, name = "DT413", "ema-in-half"
    triggers = HALF
    needs = ((".mul_", ".lerp_", "*="),)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return idle_factors(facts)
