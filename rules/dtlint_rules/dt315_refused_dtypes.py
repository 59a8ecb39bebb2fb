"""DT315: an op gets a tensor of a dtype that it does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import KNOWN, TORCH
from dtlint_rules._refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["RefusedDtypes"]


class RefusedDtypes(Rule):
    """An op gets a tensor of a dtype that it does not have.

    ## What it does
    Reports a call whose operand has a dtype that the code shows, and that torch refuses on the CPU and on CUDA alike: real
    numbers in what is for complex ones, integers in what makes complex ones, floats that are shifted by bits. Ops are
    looked up in the table of what torch does.
    Operands that disagree are the matter of DT301, half of DT311, and integers of DT309.

    ## Why it matters
    The call raises, perhaps hours after the program was started.

    ## Example
    ```python
    import torch

    power = torch.zeros(4, dtype=torch.float32)
    parts = torch.view_as_real(power)
    ```

    ## Use instead
    ```python
    import torch

    power = torch.zeros(4, dtype=torch.float32)
    parts = torch.view_as_real(power.to(torch.complex64))
    ```

    ## References
    - [Tensor dtypes](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch-dtype)
    """

    code, name, severity = "DT315", "refused-dtypes", Severity.ERROR
    triggers = KNOWN
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)
