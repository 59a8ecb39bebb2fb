"""DT507: bfloat16 is chosen, or asked for, without a look at the hardware."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.around import around
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._names import mentions, names, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End

__all__ = ["HardwareDtypeCheck"]

_ASKING = {
    "torch.cuda.is_bf16_supported": "raises without CUDA before torch 2.5: AssertionError, Torch not compiled with "
    "CUDA enabled",
    "torch.cuda.get_device_capability": "raises without CUDA",
}
"""Questions about the GPU, and what they do where there is none."""
_UNTIL = {"torch.cuda.is_bf16_supported": (2, 5)}
"""The release from which on a question answers everywhere."""
_GUARDS = ("available", "cuda", "gpu", "device", "hip", "rocm", "bf16")
"""In names of a test that keeps the question from machines without CUDA."""
_CHECKS = frozenset(
    {"is_bf16_supported", "get_device_capability", "get_device_properties", "is_torch_bf16_gpu_available"}
)


class HardwareDtypeCheck(Rule):
    """bfloat16 is chosen without a look at the hardware, or the look raises where there is no CUDA.

    ## What it does
    Reports `torch.cuda.is_bf16_supported()` and comparisons of `torch.cuda.get_device_capability()` that no test for
    CUDA guards; and a setting `dtype = "bfloat16"` of a script for CUDA that picks the dtype of autocast by name, in a
    file that never asks what the GPU can do.

    ## Why it matters
    Both questions raise on a machine without CUDA, so that a script that would run on the CPU or on a Mac ends at its
    first line; `is_bf16_supported` does in releases before 2.5, and is left alone with `target-torch = "2.5"`. GPUs
    before Ampere have no bfloat16: V100 and T4 emulate it, at a fraction of the speed of float16, or refuse.

    ## Example
    ```python
    import torch

    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    ```

    ## Use instead
    ```python
    import torch

    supported = torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    dtype = torch.bfloat16 if supported else torch.float16
    ```

    ## References
    - [torch.cuda.is_bf16_supported](https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_bf16_supported.html)
    - [pytorch#132303](https://github.com/pytorch/pytorch/issues/132303)
    """

    code, name = "DT507", "hardware-dtype-check"
    triggers = ("is_bf16_supported", "get_device_capability", '"bfloat16')
    calls = frozenset(name.rpartition(".")[2] for name in _ASKING)
    targets = frozenset({ast.Name})

    def __init__(self) -> None:
        self.asked: list[tuple[ast.Call, str]] = []
        self.settings: list[ast.Assign] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target in _ASKING and not mentions(call.flow.conditions, _GUARDS):
            self.asked.append((call.node, call.target))
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        statement, value = assign.node, assign.expression
        if (
            assign.flow.function is None
            and isinstance(statement, ast.Assign)
            and isinstance(value, ast.Constant)
            and value.value == "bfloat16"
            and isinstance(assign.target, ast.Name)
            and "dtype" in assign.target.id
            and not assign.flow.conditions
        ):
            self.settings.append(statement)
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None:
            return
        for node, target in self.asked:
            if not _is_guarded(node, tree) and (target.endswith("supported") or _decides(node, tree)):
                yield Finding(
                    node,
                    f"`{target.rpartition('.')[2]}` {_ASKING[target]}",
                    help="Ask `torch.cuda.is_available()` first",
                    until=_UNTIL.get(target),
                )
        if self.settings and _CHECKS.isdisjoint(names(tree)) and _is_for_cuda(tree):
            for statement in self.settings:
                if _picks(tree, statement):
                    yield Finding(
                        statement,
                        "bfloat16 is the default for every GPU: those before Ampere, V100 and T4 among them, have none",
                        help="Choose it where `torch.cuda.is_available() and torch.cuda.is_bf16_supported()`, else "
                        "float16",
                        severity=Severity.INFO,
                    )


def _is_guarded(node: ast.AST, tree: ast.Module) -> bool:
    """Does a test around the question, or one before it in the function, speak of CUDA or of a device?"""
    child = node
    for part in around(node, tree):
        if isinstance(part, ast.BoolOp) and any(_guards(value) for value in part.values if value is not child):
            return True
        if isinstance(part, ast.IfExp) and child is not part.test and _guards(part.test):
            return True
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return _guards(part, itself=node) or any(word in part.name.lower() for word in ("cuda", "gpu"))
        child = part
    return False


def _guards(test: ast.AST, itself: ast.AST | None = None) -> bool:
    asked = " ".join(said(itself)) if itself is not None else ""
    words = " ".join(said(test)).lower()
    if itself is None:
        return any(word in words for word in _GUARDS)
    return "is_available" in words and "is_available" not in asked


def _decides(node: ast.Call, tree: ast.Module) -> bool:
    """Is the capability compared, so that something is chosen by it?"""
    for part in around(node, tree):
        if isinstance(part, ast.Compare):
            return True
        if isinstance(part, ast.stmt):
            return False
    return False


def _is_for_cuda(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Constant) and node.value == "cuda" for node in nodes([tree]))


def _picks(tree: ast.Module, statement: ast.Assign) -> bool:
    """Is the name the key of a table of torch's dtypes: `{"bfloat16": torch.bfloat16, ...}[dtype]`?"""
    target = statement.targets[0]
    assert isinstance(target, ast.Name)
    return any(
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Name)
        and node.slice.id == target.id
        and isinstance(node.value, (ast.Dict, ast.Name))
        for node in nodes([tree])
    )
