"""DT503: tensor types given or compared as strings, `"torch.FloatTensor"`."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.domain.values import Const, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._legacy import METHODS, TensorType, cast_by_method, tensor_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["LegacyTypeString"]


class LegacyTypeString(Rule):
    """A tensor type is given, or compared, as a string.

    ## What it does
    Reports `x.type("torch.FloatTensor")` and comparisons of `x.type()` with such a string, or `in` a list of them, but
    for assertions and files that ask for the type of the CPU and for that of the GPU.

    ## Why it matters
    The string names a dtype and a device. `x.type("torch.FloatTensor")` moves the tensor to the CPU, and
    `x.type("torch.cuda.FloatTensor")` raises where there is no GPU. `x.type() == "torch.FloatTensor"` is false for the
    same tensor on a GPU, whose type is `torch.cuda.FloatTensor`. `x.dtype` speaks of the dtype alone.

    ## Example
    ```python
    import torch

    def as_float(x: torch.Tensor) -> torch.Tensor:
        return x.type("torch.FloatTensor")
    ```

    ## Use instead
    ```python
    import torch

    def as_float(x: torch.Tensor) -> torch.Tensor:
        return x.float()
    ```

    ## Fix safety
    The fix is unsafe because the tensor stays where it is.

    ## References
    - [torch.Tensor.type](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type.html)
    """

    code, name = "DT503", "legacy-type-string"
    fix = Applicability.UNSAFE
    triggers = ('"torch',)
    needs = ((".type",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.methods("type"):
            given = call.argument(0, "dtype")
            kind = tensor_type(given) if isinstance(given, Const) else None
            method = METHODS.get(kind.dtype) if kind is not None else None
            if kind is not None and method is not None and isinstance(call.receiver, (Tensor, Unknown)):
                yield Finding(
                    call.node,
                    f'"{kind.name}" also moves the tensor to {kind.device}',
                    help=f"Use `.{method}()`",
                    fix=partial(cast_by_method, call.node, method),
                )
        compared = _compared(facts)
        for node, kind in dict(reversed(compared)).items():
            if all(other.device == kind.device for _, other in compared if other.dtype == kind.dtype):
                yield Finding(
                    node,
                    f'"{kind.name}" is {kind.dtype} on {kind.device} only: the comparison fails on other devices',
                    help=f"Use `x.dtype == torch.{kind.dtype}`",
                )


def _compared(facts: ModuleFacts) -> list[tuple[ast.Compare, TensorType]]:
    """The comparisons of `x.type()` with strings; an assertion may well mean the device, too."""
    found: dict[tuple[ast.Compare, str], TensorType] = {}
    for node in {one.node: None for one in facts.evaluations(ast.Compare)}:
        if len(node.ops) != 1 or isinstance(facts.around.statement(node), ast.Assert):
            continue
        for side, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            for value in facts.items(side) or (facts.value(side),):
                kind = tensor_type(value) if isinstance(value, Const) and _is_type(other) else None
                if kind is not None:
                    found[node, kind.name] = kind
    return [(node, kind) for (node, _), kind in found.items()]


def _is_type(node: ast.expr) -> bool:
    """Is it `x.type()`?"""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "type" and not node.args
