"""DT406: a sum that does not fit the half that it is computed in."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._attained import dtypes_of, only
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._needs import HALF, TORCH, attributes
from dtlint_rules._totals import sums_of_squares
from dtlint_rules._uses import uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["ReductionInHalf"]

_SUMS = ("sum", "nansum", "prod", "cumsum", "cumprod")
"""What grows with the number of elements. All of them take `dtype=`, which they compute and return."""
_ENDS = {"float16": "float16 ends at 65504", "bfloat16": "beyond 256 bfloat16 does not count ones"}


class ReductionInHalf(Rule):
    """A sum, a product or a variance that leaves the range of half.

    ## What it does
    Reports the sum of all squares of a float16 tensor of several dimensions, without `dtype=`.

    Conditional, and so reported with `--preview` only: any `sum`, `prod` and `cumsum` of a float16 or bfloat16 tensor,
    which may be too small for that to matter.

    ## Why it matters
    The kernels add in float32, but the result is half: a thousand values of 100 add up to inf in float16, and beyond
    256 a bfloat16 sum of ones does not count. Squares overflow before they are added: `x * x` is inf from 256 on.
    Autocast on CUDA computes sums in float32; a mean, and a product `x * x`, it does not.

    ## Example
    ```python
    import torch

    x = torch.full((1000,), 100.0, dtype=torch.float16)
    total = x.sum()
    ```

    ## Use instead
    ```python
    import torch

    x = torch.full((1000,), 100.0, dtype=torch.float16)
    total = x.sum(dtype=torch.float32)
    ```

    ## Fix safety
    The fix adds `dtype=torch.float32` to a sum. It is unsafe, for the result is float32 then, and so is what is
    computed from it.

    ## References
    - [torch.sum](https://docs.pytorch.org/docs/stable/generated/torch.sum.html)
    """

    code, name = "DT406", "reduction-in-half"
    fix = Applicability.UNSAFE
    triggers = HALF
    needs = (TORCH, attributes(_SUMS))

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        told = set()
        for finding in sums_of_squares(facts):
            told.add(finding.node)
            yield finding
        for use in uses(facts, *_SUMS):
            summed = use.values[0] if use.values else None
            whole = isinstance(summed, Tensor) and summed.rank != 0 and only(summed, LOW_PRECISION)
            if not whole or "dtype" in use.keywords or use.node in told or dtypes_of(use.result) - LOW_PRECISION:
                continue
            dtypes = dtypes_of(summed)
            ends = _ENDS | ({"bfloat16": "bfloat16 keeps 8 bits of it"} if "prod" in use.name else {})
            yield Finding(
                use.node,
                f"`{use.name}` of a tensor that is {' or '.join(sorted(dtypes))} gives the same: {', and '.join(ends[one] for one in sorted(dtypes))}",
                help="Pass `dtype=torch.float32`",
                conditional=True,
                fix=partial(pass_dtype, name="torch.float32", message=f"Compute `{use.name}` in float32"),
            )
