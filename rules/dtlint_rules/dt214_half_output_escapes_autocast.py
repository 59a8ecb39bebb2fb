"""DT214: what autocast computed in half is used outside of it as if it were float32."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Autocast, Module
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._names import last_name
from dtlint_rules._regions import half_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End

__all__ = ["HalfOutputEscapesAutocast"]

_LOSSES = frozenset(
    f"torch.nn.functional.{name}"
    for name in (
        *("cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div"),
        *("binary_cross_entropy_with_logits", "cosine_embedding_loss", "triplet_margin_loss"),
    )
)
_LOSS_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        *("CrossEntropyLoss", "MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss", "BCEWithLogitsLoss"),
        *("NLLLoss", "CosineEmbeddingLoss", "TripletMarginLoss"),
    )
)
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in ("Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "GRU", "LSTM", "Bilinear")
)
"""Layers that raise where input and weight differ in dtype. Outputs of theirs are half under autocast."""
_CRITERIA = frozenset({"criterion", "loss_fn", "loss_func", "loss_function", "criterion_fn"})


class HalfOutputEscapesAutocast(Rule):
    """An output of autocast is used in half outside of the region.

    ## What it does
    Reports a loss that is computed outside autocast on what a layer gave inside, a float32 layer that gets such a
    value, and a `forward` that is replaced by itself under autocast, `model.forward = autocast(...)(model.forward)`,
    without a cast of what it returns.

    Conditional, and so reported with `--preview` only: losses that only their names tell of, such as `criterion`.

    ## Why it matters
    Linear and convolutional layers return half under autocast. Inside the region losses, softmax and norms are cast up
    to float32; outside nothing is: cross entropy of bfloat16 logits is a bfloat16 number, with 3 digits, and a float32
    layer raises. Losses belong into the region, and what leaves it wants `.float()`.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    model = torch.nn.Linear(8, 4)
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
    loss = F.cross_entropy(logits, y)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    model = torch.nn.Linear(8, 4)
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
    ```

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT214", "half-output-escapes-autocast"
    triggers = ("*autocast*",)
    calls = frozenset({"__call__", *(name.rpartition(".")[2] for name in _LOSSES), *_CRITERIA, "autocast"})
    targets = frozenset({ast.Attribute})

    def __init__(self) -> None:
        self.made: set[ast.expr] = set()
        """Calls that make autocast contexts which are, or may be, on."""
        self.halves: set[ast.expr] = set()
        """Calls whose results are half: layers that ran under autocast."""
        self.wrapped: list[_Wrapped] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        result = call.result
        if isinstance(result, Autocast):
            if result.enabled is not False and result.made is call.node:
                self.made.add(call.node)
            return ()
        layer = call.receiver if isinstance(call.receiver, Module) and call.target.endswith("__call__") else None
        if call.flow.contexts:
            return ()
        if call.target in _LOSSES or (layer is not None and layer.name in _LOSS_LAYERS) or _is_called_loss(call):
            return self._loss(call)
        if layer is not None and layer.name in _LAYERS and call.args:
            return self._layer(call)
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        target, value = assign.target, assign.expression
        if isinstance(target, ast.Attribute) and target.attr == "forward" and isinstance(value, ast.Call):
            path = path_of(target)
            if path is not None and (autocast := self._autocast_in(value)) is not None:
                self.wrapped.append(_Wrapped(value, path, autocast, assign.flow.scope))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None:
            return
        for wrapped in self.wrapped:
            if not wrapped.is_cast_again:
                yield Finding(
                    wrapped.node,
                    f"`{wrapped.path}` now returns half: losses outside autocast are computed in half",
                    help="Cast its outputs to float32 in a second wrapper",
                )

    def _loss(self, call: Call) -> Iterator[Finding]:
        region = half_from(call.args[0]) if call.args and call.node.args else None
        if region is not None and not _is_cast(call.node.args[0], call.flow.scope):
            yield Finding(
                call.node,
                f"The loss is computed in {region.dtype or 'half'}, outside the autocast that made its input",
                help="Compute the loss inside the region, or cast with `.float()`",
                notes=() if region.made is None else ((region.made, "computed under this autocast"),),
                conditional=_is_called_loss(call),
            )

    def _layer(self, call: Call) -> Iterator[Finding]:
        region = half_from(call.args[0]) if call.node.args else None
        if region is not None and not _is_cast(call.node.args[0], call.flow.scope):
            yield Finding(
                call.node,
                f"The layer raises: its input is {region.dtype or 'half'} from autocast, its weight float32",
                help="Cast the input with `.float()`, or call the layer inside the region",
                notes=() if region.made is None else ((region.made, "computed under this autocast"),),
            )

    def _autocast_in(self, value: ast.Call) -> ast.Call | None:
        """The call that makes autocast, in `autocast(...)(forward)` and `MethodType(autocast(...)(forward), model)`."""
        if last_name(value.func) == "MethodType" and value.args and isinstance(value.args[0], ast.Call):
            value = value.args[0]
        return value.func if isinstance(value.func, ast.Call) and value.func in self.made else None


def _is_called_loss(call: Call) -> bool:
    """Is it what programs call a loss, `criterion(output, target)`, whatever stands behind the name?"""
    return not call.target and len(call.args) == 2 and last_name(call.node.func) in _CRITERIA


_CASTS = frozenset({"float", "double", "to", "type", "type_as", "float32"})


def _is_cast(node: ast.expr, scope: ast.AST) -> bool:
    """Is an argument cast on the way to the call, or the name that it has bound to something that is?"""
    if any(isinstance(part, ast.Attribute) and part.attr in _CASTS for part in ast.walk(node)):
        return True
    named = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return any(
        isinstance(part, ast.Attribute) and part.attr in _CASTS
        for bound in nodes([scope])
        if isinstance(bound, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id in named for target in bound.targets)
        for part in ast.walk(bound.value)
    )


@dataclass(slots=True)
class _Wrapped:
    """A `forward` under autocast."""

    node: ast.Call
    path: str
    autocast: ast.Call
    scope: ast.AST

    @property
    def is_cast_again(self) -> bool:
        """Does the function wrap it again afterwards?"""
        return any(
            isinstance(node, ast.Assign)
            and node.lineno > self.node.lineno
            and any(path_of(target) == self.path for target in node.targets)
            and any("float" in (name := last_name(part).lower()) or "fp32" in name for part in ast.walk(node.value))
            for node in nodes([self.scope])
        )
