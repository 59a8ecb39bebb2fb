"""DT408: a normalization by hand, in the dtype of its input."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import HALF, TORCH, attributes
from dtlint_rules._texts import short
from dtlint_rules._uses import Use, is_callers, is_half, is_settled, maker, number_at, uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["NormInHalf"]

_HALF = frozenset({"float16"})
_SMALL = {"mean": 255.0, "sum": 4.0}
"""Numbers up to this have squares that float16 has, and sums of four thousand squares."""
_WORDS = {
    "mean": (
        "In float16 the square of `{}` overflows beyond 256",
        "Use `F.rms_norm` or `F.layer_norm`, or cast first: `x.float()`",
    ),
    "sum": (
        "In float16 the sum of the squares of `{}` overflows where the norm is beyond 256",
        "Cast first: `x.float()`",
    ),
}


class NormInHalf(Rule):
    """A normalization written by hand computes in the dtype of its input.

    ## What it does
    Reports the mean of squares along a dimension that is kept, `x.pow(2).mean(-1, keepdim=True)`, as a norm divides by,
    of a float16 tensor, and their sum along a dimension, `x.pow(2).sum(-1)`. `F.rms_norm`, `F.layer_norm` and their
    modules compute in float32 inside and are left alone, and so is what was cast to float32 before.

    Conditional, and so reported with `--preview` only: the mean where it is up to a caller whether the tensor is half.

    ## Why it matters
    In float16 the square of 256 is inf: the manual norm of [300, 200] is [0, 0], and a row of zeros is NaN where the
    epsilon is below 6e-8, as is that of `F.normalize`, 1e-12. A sum of squares is inf where the norm is beyond 256,
    as that of 1,024 numbers of 8 each. Activations of large models have such outliers. A variance is inf from a
    deviation of 256 on; and the gradient of `rsqrt` at a variance of 0 is inf for an epsilon below 6e-4, so that a
    constant row has a gradient of NaN. In bfloat16 mean and variance have 8 bits.

    ## Example
    ```python
    import torch
    from torch import nn

    class RMSNorm(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F
    from torch import nn

    class RMSNorm(nn.Module):
        def __init__(self, dim: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(dim))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.rms_norm(x, self.weight.shape, self.weight, eps=1e-6)
    ```

    ## References
    - [torch.nn.functional.rms_norm](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html)
    - [torch.nn.RMSNorm](https://docs.pytorch.org/docs/stable/generated/torch.nn.RMSNorm.html)
    """

    code, name = "DT408", "norm-in-half"
    triggers = attributes(("mean", "sum"))
    needs = (TORCH, ("keepdim", "keepdims", ",True)", *HALF))

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        for use in uses(facts, "mean", "sum"):
            square = maker(facts, use.nodes[0]) if _is_along(use) else None
            base = None if square is None else _squared(facts, square)
            if square is None or base is None or is_settled(facts, use.node):
                continue
            value = square.values[0]
            squares = [facts.value(node) for node in (use.nodes[0], square.node) if isinstance(node, ast.expr)]
            if any(one.dtypes and not one.dtypes <= _HALF for one in squares if isinstance(one, (Tensor, Unknown))):
                continue  # autocast squares in float32
            known = is_half(value, _HALF)
            if isinstance(value, Tensor) and value.range.magnitude <= _SMALL[use.name]:
                continue
            if known or (use.name == "mean" and is_callers(value)):
                text, help = _WORDS[use.name]
                yield Finding(use.node, text.format(short(base)), help=help, conditional=not known)


def _is_along(use: Use) -> bool:
    """Is it a mean along dimensions that are kept, or a sum along some?"""
    if use.name == "sum":
        return bool(use.nodes) and (len(use.nodes) > 1 or "dim" in use.keywords or "axis" in use.keywords)
    kept = "keepdim" in use.keywords or "keepdims" in use.keywords or len(use.nodes) > 2
    return kept and bool(use.nodes)


def _squared(facts: ModuleFacts, square: Use) -> ast.expr | None:
    """`x`, of `x ** 2`, `x.pow(2)`, `x.square()` and `x * x`."""
    if square.name == "square" and square.nodes:
        return square.nodes[0]
    if len(square.nodes) != 2:
        return None
    base, other = square.nodes
    if square.name == "pow":
        return base if number_at(facts, other) == 2 else None
    return base if square.name == "mul" and ast.unparse(base) == ast.unparse(other) else None
