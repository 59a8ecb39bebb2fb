"""DT408: a normalization by hand, in the dtype of its input."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._calls import calls_of
from dtlint_rules._guards import is_guarded
from dtlint_rules._half import half_at
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._squares import is_widened, mean_of_squares

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow

__all__ = ["NormInHalf"]


class NormInHalf(Rule):
    """A normalization written by hand computes in the dtype of its input.

    ## What it does
    Reports the root of a mean of squares, `x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)`, and `F.normalize`
    in a class whose name speaks of a norm, where the input may be half and is not cast to float32 first. `F.rms_norm`,
    `F.layer_norm` and their modules compute in float32 inside and are left alone.

    ## Why it matters
    In float16 the square of 256 is inf: the manual norm of [300, 200] is [0, 0], and a row of zeros is NaN where the
    epsilon is below 6e-8, as is that of `F.normalize`, 1e-12. Activations of large models have such outliers. In
    bfloat16 the sum has 8 bits.

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
    calls = frozenset({"mean", "normalize"})
    triggers = attributes(calls)
    needs = (TORCH, ("keepdim", "keepdims", ".normalize"))

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name == "mean":
            return self._by_hand(call)
        if name == "normalize" and call.target == "torch.nn.functional.normalize":
            return self._normalized(call)
        return ()

    def _by_hand(self, call: Call) -> Iterator[Finding]:
        flow = call.flow
        if not any(keyword.arg in ("keepdim", "keepdims") for keyword in call.node.keywords):
            return
        subject = mean_of_squares(call.node, flow)
        if (
            subject is None
            or not is_guarded(call.node, flow)
            or is_widened(subject, flow)
            or _is_called_elsewhere(flow)
        ):
            return
        value = call.argument(0, "input") if call.target == "torch.mean" else call.receiver
        if half_at(flow, *(() if value is None else (value,))) is None:
            return
        yield Finding(
            call.node,
            f"The square of `{ast.unparse(subject)}` is computed in its own dtype: in float16 it is inf from 256 on, "
            "and the result 0",
            help="Use `F.rms_norm` or `F.layer_norm`, which compute in float32, or cast before: `x.float()`",
        )

    def _normalized(self, call: Call) -> Iterator[Finding]:
        flow, function = call.flow, call.flow.function
        owner = None if function is None or function.owner is None else function.owner.node.name
        subject, value = call.argument_node(0, "input"), call.argument(0, "input")
        if (
            owner is None
            or "norm" not in owner.lower()
            or subject is None
            or value is None
            or not _is_scaled(call.node, flow)
        ):
            return
        if is_widened(subject, flow) or half_at(flow, value) is None:
            return
        yield Finding(
            call.node,
            f"`{owner}` normalizes in the dtype of `{ast.unparse(subject)}`: in float16 a norm beyond 65504 makes all "
            "of it 0, and a row of zeros NaN, for the epsilon of 1e-12 is 0",
            help="Use `F.rms_norm`, which computes in float32, or cast before: `x.float()`",
        )


def _is_scaled(node: ast.Call, flow: Flow) -> bool:
    """Is the result multiplied by a scale, as a layer's is?"""
    parent = parents(flow.tree).get(node)
    if isinstance(parent, ast.Assign):
        targets = {path_of(target) for target in parent.targets}
        return any(
            isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) and path_of(part.left) in targets
            for part in nodes([flow.scope])
        )
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)


def _is_called_elsewhere(flow: Flow) -> bool:
    """Is it a private method that nobody calls in this file, such as `_norm` of a subclass? The caller may cast."""
    function = flow.function
    if function is None or function.owner is None or not function.name.startswith("_"):
        return False
    return not calls_of(function.name, flow.tree)
