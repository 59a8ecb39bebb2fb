"""DT219: the dtype of autocast is taken for what is in force, and nobody asks whether autocast is on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Region
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["AutocastState"]

_DTYPES = ("get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "get_autocast_dtype")
_ASKING = ("torch.is_autocast_enabled", "torch.is_autocast_cpu_enabled", "torch.is_autocast_cuda_enabled")


class AutocastState(Rule):
    """The dtype of autocast decides, where autocast may be off.

    ## What it does
    Reports `torch.get_autocast_gpu_dtype()`, `torch.get_autocast_dtype(device)` and `torch.get_autocast_cpu_dtype()`
    that are compared with a dtype, or cast to, in a function that never asks `torch.is_autocast_enabled()` and opens no
    region itself, under no test. A method that is decorated with `custom_fwd` is left alone.

    ## Why it matters
    The three tell the dtype that autocast would cast to, on or off: float16 for CUDA, bfloat16 for the CPU. Where it is
    off, a test for float16 is true in a model that computes in float32, and a cast makes its activations half.

    ## Example
    ```python
    import torch

    def attend(q, k):
        if torch.get_autocast_dtype("cuda") == torch.float16:
            q = q / 8
        return q @ k.transpose(-1, -2)
    ```

    ## Use instead
    ```python
    import torch

    def attend(q, k):
        if torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda") == torch.float16:
            q = q / 8
        return q @ k.transpose(-1, -2)
    ```

    ## References
    - [torch.get_autocast_dtype](https://github.com/pytorch/pytorch/blob/main/torch/csrc/autograd/init.cpp)
    - [torch.is_autocast_enabled](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "DT219", "autocast-state"
    triggers = _DTYPES

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        around = facts.around
        asking = {around.scope(node) for node, _ in facts.names(*_ASKING)}
        for call in facts.calls(*(f"torch.{name}" for name in _DTYPES)):
            scope = around.scope(call.node)
            if (
                isinstance(call.region, Region)
                or scope in asking
                or around.guards(call.node)
                or _is_called_when_on(facts, scope)
            ):
                continue
            if any(_decides(facts, one) for one in (call.node, *_uses(facts, call.node))):
                yield Finding(
                    call.node,
                    f"`{call.name.rpartition('.')[2]}` gives a half dtype even if autocast is off",
                    help="Check `torch.is_autocast_enabled()` too",
                )


def _uses(facts: ModuleFacts, made: ast.expr) -> Iterator[ast.expr]:
    """Where a name is read that is bound to an expression."""
    for node in facts.around.within(facts.around.scope(made)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and made in facts.around.definitions(node):
            yield node


def _decides(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it compared with another, or given to `.to(...)` or `.type(...)`?"""
    parent = facts.around.parent(node)
    if isinstance(parent, ast.keyword):
        parent = facts.around.parent(parent)
    if isinstance(parent, ast.Compare):
        asserted = isinstance(facts.around.statement(parent), ast.Assert)
        return not asserted and not any(isinstance(one, (ast.Is, ast.IsNot)) for one in parent.ops)
    return (
        isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute) and parent.func.attr in ("to", "type")
    )


def _is_called_when_on(facts: ModuleFacts, scope: ast.AST) -> bool:
    """Is a function decorated for autocast, or does each of its callers in the file stand under a test?"""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if any("custom_fwd" in ast.unparse(one) for one in scope.decorator_list):
        return True
    callers = [
        node for node in facts.around.of_kind(ast.Call) if ast.unparse(node.func).rpartition(".")[2] == scope.name
    ]
    return bool(callers) and all(facts.around.guards(one) for one in callers)
