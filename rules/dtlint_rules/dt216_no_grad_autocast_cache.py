"""DT216: one autocast region runs a model without gradients and then with them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Autocast, Module
from dtlint.rule import Finding, Rule
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["NoGradAutocastCache"]

_GRADLESS = frozenset({"no_grad", "inference_mode"})


class NoGradAutocastCache(Rule):
    """A model runs under `no_grad` and then with gradients in the same autocast region.

    ## What it does
    Reports the second call of a module in an autocast region whose first call stands under `torch.no_grad` or
    `torch.inference_mode` in that region, unless the region has `cache_enabled=False`.

    It is off unless selected: on torch 2.13 the gradients are there (run on the CPU), so that this concerns only
    programs that must run with older releases.

    ## Why it matters
    Autocast keeps its half copies of the weights until the outermost region ends. A copy that is made under `no_grad`
    has no way back to its weight; in torch releases of 2025 a later forward pass took it from the cache, and the
    weights got no gradient, without an error.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    x = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        with torch.no_grad():
            target = model(x)
        loss = (model(x) - target).pow(2).mean()
    loss.backward()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    x = torch.randn(4, 8)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        target = model(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = (model(x) - target).pow(2).mean()
    loss.backward()
    ```

    ## References
    - [pytorch#165068](https://github.com/pytorch/pytorch/issues/165068)
    """

    code, name, default = "DT216", "no-grad-autocast-cache", False
    triggers = ("*autocast*",)
    needs = (("no_grad", "inference_mode"),)

    def __init__(self) -> None:
        self.without: dict[tuple[ast.AST, str, ast.Call | None], ast.Call] = {}
        """Modules that a region has run without gradients, and where."""

    def on_call(self, call: Call) -> Iterator[Finding]:
        contexts = call.flow.contexts
        if not contexts or not isinstance(call.receiver, Module) or call.target != "torch.nn.Module.__call__":
            return
        region = contexts[0]
        key = (call.flow.scope, call.receiver.key, region.made)
        if _is_gradless(call, region):
            if not _uncached(region):
                self.without.setdefault(key, call.node)
        elif key in self.without:
            yield Finding(
                call.node,
                "Autocast cached these weights under `no_grad`: before torch 2.10 they may get no gradient",
                help="End the region after the first call, or pass `cache_enabled=False`",
                notes=((self.without.pop(key), "run without gradients here"),),
                until=(2, 10),
            )


def _is_gradless(call: Call, region: Autocast) -> bool:
    """Does it stand in a `with torch.no_grad()` inside the region?"""
    for part in around(call.node, call.flow.tree):
        if isinstance(part, ast.With):
            made = [item.context_expr for item in part.items]
            if any(isinstance(each, ast.Call) and last_name(each.func) in _GRADLESS for each in made):
                return True
            if region.made in made:
                return False
    return False


def _uncached(region: Autocast) -> bool:
    return region.made is not None and any(
        keyword.arg == "cache_enabled" and path_of(keyword.value) is None and not getattr(keyword.value, "value", True)
        for keyword in region.made.keywords
    )
