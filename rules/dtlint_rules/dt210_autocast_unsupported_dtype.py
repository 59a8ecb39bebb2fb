"""DT210: autocast is asked for a dtype that it does not cast to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Dtype, Region
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["AutocastUnsupportedDtype"]


class AutocastUnsupportedDtype(Rule):
    """Autocast is asked for a dtype that it does not cast to.

    ## What it does
    Reports `torch.autocast("cpu", dtype=...)`, or that of another device than CUDA, with a dtype that it does not cast
    to, such as float32 or float64. A device that the program decides is left alone, and so is CUDA, where torch does
    not check the dtype, and autocast to float32 casts half inputs up.

    Also autocast that a comparison with bfloat16 switches on, and that is not told it:
    `torch.autocast("cuda", enabled=dtype == torch.bfloat16)`.

    ## Why it matters
    Autocast of the CPU, XPU and MPS casts to float16 or bfloat16. For any other dtype it warns, "the target dtype is
    not supported. Disabling autocast", and is off: inputs that are half stay half, and meet float32 weights, which
    raises. On CUDA autocast casts to float16 unless it is told otherwise: with bf16 asked for, and no GradScaler, small
    gradients become 0 and large activations inf. Who wants float32 switches autocast off with `enabled=False` and casts
    the inputs.

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        told = any(facts.names("torch.set_autocast_gpu_dtype", "torch.set_autocast_dtype"))
        for call in facts.calls(*FACTORIES):
            region = call.result
            if not isinstance(region, Region) or region.enabled is False:
                continue
            # CPU, XPU and MPS alike, by torch 2.13. CUDA checks nothing, and then casts half inputs to float32.
            if region.device not in (None, "cuda") and region.dtype is not None and region.dtype not in LOW_PRECISION:
                yield Finding(
                    call.node,
                    f"Autocast on {region.device} does not support {region.dtype}: it warns and is off",
                    help="Pass torch.float16 or torch.bfloat16, or `enabled=False`",
                )
            asked = call.argument_node(None, "enabled")
            untold = region.dtype == "float16" and "dtype" not in call.keywords and len(call.args) < 2 and not told
            if untold and asked is not None and _asks_for_bfloat16(facts, asked):
                yield Finding(
                    call.node,
                    f"`{ast.unparse(asked)}` asks for a dtype, but autocast gets none: on CUDA it uses float16",
                    help="Pass `dtype=`",
                )


def _asks_for_bfloat16(facts: ModuleFacts, test: ast.expr) -> bool:
    """`dtype == torch.bfloat16`"""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return False
    return Dtype(frozenset({"bfloat16"})) in (facts.value(test.left), facts.value(test.comparators[0]))
