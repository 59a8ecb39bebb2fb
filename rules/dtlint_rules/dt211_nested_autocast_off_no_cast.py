"""DT211: what autocast computed in half goes uncast into a region that switches autocast off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.values import Module
from dtlint.rule import Finding, Rule
from dtlint_rules._regions import half_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["NestedAutocastOffNoCast"]

_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        *("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        *("GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell", "MultiheadAttention"),
    )
)
"""Layers that do not promote, and raise where input and weight differ in dtype."""


class NestedAutocastOffNoCast(Rule):
    """A half result of autocast enters a layer where autocast is switched off.

    ## What it does
    Reports a linear, convolutional or recurrent layer that is called under `torch.autocast(..., enabled=False)` on what
    an enabled autocast region of the same function computed with such a layer, without a cast between.

    ## Why it matters
    `enabled=False` only stops autocast from casting. The input is still half, the weight float32, and the layer raises
    "mat1 and mat2 must have the same dtype". The input has to be cast by hand: `h.float()`.

    ## Example
    ```python
    import torch

    body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = body(torch.randn(4, 8))
        with torch.autocast("cpu", enabled=False):
            y = head(h)
    ```

    ## Use instead
    ```python
    import torch

    body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = body(torch.randn(4, 8))
        with torch.autocast("cpu", enabled=False):
            y = head(h.float())
    ```

    ## References
    - [torch.autocast: subregions with enabled=False](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name, severity = "DT211", "nested-autocast-off-no-cast", Severity.ERROR
    triggers = ("*autocast*",)

    calls = frozenset({"__call__"})

    def on_call(self, call: Call) -> Iterator[Finding]:
        contexts = call.flow.contexts
        if not contexts or contexts[-1].enabled is not False or not call.args:
            return
        layer = call.receiver
        if not isinstance(layer, Module) or layer.name not in _LAYERS or not call.target.endswith("__call__"):
            return
        region = half_from(call.args[0])
        if region is not None and (layer.dtypes is None or layer.dtypes == frozenset({"float32"})):
            yield Finding(
                call.node,
                f"The input is {region.dtype or 'half'} from autocast and the weight float32: with autocast off, the "
                "layer raises",
                help="Cast the input with `.float()`",
                notes=() if region.made is None else ((region.made, "computed under this autocast"),),
            )
