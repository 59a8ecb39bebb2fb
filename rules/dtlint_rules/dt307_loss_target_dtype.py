"""DT307: a loss is given a target of a dtype that it does not take."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import BOOL, INTEGRAL, cast_fix, listed
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._refusals import Operand, finding, is_refused, once, operand, short_op, tensors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation

__all__ = ["LossTargetDtype"]

_CLASSES = frozenset({"uint8", "int64"})
_REFUSED = {
    # Floating targets of cross_entropy are probabilities.
    **dict.fromkeys(("nn.functional.cross_entropy", "nn.CrossEntropyLoss"), INTEGRAL - _CLASSES),
    **dict.fromkeys(("nn.functional.nll_loss", "nn.NLLLoss"), (INTEGRAL | FLOATING) - _CLASSES),
    **dict.fromkeys(
        (
            *("nn.functional.multi_margin_loss", "nn.MultiMarginLoss"),
            *("nn.functional.multilabel_margin_loss", "nn.MultiLabelMarginLoss"),
        ),
        (INTEGRAL | FLOATING) - {"int64"},
    ),
    **dict.fromkeys(
        (
            *("nn.functional.binary_cross_entropy", "nn.BCELoss", "nn.functional.kl_div", "nn.KLDivLoss"),
            *("nn.functional.binary_cross_entropy_with_logits", "nn.BCEWithLogitsLoss"),
        ),
        INTEGRAL,
    ),
    **dict.fromkeys(
        (
            *("nn.functional.l1_loss", "nn.L1Loss", "nn.functional.margin_ranking_loss", "nn.MarginRankingLoss"),
            *("nn.functional.multilabel_soft_margin_loss", "nn.MultiLabelSoftMarginLoss"),
        ),
        BOOL,
    ),
}
"""By loss, the dtypes of a target that it refuses in torch 2.13."""
_OF_CLASSES = frozenset(name for name, refused in _REFUSED.items() if "int32" in refused and "int64" not in refused)
_THIRD = frozenset({"nn.functional.margin_ranking_loss", "nn.MarginRankingLoss"})
"""Losses of two inputs, whose target comes third."""
_OF_PROBABILITIES = frozenset({"nn.functional.cross_entropy", "nn.CrossEntropyLoss"})
"""Losses that take class numbers, or probabilities of the shape of the input."""
_STRICT = frozenset({"nn.functional.binary_cross_entropy", "nn.BCELoss"})
"""Losses whose target has to have the very dtype of the input."""


class LossTargetDtype(Rule):
    """A loss is given a target of a dtype that it refuses.

    ## What it does
    Reports class numbers that are int32, int16, int8 or bool in `cross_entropy`, `nll_loss` and the margin losses,
    which take int64; floating class numbers in `cross_entropy`, one dimension short of the logits; integers in
    `binary_cross_entropy`, with logits or without, and in `kl_div`, which take floating targets; and a target of
    `binary_cross_entropy` that is float64 where the input is float32.

    ## Why it matters
    Each raises: "expected target dtype to be Long or Byte, but got Int", "Found dtype Long but expected Float", "result
    type Float can't be cast to the desired output type Long".

    ## Example
    ```python
    import torch
    import torch.nn.functional as F


    def step(model, batch, clicked):
        return F.binary_cross_entropy_with_logits(model(batch), clicked.long())
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F


    def step(model, batch, clicked):
        return F.binary_cross_entropy_with_logits(model(batch), clicked.float())
    ```

    ## Fix safety
    The fix casts the target to int64, or to a floating dtype. It is safe: without it the call raises.

    ## References
    - [torch.nn.CrossEntropyLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html)
    - [torch.nn.BCEWithLogitsLoss](https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html)
    """

    code, name, severity = "DT307", "loss-target-dtype", Severity.ERROR
    fix = Applicability.SAFE
    triggers = attributes(_REFUSED)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        def refused(one: Operation) -> bool:
            return _wanted(one) is not None or is_refused(one, self.code)

        taken = [
            (seen.node, short_op(seen.what))
            for seen in facts.operations(lambda one: short_op(one) in _REFUSED and not refused(one))
        ]
        for seen in once(facts.operations(refused)):
            op, target, wanted = short_op(seen.what), _target(seen.what), _wanted(seen.what)
            if any(node is seen.node and other != op for node, other in taken):
                continue  # one of several losses, by what may have decided the target as well
            last = op.rpartition(".")[2]
            if target is None or wanted is None:
                dtypes = list(dict.fromkeys(listed(one.dtypes) for one in tensors(seen.what) if one.dtypes))
                if len(dtypes) == 1:
                    text, help = f"`{last}` raises for {dtypes[0]}", "Cast the input and the target with `.float()`"
                else:
                    text, help = (
                        f"`{last}` raises for {' and '.join(dtypes)}",
                        "Cast the target to the dtype that it takes",
                    )
                yield finding(seen, None, text, help)
                continue
            cast = "long()" if op in _OF_CLASSES else _as_input(op, operand(seen.what))
            yield finding(
                seen,
                target.node,
                f"`{last}` takes {wanted}: this target is {listed(target.dtypes)} and raises",
                f"Cast the target with `.{cast}`",
                fix=None if target.node is None else partial(cast_fix, target.node, cast, Applicability.SAFE),
            )


def _target(operation: Operation) -> Operand | None:
    return operand(operation, 2 if short_op(operation) in _THIRD else 1, "target")


def _wanted(operation: Operation) -> str | None:
    """What the loss takes, where its target is something else."""
    op = short_op(operation)
    target, given = (_target(operation), operand(operation)) if op in _REFUSED else (None, None)
    if target is None or given is None or not target.dtypes:
        return None
    if target.dtypes <= _REFUSED[op]:
        return "class numbers of int64" if op in _OF_CLASSES else "a floating target"
    if op in _OF_PROBABILITIES and target.dtypes <= FLOATING and _are_numbers(given, target):
        return "class numbers of int64, or probabilities"
    return None


def _are_numbers(given: Operand, target: Operand) -> bool:
    """Has a floating target surely one dimension less than the logits, so that it cannot be probabilities?"""
    ranks = [one.value.rank if isinstance(one.value, Tensor) else None for one in (given, target)]
    return ranks[0] is not None and ranks[1] is not None and 0 <= ranks[1] == ranks[0] - 1


def _as_input(op: str, given: Operand | None) -> str:
    """The cast to the dtype of the input: `.float()`, where the loss promotes."""
    if op in _STRICT and given is not None and isinstance(given.node, ast.Name):
        return f"to({given.node.id}.dtype)"
    return "float()"
