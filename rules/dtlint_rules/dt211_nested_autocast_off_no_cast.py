"""DT211: what autocast computed in half goes uncast into a region that switches autocast off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.rule import Finding, Rule
from dtlint_rules._refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["NestedAutocastOffNoCast"]


class NestedAutocastOffNoCast(Rule):
    """A half result of autocast enters a layer where autocast is switched off.

    ## What it does
    Reports what raises under `torch.autocast(..., enabled=False)` because one operand is half, by an autocast region
    around it, and the other float32: a linear, convolutional or recurrent layer, or a matrix product.

    ## Why it matters
    `enabled=False` only stops autocast from casting. The input is still half, the weight float32, and the layer raises
    "mat1 and mat2 must have the same dtype". The input has to be cast by hand: `h.float()`.

    ## Example
    ```python
    import torch

    body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = body(torch.randn(4, 8))
        with torch.autocast("cpu", enabled=False):
            y = head(h)
    ```

    ## Use instead
    ```python
    import torch

    body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = body(torch.randn(4, 8))
        with torch.autocast("cpu", enabled=False):
            y = head(h.float())
    ```

    ## References
    - [torch.autocast: subregions with enabled=False](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name, severity = "DT211", "nested-autocast-off-no-cast", Severity.ERROR
    triggers = ("*autocast*",)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)
