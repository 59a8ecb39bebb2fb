"""DT215: a model of float32 and half parts runs outside autocast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.around import around
from dtlint.rule import Finding, Rule
from dtlint_rules._names import said
from dtlint_rules._needs import HALF_BY_NAME
from dtlint_rules._training import Models, upcasts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End

__all__ = ["AutocastMissing"]


class AutocastMissing(Rule):
    """A pipeline of half and float32 modules runs outside autocast.

    ## What it does
    Reports a call of a pipeline that is loaded in half precision and shares a model in training, where the script keeps
    the trainable parameters of that model in float32, and no autocast is in force.

    ## Why it matters
    Operators like `linear` and `conv2d` do not promote: a float32 adapter in a float16 model raises "mat1 and mat2 must
    have the same dtype". In training autocast casts both sides; a validation in the same script needs it too.

    ## Example
    ```python
    import torch

    def main(args, accelerator, unet, adapter, StableDiffusionPipeline):
        unet.add_adapter(adapter)
        for param in unet.parameters():
            if param.requires_grad:
                param.data = param.to(torch.float32)
        pipeline = StableDiffusionPipeline.from_pretrained(
            args.model, unet=accelerator.unwrap_model(unet), torch_dtype=torch.float16
        )
        return pipeline(args.prompt).images
    ```

    ## Use instead
    ```python
    import torch

    def main(args, accelerator, unet, adapter, StableDiffusionPipeline):
        unet.add_adapter(adapter)
        for param in unet.parameters():
            if param.requires_grad:
                param.data = param.to(torch.float32)
        pipeline = StableDiffusionPipeline.from_pretrained(
            args.model, unet=accelerator.unwrap_model(unet), torch_dtype=torch.float16
        )
        with torch.autocast(accelerator.device.type):
            return pipeline(args.prompt).images
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "DT215", "autocast-missing"
    triggers = ("*Pipeline*",)
    needs = (HALF_BY_NAME,)

    def __init__(self) -> None:
        self.models = Models()
        self.run: list[tuple[ast.Call, str, ast.AST]] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        self.models.hear(call)
        function = call.node.func
        if isinstance(function, ast.Name) and not call.flow.contexts:
            made = self.models.pipelines.get((call.flow.scope, function.id))
            if made and made[-1].dtypes and made[-1].dtypes & LOW_PRECISION:
                self.run.append((call.node, function.id, call.flow.scope))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not self.run or not upcasts(tree):
            return
        for node, name, scope in self.run:
            shared = self.models.sharing(scope, name, node.lineno)
            if shared is not None and not _in_context(node, tree):
                yield Finding(
                    node,
                    f"`{name}` is half, but trained parameters of `{shared[1]}` are float32: outside autocast this raises",
                    help=f"Run `{name}` under `torch.autocast`",
                    notes=((shared[0].node, "made here"),),
                )


def _in_context(node: ast.AST, tree: ast.Module) -> bool:
    """Does it stand in a context that may be autocast?"""
    return any(
        isinstance(part, ast.With)
        and any("autocast" in word or "ctx" in word for item in part.items for word in said(item.context_expr))
        for part in around(node, tree)
    )
