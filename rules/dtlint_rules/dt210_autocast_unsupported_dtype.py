"""DT210: autocast is asked for a dtype that it does not cast to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.values import Autocast
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["AutocastUnsupportedDtype"]


class AutocastUnsupportedDtype(Rule):
    """Autocast of another device than CUDA is asked for a dtype other than float16 and bfloat16.

    ## What it does
    Reports `torch.autocast("cpu", dtype=...)`, or that of another device than CUDA, with a dtype that it does not cast
    to, such as float32 or float64. A device that the program decides is left alone, and so is CUDA, where torch does
    not check the dtype, and autocast to float32 casts half inputs up.

    ## Why it matters
    Autocast of the CPU, XPU and MPS casts to float16 or bfloat16. For any other dtype it warns, "the target dtype is
    not supported. Disabling autocast", and is off: inputs that are half stay half, and meet float32 weights, which
    raises. Who wants float32 switches autocast off with `enabled=False` and casts the inputs.

    ## Example
    ```python
    import torch

    a = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = a @ a
        with torch.autocast("cpu", dtype=torch.float32):
            c = a @ a
    ```

    ## Use instead
    ```python
    import torch

    a = torch.randn(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        b = a @ a
        with torch.autocast("cpu", enabled=False):
            c = a @ a
    ```

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name = "DT210", "autocast-unsupported-dtype"
    triggers = ("*autocast*",)
    calls = frozenset({"autocast"})

    def on_call(self, call: Call) -> Iterator[Finding]:
        region = call.result
        if not isinstance(region, Autocast) or region.made is not call.node or region.device in (None, "cuda"):
            return
        # On CPU, XPU and MPS alike, by torch 2.13. CUDA checks nothing, and then casts half inputs to float32.
        if region.dtype is not None and region.dtype not in LOW_PRECISION and region.enabled is not False:
            yield Finding(
                call.node,
                f"Autocast on {region.device} does not cast to {region.dtype}: it warns and is off",
                help="Use `enabled=False` to switch autocast off, or give torch.float16 or torch.bfloat16",
            )
