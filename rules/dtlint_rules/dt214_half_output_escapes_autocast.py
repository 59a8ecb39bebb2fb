"""DT214: what autocast computed in half is used outside of it as if it were float32."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Region, Tensor, Unknown, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import is_on, opened_around

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["HalfOutputEscapesAutocast"]

_LOSSES = tuple(
    f"torch.nn.functional.{name}"
    for name in (
        *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"),
        *("binary_cross_entropy_with_logits", "cosine_embedding_loss", "triplet_margin_loss"),
    )
)
_LOSS_LAYERS = tuple(
    f"torch.nn.{name}.__call__"
    for name in (
        *("CrossEntropyLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "BCEWithLogitsLoss"),
        *("NLLLoss", "CosineEmbeddingLoss", "TripletMarginLoss"),
    )
)


class HalfOutputEscapesAutocast(Rule):
    """An output of autocast is used in half outside of the region.

    ## What it does
    Reports a loss that is computed outside autocast on what was computed inside, and is half.

    Conditional, and so reported with `--preview` only: what a model gave of which nothing is known, and nothing has cast.

    ## Why it matters
    Linear and convolutional layers return half under autocast. Inside the region losses, softmax and norms are cast up
    to float32; outside nothing is: cross entropy of bfloat16 logits is a bfloat16 number, with 3 digits, and a float32
    layer raises. Losses belong into the region, and what leaves it wants `.float()`.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    model = torch.nn.Linear(8, 4)
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
    loss = F.cross_entropy(logits, y)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    model = torch.nn.Linear(8, 4)
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
    ```

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT214", "half-output-escapes-autocast"
    triggers = ("*autocast*",)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls(*_LOSSES, *_LOSS_LAYERS):
            if isinstance(call.region, Region) or not call.node.args or not isinstance(call.node.args[0], ast.Name):
                continue
            made = facts.around.definition(call.node.args[0])
            region = facts.region(made)
            known = _is_half(call.args[0])
            if not is_on(region) or known is False or (known is None and not _is_of_model(facts, made)):
                continue
            opened, dtype = opened_around(facts, made), region.dtype if isinstance(region, Region) else None
            yield Finding(
                call.node,
                f"The loss is computed in {dtype or 'half'}, outside the autocast that made its input",
                help="Compute the loss inside the region, or cast with `.float()`",
                notes=() if opened is None else ((opened[1], "computed under this autocast"),),
                conditional=known is None,
            )


def _is_half(value: Value) -> bool | None:
    """Is a tensor half? None where its dtype is not known."""
    if not isinstance(value, (Tensor, Unknown)) or value.dtypes is None:
        return None
    return value.dtypes <= LOW_PRECISION


def _is_of_model(facts: ModuleFacts, made: ast.expr) -> bool:
    """Is it what a model gave of which nothing is known: the result of calling an object or an attribute?"""
    calls: tuple[Call, ...] = tuple(facts.calls_at(made)) if isinstance(made, ast.Call) else ()
    return bool(calls) and all(not call.name and isinstance(call.result, Unknown) for call in calls)
