"""DT207: binary_cross_entropy of probabilities under autocast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.values import Module
from dtlint.rule import Finding, Rule
from dtlint_rules._refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call
    from dtlint.infer.facts import ModuleFacts

__all__ = ["BceInAutocast"]


class BceInAutocast(Rule):
    """`binary_cross_entropy` and `BCELoss` raise under autocast on CUDA.

    ## What it does
    Reports `torch.nn.functional.binary_cross_entropy` and calls of a `torch.nn.BCELoss` inside an autocast region that
    is not one of the CPU.

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

    calls = frozenset({"__call__", "binary_cross_entropy"})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterator[Finding]:
        region = call.flow.autocast
        if region is None or region.device == "cpu":
            return
        loss = call.receiver
        is_layer = isinstance(loss, Module) and loss.name == "torch.nn.BCELoss" and call.target.endswith("__call__")
        if is_layer or call.target == "torch.nn.functional.binary_cross_entropy":
            what = "BCELoss" if is_layer else "binary_cross_entropy"
            yield Finding(
                call.node,
                f"`{what}` raises under autocast on CUDA",
                help="Use the `with_logits` form without the sigmoid, or cast to float32 outside autocast",
                notes=() if region.made is None else ((region.made, "autocast begins here"),),
            )
