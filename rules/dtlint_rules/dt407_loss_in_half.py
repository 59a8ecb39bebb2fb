"""DT407: a loss computed in half precision."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Const
from dtlint.rule import Finding, Rule
from dtlint_rules._attained import dtypes_of, found, last_name_of, only
from dtlint_rules._fixes import operand_text
from dtlint_rules._names import last_name
from dtlint_rules._needs import HALF, TORCH, attributes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["LossInHalf"]

_LOSSES = {
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"), 2),
    **dict.fromkeys(("binary_cross_entropy_with_logits", "poisson_nll_loss"), 2),
    **dict.fromkeys(("cross_entropy", "nll_loss"), 1),
    **dict.fromkeys(("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "BCEWithLogitsLoss"), 2),
    **dict.fromkeys(("CrossEntropyLoss", "NLLLoss"), 1),
}
"""Losses, and how many of their first arguments are floating: class numbers are not."""
_LOG_PROBABILITIES = dict.fromkeys(("log_softmax", "logsigmoid", "LogSoftmax", "LogSigmoid"), 1)
"""What losses, and ratios of probabilities, are made of."""
_COMPUTED = _LOSSES | _LOG_PROBABILITIES
_DISTANCES = frozenset({"l1_loss", "smooth_l1_loss", "huber_loss"})
"""Losses that lose nothing where they are not summed up."""


class LossInHalf(Rule):
    """A loss, or the log-probabilities that it is made of, computed in float16 or bfloat16.

    ## What it does
    Reports `F.mse_loss`, `F.cross_entropy` and their like, `F.log_softmax` and `F.logsigmoid`, as functions and as modules,
    on tensors that are float16 or bfloat16, unless autocast computes them in float32, also where a call leads there;
    distances that are not summed up, `F.l1_loss(x, y, reduction="none")`, aside.

    Conditional, and so reported with `--preview` only: losses in functions that a caller may call under autocast, and those
    behind `if self.training:` in a program, for one that has cast its model to half may never train it.

    ## Why it matters
    A loss sums or averages over all elements. In float16 a squared error of 256 or more is inf, and a mean of small
    errors loses those below 6e-8; in bfloat16 the result has 8 bits, so that a loss of 2.01 and one of 2.0 are the same
    number. The ratio of two probabilities is the exponential of a difference of logarithms: of two around -10 bfloat16
    knows that to 6%. Autocast computes most of these in float32 for that reason; a model that is cast itself does not.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    prediction, target = torch.randn(8).half(), torch.randn(8).half()
    loss = F.mse_loss(prediction, target)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    prediction, target = torch.randn(8).half(), torch.randn(8).half()
    loss = F.mse_loss(prediction.float(), target.float())
    ```

    ## Fix safety
    The fix casts what the loss is computed from to float32. It is unsafe, for the loss and its gradients change in
    their last digits, and a float64 tensor would be narrowed.

    ## References
    - [What autocast computes in float32](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32)
    """

    code, name = "DT407", "loss-in-half"
    fix = Applicability.UNSAFE
    triggers = attributes(_COMPUTED)
    needs = (TORCH, HALF)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for seen in facts.operations(_is_of_half):
            operation, node = seen.what, seen.node
            name = last_name_of(operation)
            if name in _LOG_PROBABILITIES and _is_ordered(facts, node):
                continue
            if _is_elementwise(operation) and not _is_summed(facts, node):
                continue
            count, half = _COMPUTED[name], min(dtypes_of(operation.args[0]))
            digits = f"which keeps {'three' if half == 'float16' else 'two'} digits of"
            if name in _LOG_PROBABILITIES:
                text = f"The log-probabilities are computed in {half}, {digits} them"
                help = "Compute them in float32: `.float()`"
            else:
                squares = name == "mse_loss" and half == "float16"
                harm = "where the square of 256 is inf" if squares else f"{digits} it"
                text, help = f"The loss is computed in {half}, {harm}", "Compute the loss in float32: `.float()`"
            finding = found(seen, text, help)
            finding.conditional = not dtypes_of(operation.result) or (
                bool(operation.calls) and _trains(facts, operation)
            )
            if isinstance(node, ast.Call) and not seen.behind and len(node.args) >= count:
                finding.fix = partial(_fix, node.args[:count])
            yield finding


def _is_of_half(operation: Operation) -> bool:
    count = _COMPUTED.get(last_name_of(operation), 0)
    given = operation.args[:count]
    halves = count > 0 and len(given) == count and all(only(value, LOW_PRECISION) for value in given)
    return halves and operation.error is None and dtypes_of(operation.result) <= LOW_PRECISION


def _is_elementwise(operation: Operation) -> bool:
    """Is it a distance of each pair of elements, `F.l1_loss(x, y, reduction="none")`?"""
    return dict(operation.keywords).get("reduction") == Const("none") and last_name_of(operation) in _DISTANCES


def _is_summed(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is it summed up at once?"""
    around = facts.around.parent(node)
    return isinstance(around, ast.Attribute) and around.attr in ("sum", "mean")


def _is_ordered(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is it only asked which is the greatest?"""
    around = facts.around.parent(node)
    if isinstance(around, ast.Attribute):
        return around.attr in _ORDERING
    return isinstance(around, ast.Call) and last_name(around.func) in _ORDERING


_ORDERING = frozenset({"argmax", "argmin", "argsort"})


def _trains(facts: ModuleFacts, operation: Operation) -> bool:
    """Does it run in training alone, `if self.training:`? A program that has cast its model to half rather calls `eval()`."""
    return any(
        guard.holds and isinstance(part, ast.Attribute) and part.attr == "training"
        for guard in facts.guards_at(operation)
        for part in ast.walk(guard.test)
    )


def _fix(given: list[ast.expr], place: Place) -> Fix | None:
    edits = tuple(place.replace(node, f"{operand_text(place, node)}.float()") for node in given)
    return Fix("Compute the loss in float32", edits, Applicability.UNSAFE)
