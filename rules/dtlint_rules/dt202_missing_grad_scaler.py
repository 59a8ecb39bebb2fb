"""DT202: a loss computed under float16 autocast goes backward without a GradScaler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Region
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import is_on, opened_around
from dtlint_rules._cast_calls import are_exclusive
from dtlint_rules._scalers import SCALERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["MissingGradScaler"]

_SCALING = ("scale", "unscale_", "get_scale", "scale_loss")
"""Methods of what scales losses."""
_LIBRARIES = frozenset({"accelerate", "lightning", "pytorch_lightning", "deepspeed", "apex"})
"""Libraries that scale losses unseen."""
_SETTING = ("torch.set_autocast_gpu_dtype", "torch.set_autocast_dtype")


class MissingGradScaler(Rule):
    """A loss from float16 autocast goes backward without a GradScaler.

    ## What it does
    Reports `.backward()` of a loss that was computed under float16 autocast (the default on CUDA and MPS), in a function
    that steps an optimizer, where nothing scales the loss: neither the function nor its class has a GradScaler or asks
    for a scale, and none reaches what they call.

    ## Why it matters
    Gradients of a float16 operator are float16. The smallest number that it can hold is 6e-8, and below 6.1e-5 it loses
    precision; gradients of deep networks lie largely below that. What underflows is 0: those weights do not learn, and
    nothing says so. A GradScaler multiplies the loss by 65536 at the start, so that the gradients come out in range,
    and divides them before the optimizer's step. bfloat16 has the range of float32 and needs none.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(4, 8)
    with torch.autocast("cuda"):
        loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    x = torch.randn(4, 8)
    with torch.autocast("cuda"):
        loss = model(x).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## References
    - [Gradient scaling](https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT202", "missing-grad-scaler"
    triggers = ("*autocast*",)
    needs = (("backward",), ("step",))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        around = facts.around
        losses = [call.node for call in facts.methods("backward") if not call.args and call.receiver is not None]
        if not losses or any(facts.names(*_SETTING)) or not _LIBRARIES.isdisjoint(_imported(facts.tree)):
            return
        stepping = {around.scope(call.node) for call in facts.methods("step") if not call.args}
        scaling = {_realm(facts, call.node) for call in facts.methods(*_SCALING)}
        owners = (around.owner(call.node) for call in facts.calls(*SCALERS))
        scaling |= {owner for owner in owners if owner is not None}
        for node in losses:
            if around.scope(node) not in stepping or _realm(facts, node) in scaling or _reaches_scaler(facts, node):
                continue
            assert isinstance(node.func, ast.Attribute)
            for made in _made(facts, node.func.value):
                if are_exclusive(facts, made, node):
                    continue
                region, opened = facts.region(made), opened_around(facts, made)
                if is_on(region) and isinstance(region, Region) and region.dtype == "float16" and opened is not None:
                    yield Finding(
                        node,
                        "The loss of float16 autocast goes backward unscaled: gradients below 3e-8 become 0",
                        help="Scale the loss with `torch.amp.GradScaler`, or autocast to bfloat16",
                        notes=((opened[1], "autocast to float16 begins here"),),
                    )
                    break


def _imported(tree: ast.Module) -> Iterator[str]:
    """The packages that a file imports from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _realm(facts: ModuleFacts, node: ast.AST) -> ast.AST:
    """Who shares a scaler: the class, or else the function."""
    return facts.around.owner(node) or facts.around.scope(node)


def _reaches_scaler(facts: ModuleFacts, node: ast.AST) -> bool:
    """May the function hand a scaler on, or read one: does it take or pass on anything that has scaled a loss?"""
    scope = facts.around.scope(node)
    own = (
        {part.id for part in facts.around.within(scope) if isinstance(part, ast.Name)}
        if scope is not facts.tree
        else set()
    )
    scalers = {
        part.id
        for call in facts.methods(*_SCALING)
        if isinstance(call.node.func, ast.Attribute) and isinstance(part := call.node.func.value, ast.Name)
    }
    return not own.isdisjoint(scalers)


def _made(facts: ModuleFacts, loss: ast.expr) -> Iterator[ast.expr]:
    """The expressions that may have computed a loss."""
    if isinstance(loss, ast.Attribute):
        scope, path = facts.around.scope(loss), path_of(loss)
        for bound in facts.assignments():
            if path is not None and path_of(bound.node) == path and facts.around.scope(bound.node) is scope:
                yield bound.node
        return
    if not isinstance(loss, ast.Name):
        yield loss
        return
    for one in facts.around.definitions(loss):
        if isinstance(one, ast.expr):
            yield one
