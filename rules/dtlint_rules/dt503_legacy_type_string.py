"""DT503: tensor types given or compared as strings, `"torch.FloatTensor"`."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.values import Constant, Items, Module
from dtlint.rule import Finding, Rule
from dtlint_rules._legacy import METHODS, TensorType, cast_by_method, tensor_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End, Operation

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
    calls = frozenset({"type"})
    operators = frozenset({ast.Eq, ast.NotEq, ast.In, ast.NotIn})

    def __init__(self) -> None:
        self.compared: list[tuple[ast.Compare, TensorType]] = []

    def on_call(self, call: Call) -> Iterator[Finding]:
        function = call.node.func
        if call.method != "type" or len(call.args) != 1 or not isinstance(call.args[0], Constant):
            return
        kind = tensor_type(call.args[0])
        method = METHODS.get(kind.dtype) if kind is not None else None
        if (
            kind is None
            or method is None
            or isinstance(call.receiver, Module)
            or not isinstance(function, ast.Attribute)
        ):
            return
        yield Finding(
            call.node,
            f'"{kind.name}" also moves the tensor to {kind.device}',
            help=f"Use `.{method}()`",
            fix=partial(cast_by_method, call.node, method),
        )

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        if not isinstance(operation.node, ast.Compare) or isinstance(operation.flow.statement, ast.Assert):
            return ()  # a test may well mean the device too
        for side, other in ((operation.left, operation.node.comparators[0]), (operation.right, operation.node.left)):
            named = side.items if isinstance(side, Items) else (side,)
            kinds = [tensor_type(each) if isinstance(each, Constant) else None for each in named]
            if _is_type(other):
                self.compared += [(operation.node, kind) for kind in kinds if kind is not None]
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None:
            return
        devices: dict[str, set[str]] = {}
        for _, kind in self.compared:
            devices.setdefault(kind.dtype, set()).add(kind.device)
        alone = {node: kind for node, kind in reversed(self.compared) if len(devices[kind.dtype]) == 1}
        yield from (_compared(node, kind) for node, kind in reversed(alone.items()))


def _compared(node: ast.Compare, kind: TensorType) -> Finding:
    return Finding(
        node,
        f'"{kind.name}" is {kind.dtype} on {kind.device} only: the comparison fails on other devices',
        help=f"Use `x.dtype == torch.{kind.dtype}`",
    )


def _is_type(node: ast.expr) -> bool:
    """Is it `x.type()`?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "type"
        and not node.args
    )
