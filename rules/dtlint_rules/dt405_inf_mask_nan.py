"""DT405: a mask of infinities that gives NaN."""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.domain.values import Tensor
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import limit_of
from dtlint_rules._needs import TORCH
from dtlint_rules._uses import is_open, is_rest, maker, number_at, peeled, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts
    from dtlint_rules._uses import Use

__all__ = ["InfMaskNan"]


class InfMaskNan(Rule):
    """A mask of infinities that turns into NaN.

    ## What it does
    Reports a mask of ones and zeros that is multiplied by an infinity; `torch.triu` and `torch.tril` of a matrix that is
    all -inf, where the diagonal is kept; and +inf that is written where a softmax is taken afterwards.

    Conditional, and so reported with `--preview` only: `(1 - mask) * float("-inf")` where nothing shows what the mask
    holds.

    ## Why it matters
    `0 * inf` is NaN, so a product of mask and infinity is NaN in all places that the mask leaves alone. `log(0)` is
    -inf, and a softmax over a row that is all -inf is NaN; one such row, a padded sentence, makes the loss NaN. `triu`
    keeps the diagonal, so that the first row of a causal mask has nothing left to attend to. The softmax of +inf is
    NaN.

    ## Example
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        bias = (1 - mask) * float("-inf")
        return (scores + bias).softmax(dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        bias = (1 - mask) * torch.finfo(mask.dtype).min
        return (scores + bias).softmax(dim=-1)
    ```

    ## Fix safety
    The fix replaces an infinity that a floating mask, given by name, is multiplied by. It is unsafe: a mask that is
    not floating has no such limit, and `masked_fill` may be what is wanted.

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [torch.triu](https://docs.pytorch.org/docs/stable/generated/torch.triu.html)
    """

    code, name = "DT405", "inf-mask-nan"
    fix = Applicability.UNSAFE
    triggers = ("inf", "Inf", "INF", "infinity", "Infinity", "INFINITY")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for use in uses(facts, "mul"):
            yield from _multiplied(facts, use)
        for use in uses(facts, "triu", "tril"):
            yield from _cut(use)
        for use in uses(facts, "softmax", "log_softmax", "Softmax"):
            filled = maker(facts, use.nodes[0]) if use.nodes else None
            if filled is None or filled.name != "masked_fill":
                continue
            if number_at(facts, filled.given(2, "value")[0]) == math.inf:
                yield Finding(
                    filled.node,
                    "+inf is written where the softmax is then NaN",
                    help="Write -inf where nothing is attended to",
                    notes=((use.node, "the softmax"),),
                )


def _multiplied(facts: ModuleFacts, use: Use) -> Iterator[Finding]:
    pairs = ((0, 1), (1, 0)) if isinstance(use.node, ast.BinOp) else ((0, 1),)
    for mask, infinity in pairs:
        if infinity >= len(use.nodes) or not math.isinf(number_at(facts, use.nodes[infinity]) or 0):
            continue
        value = use.values[mask]
        if isinstance(value, Tensor) and not value.range.zero:
            continue
        of_ones = _is_of_ones(value) or _is_of_truths(facts, use.nodes[mask])
        rest = is_rest(use.nodes[mask])
        if of_ones or (rest is not None and is_open(value)):
            negative = (number_at(facts, use.nodes[infinity]) or 0) < 0
            path = None if rest is None else path_of(rest)
            fix = partial(limit_of, node=use.nodes[infinity], limit="min" if negative else "max", verb="Multiply by")
            yield Finding(
                use.node,
                f"`{ast.unparse(use.nodes[mask])}` is 0 where nothing is masked, and 0 times inf is NaN",
                help="Use `scores.masked_fill(mask, float('-inf'))`, or multiply by `torch.finfo(dtype).min`",
                conditional=not of_ones,
                fix=None if path is None else partial(fix, path=path),
            )


def _is_of_ones(value: Value) -> bool:
    """Does a tensor hold ones and zeros, or what lies between, and zeros for certain among them?"""
    return isinstance(value, Tensor) and value.range.zero and (value.range.low, value.range.high) == (0, 1)


def _is_of_truths(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it a bool tensor, perhaps cast, `(lengths == 0).float()`?"""
    return getattr(facts.value(peeled(facts, node)), "dtypes", None) == frozenset({"bool"})


def _cut(use: Use) -> Iterator[Finding]:
    """`torch.triu(torch.full((n, n), float("-inf")))`."""
    value = use.values[0] if use.values else None
    diagonal, _ = use.given(1, "diagonal")
    kept = diagonal is None or (isinstance(diagonal, ast.Constant) and diagonal.value == 0)
    if isinstance(value, Tensor) and value.range.low == value.range.high == -math.inf and kept:
        row, other = ("first", "1") if use.name == "triu" else ("last", "-1")
        yield Finding(
            use.node,
            f"`{use.name}` keeps the diagonal: the {row} row is all -inf, and its softmax is NaN",
            help=f"Pass `diagonal={other}`",
        )
