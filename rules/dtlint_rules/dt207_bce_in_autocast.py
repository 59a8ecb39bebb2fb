"""DT207: binary_cross_entropy of probabilities under autocast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Region
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import is_on, opened_around
from dtlint_rules._refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["BceInAutocast"]


class BceInAutocast(Rule):
    """`binary_cross_entropy` and `BCELoss` raise under autocast on CUDA.

    ## What it does
    Reports `torch.nn.functional.binary_cross_entropy` and calls of a `torch.nn.BCELoss` inside an autocast region that
    is not one of the CPU, in the same function or opened by a caller.

    Conditional, and so reported with `--preview` only: a region of which the program decides whether it is on.

    ## Why it matters
    A probability near 0 or 1 is rounded to 0 or 1 in half precision, and its logarithm is infinite. torch therefore
    refuses: "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast". With logits the
    sigmoid and the logarithm are one operator, which autocast computes in float32.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    model = torch.nn.Linear(8, 1)
    with torch.autocast("cuda"):
        probability = torch.sigmoid(model(torch.randn(4, 8)))
        loss = F.binary_cross_entropy(probability, torch.ones(4, 1))
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    model = torch.nn.Linear(8, 1)
    with torch.autocast("cuda"):
        logit = model(torch.randn(4, 8))
        loss = F.binary_cross_entropy_with_logits(logit, torch.ones(4, 1))
    ```

    ## References
    - [Prefer binary_cross_entropy_with_logits](https://docs.pytorch.org/docs/stable/amp.html#prefer-binary-cross-entropy-with-logits-over-binary-cross-entropy)
    """

    code, name, severity = "DT207", "bce-in-autocast", Severity.ERROR
    triggers = ("*autocast*",)
    needs = (("binary_cross_entropy", "BCELoss"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        told = set()
        for call in facts.calls("torch.nn.functional.binary_cross_entropy", "torch.nn.BCELoss.__call__"):
            region = call.region
            if not is_on(region) or not isinstance(region, Region) or region.device == "cpu" or call.node in told:
                continue
            told.add(call.node)
            opened = opened_around(facts, call.node)
            what = "BCELoss" if call.name.endswith("__call__") else "binary_cross_entropy"
            yield Finding(
                call.node,
                f"`{what}` raises under autocast on CUDA",
                help="Use the `with_logits` form without the sigmoid, or cast to float32 outside autocast",
                notes=() if opened is None else ((opened[1], "autocast begins here"),),
                conditional=region.enabled is None,
            )
        yield from (one for one in refused(facts, self.code) if one.node not in told)
