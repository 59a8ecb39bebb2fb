"""DT202: a loss computed under float16 autocast goes backward without a GradScaler."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint.infer.values import Tensor, Unknown
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import own_nodes
from dtlint_rules._names import last_name, words
from dtlint_rules._realms import class_of, helpers, stands_alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call

__all__ = ["MissingGradScaler"]

_SCALERS = ("scaler", "loss_scal", "lossscal", "scaled_loss", "grad_scal", "gradscal", "get_scale")
"""In names of what scales the loss of those who have it: GradScaler and its kin."""
_UNSEEN = (
    *("scale_loss", "set_autocast_", "autocast_dtype"),
    *("accelerat", "fabric", "deepspeed", "apex", "lightning", "colossal", "megatron", "fairscale", "mmcv", "mmengine"),
)
"""In names of what may scale every loss of the file, or set autocast's dtype: libraries that do it unseen."""


class MissingGradScaler(Rule):
    """A loss from float16 autocast goes backward without a GradScaler.

    ## What it does
    Reports `.backward()` of a loss that was computed under float16 autocast (the default on CUDA and MPS), where nothing
    scales it: the function has no GradScaler, neither has its class nor the module, nor what it calls, and no library
    that brings one is in use.

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
    needs = (("backward",),)
    calls = frozenset({"backward"})

    def __init__(self) -> None:
        self.scaled: dict[ast.AST, bool] = {}
        """By function, may something that it can reach scale its loss?"""

    def on_call(self, call: Call) -> Iterator[Finding]:
        loss = call.receiver
        if call.method != "backward" or call.args or not isinstance(loss, (Tensor, Unknown)):
            return
        region = loss.under
        if region is None or region.dtype != "float16" or region.enabled is False or loss.scaled is not None:
            return
        scope = call.flow.scope
        if scope not in self.scaled:
            self.scaled[scope] = _may_scale(scope, call.flow.tree)
        if self.scaled[scope]:
            return
        yield Finding(
            call.node,
            "The loss of float16 autocast goes backward unscaled: gradients below 3e-8 become 0",
            help="Scale the loss with `torch.amp.GradScaler`, or autocast to bfloat16",
            notes=() if region.made is None else ((region.made, "autocast to float16 begins here"),),
        )


def _may_scale(scope: ast.AST, tree: ast.Module) -> bool:
    """Does a scaler reach a function: is one in it, in its class, in the module's own variables, in what it calls?

    Where the file has one that does not, the function has to take the step as well: it is known then to train. One that
    reads gradients may divide them itself.
    """
    mentioned = words(tree)
    if any(word in mentioned for word in _UNSEEN):
        return True
    if not any(word in mentioned for word in _SCALERS) or _is_forgotten(tree):
        return False
    owner = class_of(scope, tree)
    if owner is not None and not stands_alone(owner, tree):
        return True
    code = own_nodes(scope) if scope is tree else tuple(nodes([scope]))
    attributes = {node.attr for node in code if isinstance(node, ast.Attribute)}
    if "step" not in attributes or "grad" in attributes:
        return True
    outer = [node for node in around(scope, tree) if node is not tree]
    reached = (*nodes([*outer, *helpers(code, tree)]), *code, *own_nodes(tree))
    return any(word in name for name in _variables(reached) for word in _SCALERS)


def _is_forgotten(tree: ast.Module) -> bool:
    """Is each scaler of a file made, `scaler = GradScaler()`, and spoken of nowhere else?"""
    made: set[ast.AST] = set()
    for node in nodes([tree]):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_scaler(node.value.func):
            made.update((node.value.func, *(target for target in node.targets if isinstance(target, ast.Name))))
    return bool(made) and not any(_is_scaler(node) for node in nodes([tree]) if node not in made)


def _is_scaler(node: ast.AST) -> bool:
    return any(word in name for name in _variables([node]) for word in _SCALERS)


def _variables(code: Iterable[ast.AST]) -> Iterator[str]:
    """The names in lower case that a piece of code uses; what it imports and defines reaches only who uses it."""
    for node in code:
        if isinstance(node, (ast.Name, ast.Attribute)):
            yield last_name(node).lower()
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield (node.arg or "").lower()
