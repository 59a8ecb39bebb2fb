"""DT402: a number is beyond the range of the dtype that it is put into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule
from dtlint_rules._beyond import PUTTING, made_beyond, put_beyond
from dtlint_rules._needs import HALF_BY_NAME, SMALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["ConstantOverflow"]


class ConstantOverflow(Rule):
    """A number is beyond the range of the dtype that it is put into.

    ## What it does
    Reports numbers that meet a tensor whose dtype, float16 or an integer, does not have them: in
    `torch.tensor(1e5, dtype=torch.float16)` and `torch.arange(300, dtype=torch.uint8)`, in arithmetic with a float16
    tensor, in `clamp` and `fill_`, in `x[0] = 70000`, in `labels[mask] = -1` where `labels` is uint8, in casts of what was
    made of such a number, and in the limit of one dtype that is put into another,
    `torch.full((3,), torch.iinfo(torch.int64).min, dtype=torch.int32)`. The dtype must be known; masks of floats are the
    matter of DT401.

    ## Why it matters
    float16 ends at 65504. `torch.full`, and `clamp` on the CPU, raise for a number beyond that, while `torch.tensor`,
    arithmetic and casts give inf. Of the integers, `torch.tensor([-1], dtype=torch.uint8)` is 255, without a word.

    ## Example
    ```python
    import torch

    limit = torch.tensor(100000.0, dtype=torch.float16)
    ```

    ## Use instead
    ```python
    import torch

    limit = torch.tensor(100000.0, dtype=torch.bfloat16)
    ```

    ## References
    - [torch.finfo and torch.iinfo](https://docs.pytorch.org/docs/stable/type_info.html)
    """

    code, name = "DT402", "constant-overflow"
    triggers = (*HALF_BY_NAME, *SMALL, "iinfo", "finfo")

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        yield from put_beyond(facts, PUTTING)
        yield from made_beyond(facts)
