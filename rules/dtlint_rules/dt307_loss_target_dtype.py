"""DT307: a loss is given a target of a dtype that it does not take."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._operands import BOOL, INTEGRAL, called, cast_fix, certain, listed, origin_note, settled, tensor_op
from dtlint_rules._ranks import rank_of
from dtlint_rules._refusals import refused
from dtlint_rules._subjects import operand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Flow
    from dtlint.infer.facts import ModuleFacts
    from dtlint_rules._subjects import Operand

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
    calls = called(_REFUSED)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterable[Finding]:
        op = tensor_op(call)
        if op not in _REFUSED or not call.complete:
            return ()
        target, given = operand(call, 2 if op in _THIRD else 1, "target"), operand(call)
        dtypes = settled(target, call.flow) if target is not None else None
        if target is None or not dtypes:
            return ()
        if dtypes <= _REFUSED[op]:
            wanted = "class numbers of int64" if op in _OF_CLASSES else "a floating target"
        elif op in _OF_PROBABILITIES and given is not None and _are_numbers(given, target, dtypes, call.flow):
            wanted = "class numbers of int64, or probabilities"
        elif op in _STRICT and given is not None and _differ(given, dtypes):
            wanted = f"a target of the dtype of its input, {listed(certain(given.value) or BOOL)}"
        else:
            return ()
        cast = "long()" if op in _OF_CLASSES else _as_input(op, given)
        return (
            Finding(
                target.node,
                f"`{op.rpartition('.')[2]}` takes {wanted}: this target is {listed(dtypes)} and raises",
                help=f"Cast the target with `.{cast}`",
                notes=origin_note(target.value, target.node, f"{listed(dtypes)} since here"),
                fix=partial(cast_fix, target.node, cast, f"Cast the target with `.{cast}`", Applicability.SAFE),
            ),
        )


def _are_numbers(given: Operand, target: Operand, dtypes: frozenset[str], flow: Flow) -> bool:
    """Has a floating target surely one dimension less than the logits, so that it cannot be probabilities?"""
    if not dtypes <= FLOATING:
        return False
    rank, logits = rank_of(target.node, flow), rank_of(given.node, flow)
    return rank is not None and logits is not None and rank == logits - 1


def _differ(given: Operand, target: frozenset[str]) -> bool:
    """Is the input surely of another floating dtype than the target?"""
    dtypes = certain(given.value)
    return dtypes is not None and len(dtypes) == 1 and len(target) == 1 and dtypes != target and dtypes < FLOATING


def _as_input(op: str, given: Operand | None) -> str:
    """The cast to the dtype of the input: `.float()`, where the loss promotes."""
    if op in _STRICT and given is not None and isinstance(given.node, ast.Name):
        return f"to({path_of(given.node)}.dtype)"
    return "float()"
