"""DT409: a softmax that is computed in half where it could be float32."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._needs import TORCH
from dtlint_rules._texts import short
from dtlint_rules._uses import is_callers, is_half, uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["SoftmaxInHalf"]


class SoftmaxInHalf(Rule):
    """A softmax without `dtype=torch.float32` where half can reach.

    ## What it does
    Reports `softmax` and `log_softmax` without a `dtype`, of float16 and bfloat16. The rule is off unless it is selected.
    Most attention is written so; autocast on CUDA computes a softmax in float32 anyway, and for a row of some hundred
    scores float16 does well. Select it for a model that runs in float16 or bfloat16 itself, or under autocast on a CPU,
    which leaves a softmax in bfloat16.

    Conditional, and so reported with `--preview` only: tensors of the dtype of a parameter or a weight, which may be half.

    ## Why it matters
    Of a row of a thousand equal scores, each probability is 1/1000, which bfloat16 holds to 8 bits, and float16 not at
    all once the row is long enough: below 6e-8 it is 0. Long rows add up to less or more than 1.

    ## Example
    ```python
    import torch

    scores = torch.randn(4, 8, dtype=torch.bfloat16)
    weights = torch.softmax(scores, dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    scores = torch.randn(4, 8, dtype=torch.bfloat16)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
    ```

    ## Fix safety
    The fix adds `dtype=torch.float32`. It is unsafe: the weights are float32 then, and have to be cast back before they
    meet half again.

    ## References
    - [torch.nn.functional.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html)
    """

    code, name = "DT409", "softmax-in-half"
    fix = Applicability.UNSAFE
    default = False
    triggers = ("log_softmax", "softmax")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for use in uses(facts, "softmax", "log_softmax"):
            if "dtype" in use.keywords or not use.nodes:
                continue
            value = use.values[0]
            known, given = is_half(value), facts.tensor(use.node) if isinstance(use.node, ast.expr) else None
            if isinstance(given, Tensor) and given.dtypes and not is_half(given):
                continue  # autocast computes it in float32
            if known or (isinstance(value, Tensor) and is_callers(value)):
                yield Finding(
                    use.node,
                    f"In half `{use.name}` of `{short(use.nodes[0])}` rounds small probabilities to 0",
                    help="Pass `dtype=torch.float32`, and cast the result back",
                    conditional=not known,
                    fix=partial(pass_dtype, name="torch.float32", message="Compute the softmax in float32"),
                )
