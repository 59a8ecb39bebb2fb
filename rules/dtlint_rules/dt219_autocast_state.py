"""DT219: the dtype of autocast is taken for what is in force, and nobody asks whether autocast is on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import scopes
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import own_nodes
from dtlint_rules._names import last_name, mentions, names, names_in
from dtlint_rules._needs import attributes
from dtlint_rules._parts import bound_to, given
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow

__all__ = ["AutocastState"]

_ASKING = frozenset({"get_autocast_gpu_dtype", "get_autocast_cpu_dtype", "get_autocast_dtype"})
_SURE = ("is_autocast", "autocast_enabled", "amp_enabled", "use_amp")
"""In names of what tells whether autocast is on."""


class AutocastState(Rule):
    """The dtype of autocast decides, where autocast may be off.

    ## What it does
    Reports `torch.get_autocast_gpu_dtype()`, `torch.get_autocast_dtype(device)` and `torch.get_autocast_cpu_dtype()`
    that are compared with a dtype, or cast to, in a function that never asks `torch.is_autocast_enabled()` and opens no
    region itself. A method that is decorated with `custom_fwd`, and a function whose callers in the file all ask, are
    left alone.

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
    triggers = attributes(_ASKING)
    calls = _ASKING

    def on_call(self, call: Call) -> Iterable[Finding]:
        flow = call.flow
        if not call.target.startswith("torch.") or flow.contexts or isinstance(flow.statement, ast.Assert):
            return ()
        if not any(_decides(part) for part in _readers(call)):
            return ()
        if mentions(flow.conditions, _SURE) or _asks(flow.scope) or _is_run_where_on(flow):
            return ()
        return (
            Finding(
                call.node,
                f"`{call.name}` gives a half dtype even if autocast is off",
                help="Check `torch.is_autocast_enabled()` too",
            ),
        )


def _readers(call: Call) -> Iterator[ast.AST]:
    """What the dtype directly goes into, here or by the name that it is bound to."""
    for target in bound_to(call.node, call.flow.statement):
        for node in own_nodes(call.flow.scope):
            if isinstance(node, ast.Compare) and isinstance(target, ast.Name):
                yield from (node for side in (node.left, *node.comparators) if path_of(side) == target.id)
            elif isinstance(node, ast.Call) and isinstance(target, ast.Name):
                yield from (node for part in given(node) if path_of(part) == target.id)
    for around in within(call.node, call.flow):
        if not isinstance(around, ast.keyword):
            yield around
            return


def _decides(node: ast.AST) -> bool:
    """Is it a comparison, or `.to(...)` or `.type(...)` that is given the dtype?"""
    if isinstance(node, ast.Compare):
        return not any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "type")


def _asks(scope: ast.AST) -> bool:
    """Does a function ask whether autocast is on?"""
    return any(word in name for name in names(scope) for word in _SURE)  # type: ignore[arg-type]


def _is_run_where_on(flow: Flow) -> bool:
    """Is a function decorated for autocast, or does whoever calls it in the file ask whether autocast is on?"""
    function = flow.function
    if function is None:
        return False
    if any("custom_fwd" in name for part in getattr(function.node, "decorator_list", ()) for name in names_in(part)):
        return True
    callers = [
        scope
        for scope, facts in scopes(flow.tree)
        if any(last_name(call) == function.name for call in facts.calls) and scope is not function.node
    ]
    return bool(callers) and all(map(_asks, callers))
