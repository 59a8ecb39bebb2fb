"""DT202: a loss computed under float16 autocast goes backward without a GradScaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.values import Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._names import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["MissingGradScaler"]

_SCALING = (
    *("scaler", "scale_loss", "loss_scal", "lossscal", "scaled_loss", "grad_scal", "gradscal", "get_scale"),
    *("set_autocast_", "autocast_dtype"),
    *("accelerat", "fabric", "deepspeed", "apex", "lightning", "colossal", "megatron", "fairscale", "mmcv", "mmengine"),
)
"""In names of whatever may scale the loss, or set autocast's dtype: GradScaler and its kin, libraries that do it unseen."""


class MissingGradScaler(Rule):
    """A loss from float16 autocast goes backward without a GradScaler.

    ## What it does
    Reports `.backward()` of a loss that was computed under float16 autocast (the default on CUDA and MPS), in a file in
    which nothing scales losses: no GradScaler, no library that brings one.

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
    triggers = ("autocast",)
    calls = frozenset({"backward"})

    def __init__(self) -> None:
        self.scales: bool | None = None
        """Does the file scale losses? None until somebody asks."""

    def on_call(self, call: Call) -> Iterator[Finding]:
        loss = call.receiver
        if call.method != "backward" or call.args or not isinstance(loss, (Tensor, Unknown)):
            return
        region = loss.under
        if region is None or region.dtype != "float16" or region.enabled is False or loss.scaled is not None:
            return
        if self.scales is None:
            self.scales = any(word in words(call.flow.tree) for word in _SCALING)
        if self.scales:
            return
        yield Finding(
            call.node,
            "The loss comes from float16 autocast and goes backward unscaled: gradients below 3e-8 become 0",
            help="Scale the loss with `torch.amp.GradScaler`, or autocast to bfloat16",
            notes=() if region.made is None else ((region.made, "autocast to float16 begins here"),),
        )
