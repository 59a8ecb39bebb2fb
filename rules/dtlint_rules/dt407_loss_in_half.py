"""DT407: a loss computed in half precision."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.reach import Reach
from dtlint.infer.survey import scopes
from dtlint.infer.values import Module
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import operand_text
from dtlint_rules._functions import body_of
from dtlint_rules._half import half_at
from dtlint_rules._halfnames import CASTS, HalfNames
from dtlint_rules._names import last_name
from dtlint_rules._needs import HALF, TORCH, attributes
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call
    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["LossInHalf"]

_FLOATING = {
    **dict.fromkeys(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"), 2),
    **dict.fromkeys(("binary_cross_entropy_with_logits", "poisson_nll_loss"), 2),
    **dict.fromkeys(("cross_entropy", "nll_loss"), 1),
}
"""Losses, and how many of their first arguments are floating: class numbers are not."""
_HARM = "where the square of 256 is inf"
_HARM_OF_CLASSES = "which rounds it to steps of 0.002"
_MODULES = {
    **dict.fromkeys(("torch.nn.MSELoss", "torch.nn.L1Loss", "torch.nn.SmoothL1Loss", "torch.nn.HuberLoss"), 2),
    **dict.fromkeys(("torch.nn.KLDivLoss", "torch.nn.BCEWithLogitsLoss", "torch.nn.PoissonNLLLoss"), 2),
    **dict.fromkeys(("torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss"), 1),
}


class LossInHalf(Rule):
    """A loss computed in float16 or bfloat16.

    ## What it does
    Reports `F.mse_loss`, `F.cross_entropy` and their like, as functions and as modules, on tensors that were cast to
    half, or that a model computed from such tensors, outside of autocast; and a loss without `.float()` beside another
    of the same kind, in the same function, that has it.

    Conditional, and so reported with `--preview` only: losses of what nothing in view casts to half.

    ## Why it matters
    A loss sums or averages over all elements. In float16 a squared error of 256 or more is inf, and a mean of small
    errors loses those below 6e-8; in bfloat16 the result has 8 bits, so that a loss of 2.01 and one of 2.0 are the same
    number. Autocast computes losses in float32 for that reason; a model that is cast itself does not.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    def step(model: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        prediction = model(x.to(torch.float16))
        return F.mse_loss(prediction, target)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    def step(model: torch.nn.Module, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        prediction = model(x.to(torch.float16))
        return F.mse_loss(prediction.float(), target.float())
    ```

    ## Fix safety
    The fix casts what the loss is computed from to float32. It is unsafe, for the loss and its gradients change in
    their last digits, and a float64 tensor would be narrowed.

    ## References
    - [What autocast computes in float32](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32)
    """

    code, name = "DT407", "loss-in-half"
    fix = Applicability.UNSAFE
    triggers = attributes((*_FLOATING, *_MODULES))
    needs = (TORCH, (*HALF, ".float"))

    calls = frozenset({"__call__", *_FLOATING, *CASTS})

    def __init__(self) -> None:
        self.half = HalfNames()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        self.half.bind(assign)
        return ()

    def on_call(self, call: Call) -> Iterator[Finding]:
        count = _loss(call)
        if not count:
            self.half.hear(call)
            return
        given = call.node.args[:count]
        if len(given) < count or not all(map(_is_plain, given)) or call.flow.autocast is not None:
            return
        if not any(_is_widened(argument, self.half) for argument in given):
            yield from self._judged(call, given)

    def _judged(self, call: Call, given: list[ast.expr]) -> Iterator[Finding]:
        flow = call.flow
        values: list[Value] = list(call.args[: len(given)])
        origins = [self.half.origin(node, value, flow) for node, value in zip(given, values, strict=False)]
        origin = next((origin for origin in origins if origin is not None), None)
        sibling = None
        if origin is None:
            sibling = _sibling(call, len(given))
            if sibling is None or half_at(flow) is None:
                return
        elif half_at(flow, at_least=Reach.ASKED) is None:
            return
        which = [node for node, found in zip(given, origins, strict=False) if found is not None] or given
        text = ", ".join(f"`{short(node)}`" for node in which)
        if origin is not None:
            harm = _HARM if len(given) == 2 else _HARM_OF_CLASSES
            message = f"The loss of {text} may be computed in float16, {harm}"
            notes: tuple[tuple[ast.expr | ast.stmt, str], ...] = ((origin, "half since here"),)
        else:
            message = f"The loss is half if {text} is: elsewhere it is computed in float32"
            assert sibling is not None
            notes = ((sibling, "cast to float32 here"),)
        yield Finding(
            call.node,
            message,
            help="Compute the loss in float32: `.float()`",
            notes=notes,
            conditional=origin is None,
            fix=partial(_fix, given),
        )


def _loss(call: Call) -> int:
    """How many of the first arguments of a loss are floating; 0 for another call."""
    if call.target.startswith("torch.nn.functional."):
        return _FLOATING.get(call.target.rpartition(".")[2], 0)
    if call.target == "torch.nn.Module.__call__" and isinstance(call.receiver, Module):
        return _MODULES.get(call.receiver.name, 0)
    return 0


def _is_plain(node: ast.expr) -> bool:
    return not isinstance(node, ast.Starred)


def _is_widened(node: ast.expr, half: HalfNames) -> bool:
    return any(isinstance(part, ast.Call) and part in half.widened for part in nodes([node]))


def _sibling(call: Call, count: int) -> ast.Call | None:
    """A call of the same loss, in the same function, that is given `.float()` in every place."""
    if all("float" not in own.called for _, own in scopes(call.flow.scope)):
        return None  # which is seen without a walk over the function
    for node in nodes(body_of(call.flow.scope)):
        if node is call.node or not isinstance(node, ast.Call) or last_name(node) != last_name(call.node):
            continue
        given = node.args[:count]
        if len(given) == count and all(isinstance(part, ast.Call) and last_name(part) == "float" for part in given):
            return node
    return None


def _fix(given: list[ast.expr], place: Place) -> Fix | None:
    edits = tuple(place.replace(node, f"{operand_text(place, node)}.float()") for node in given)
    return Fix("Compute the loss in float32", edits, Applicability.UNSAFE)
