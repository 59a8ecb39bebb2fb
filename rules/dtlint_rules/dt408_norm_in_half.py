"""DT408: a normalization by hand, in the dtype of its input."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._functions import body_of
from dtlint_rules._guards import is_guarded
from dtlint_rules._half import half_at, is_assumed
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._norm_uses import is_called_elsewhere, is_of_queries, stands_behind_convolutions
from dtlint_rules._parts import keyword, same
from dtlint_rules._squares import is_widened, mean_of_squares
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow

__all__ = ["NormInHalf"]


_VARIANCES = frozenset({"var", "var_mean"})
_NORM = re.compile(r"norm(?!al)")
"""A norm in a name; what is called normal or normalized is another thing."""


class NormInHalf(Rule):
    """A normalization written by hand computes in the dtype of its input.

    ## What it does
    Reports the root of a mean of squares, `x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)`, and in a class or
    function whose name speaks of a norm also the root of a variance, `(x - mean) * (var + eps).rsqrt()`, and
    `F.normalize`, where the input may be half and is not cast to float32 first. `F.rms_norm`, `F.layer_norm` and their
    modules compute in float32 inside and are left alone, as is a function that asks for the dtype of its input, and so
    are norms that are made for queries and keys alone, by `F.normalize`, those that stand behind convolutions alone, and
    those of what was divided by its greatest value before.

    Conditional, and so reported with `--preview` only: tensors that are not known to be half.

    ## Why it matters
    In float16 the square of 256 is inf: the manual norm of [300, 200] is [0, 0], and a row of zeros is NaN where the
    epsilon is below 6e-8, as is that of `F.normalize`, 1e-12. Activations of large models have such outliers. A
    variance is inf from a deviation of 256 on; and the gradient of `rsqrt` at a variance of 0 is inf for an epsilon
    below 6e-4, so that a constant row has a gradient of NaN. In bfloat16 mean and variance have 8 bits.

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
    calls = frozenset({"mean", "normalize", *_VARIANCES})
    triggers = attributes(calls)
    needs = (TORCH, ("keepdim", "keepdims", ".normalize", ",True)"))

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name == "mean":
            return self._by_hand(call)
        if name == "normalize" and call.target == "torch.nn.functional.normalize":
            return self._normalized(call)
        return self._centred(call, name) if name in _VARIANCES else ()

    def _by_hand(self, call: Call) -> Iterator[Finding]:
        flow = call.flow
        if not _keeps_dimensions(call.node):
            return
        subject = mean_of_squares(call.node, flow)
        if subject is None or not is_guarded(call.node, flow) or is_widened(subject, flow) or is_called_elsewhere(flow):
            return
        if _is_scaled_down(subject, flow):
            return
        value = call.argument(0, "input") if call.target == "torch.mean" else call.receiver
        half = half_at(flow, *(() if value is None else (value,)), of=subject)
        if half is None:
            return
        yield Finding(
            call.node,
            f"In float16 the square of `{short(subject)}` overflows beyond 256",
            help="Use `F.rms_norm` or `F.layer_norm`, or cast first: `x.float()`",
            conditional=is_assumed(half),
        )

    def _centred(self, call: Call, name: str) -> Iterator[Finding]:
        """`var = x.var(-1, keepdim=True)`, by whose root `x` less its mean is divided."""
        flow = call.flow
        if not _speaks_of_norm(flow) or not _keeps_dimensions(call.node):
            return
        subject, value = operand(call) or ABSENT
        if subject is None or value is None or is_widened(subject, flow) or is_called_elsewhere(flow):
            return
        if _is_scaled_down(subject, flow):
            return
        divided = _divided_by_root(call.node, subject, flow)
        half = half_at(flow, value, of=subject)
        if divided is None or facts(flow.scope).dtype_tests or half is None:
            return
        if stands_behind_convolutions(flow):
            return
        yield Finding(
            divided,
            f"In float16 the variance of `{short(subject)}` overflows beyond a deviation of 256",
            help="Use `F.layer_norm`, `F.group_norm` or `F.instance_norm`, or cast first: `x.float()`",
            notes=((call.node, f"`{name}` is computed here"),) if call.node.lineno != divided.lineno else (),
            conditional=is_assumed(half),
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
        half = half_at(flow, value, of=subject)
        if half is None or is_widened(subject, flow) or is_of_queries(flow):
            return
        yield Finding(
            call.node,
            f"In float16 `{owner}` gives 0 for a norm beyond 65504, and NaN for a row of zeros",
            help="Use `F.rms_norm`, or cast first: `x.float()`"
            if _is_rms_norm(call.node)
            else "Cast first: `x.float()`",
            conditional=is_assumed(half),
        )


def _is_rms_norm(call: ast.Call) -> bool:
    """Is it the norm of squares along the last dimension, which `F.rms_norm` takes: `F.normalize(x, dim=-1)`?"""
    power = call.args[1] if len(call.args) > 1 else keyword(call, "p")
    dim = call.args[2] if len(call.args) > 2 else keyword(call, "dim")
    squares = power is None or (isinstance(power, ast.Constant) and power.value == 2)
    return squares and dim is not None and ast.unparse(dim) == "-1"


_GREATEST = frozenset({"amax", "max", "absmax", "aminmax"})


def _is_scaled_down(subject: ast.expr, flow: Flow) -> bool:
    """Was it divided by the greatest of its values before: `x = x / x.amax(-1, keepdim=True)`?"""
    made = source_of(subject, flow) or subject
    return (
        isinstance(made, ast.BinOp)
        and isinstance(made.op, ast.Div)
        and any(
            isinstance(part, ast.Call) and last_name(part) in _GREATEST
            for part in nodes([source_of(made.right, flow) or made.right])
        )
    )


def _keeps_dimensions(call: ast.Call) -> bool:
    """`keepdim=True`, and `x.mean(-1, True)`."""
    named = any(keyword.arg in ("keepdim", "keepdims") for keyword in call.keywords)
    return named or (len(call.args) > 1 and isinstance(call.args[-1], ast.Constant) and call.args[-1].value is True)


def _speaks_of_norm(flow: Flow) -> bool:
    """Is it the forward of a module, or a function, whose name speaks of a norm?"""
    function = flow.function
    if function is None:
        return False
    name = function.name if function.owner is None else function.owner.node.name
    return _NORM.search(name.lower()) is not None


def _divided_by_root(variance: ast.Call, subject: ast.expr, flow: Flow) -> ast.expr | None:
    """Where `x - mean` is divided by the root of the variance of `x`, or multiplied with one over it."""
    bound = assignments(flow.scope).items()
    targets = {name for name, lines in bound if any(value is variance for _, value in lines)}
    if isinstance(flow.statement, ast.Assign) and last_name(variance) == "var_mean":
        first = flow.statement.targets[0]
        targets = {last_name(first.elts[0])} if isinstance(first, ast.Tuple) and len(first.elts) == 2 else set()

    def is_variance(node: ast.AST) -> bool:
        return node is variance or (isinstance(node, ast.Name) and node.id in targets)

    for part in nodes(body_of(flow.scope)):
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, (ast.Mult, ast.Div)):
            continue
        centred = _is_centred(part.left, subject, flow)
        if not centred:
            continue
        scale = source_of(part.right, flow) or part.right
        if isinstance(part.right, ast.Name):
            behind = [value for _, value in assignments(flow.scope).get(part.right.id, ()) if value is not None]
            scale = behind[-1] if behind else part.right
        held = list(nodes([scale]))
        if any(map(is_variance, held)) and any(map(_is_root, held)):
            return part
    return None


def _is_centred(node: ast.expr, subject: ast.expr, flow: Flow) -> bool:
    """`x - mean`, in place or by a name."""
    if isinstance(node, ast.Name):
        behind = [value for _, value in assignments(flow.scope).get(node.id, ()) if isinstance(value, ast.BinOp)]
        node = behind[-1] if behind else node
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and same(node.left, subject)


def _is_root(node: ast.AST) -> bool:
    """`rsqrt`, `sqrt`, `** 0.5` and `** -0.5`."""
    if isinstance(node, ast.Call):
        return last_name(node) in ("rsqrt", "sqrt", "rsqrt_", "sqrt_") or (
            last_name(node) == "pow" and bool(node.args) and _is_half_power(node.args[-1])
        )
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and _is_half_power(node.right)


def _is_half_power(node: ast.expr) -> bool:
    power = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(power, ast.Constant) and power.value == 0.5


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
