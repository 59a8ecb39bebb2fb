"""DT210: autocast is asked for a dtype that it does not cast to."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.values import Autocast
from dtlint.rule import Finding, Rule
from dtlint_rules._asked import asks_bfloat16
from dtlint_rules._names import last_name, names
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Assign, Call

__all__ = ["AutocastUnsupportedDtype"]


class AutocastUnsupportedDtype(Rule):
    """Autocast is asked for a dtype that it does not cast to.

    ## What it does
    Reports `torch.autocast("cpu", dtype=...)`, or that of another device than CUDA, with a dtype that it does not cast
    to, such as float32 or float64. A device that the program decides is left alone, and so is CUDA, where torch does
    not check the dtype, and autocast to float32 casts half inputs up.

    Also autocast that is switched on because bfloat16 or some `dtype` is asked for, and is not told it:
    `torch.autocast("cuda", enabled=args.bf16)`, `torch.autocast("cuda") if dtype is not None else nullcontext()`.

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
    calls = frozenset({"autocast"})
    values = frozenset({ast.IfExp})

    def on_call(self, call: Call) -> Iterator[Finding]:
        region = call.result
        if not isinstance(region, Autocast) or region.made is not call.node:
            return
        untold = call.complete and call.argument_node(None, "dtype") is None
        if untold and region.device != "cpu" and region.enabled is not False:
            yield from _untold(call)
        if region.device in (None, "cuda"):
            return
        # On CPU, XPU and MPS alike, by torch 2.13. CUDA checks nothing, and then casts half inputs to float32.
        if region.dtype is not None and region.dtype not in LOW_PRECISION and region.enabled is not False:
            yield Finding(
                call.node,
                f"Autocast on {region.device} does not support {region.dtype}: it warns and is off",
                help="Pass torch.float16 or torch.bfloat16, or `enabled=False`",
            )

    def on_assign(self, assign: Assign) -> Iterator[Finding]:
        """`region = torch.cuda.amp.autocast if dtype is not None else nullcontext`, which is called with nothing."""
        chosen = assign.expression
        if not isinstance(chosen, ast.IfExp) or not isinstance(assign.target, ast.Name):
            return
        path = path_of(chosen.body) or ""
        if path.rpartition(".")[2] != "autocast" or ".cpu." in path or (asked := _asked(chosen.test)) is None:
            return
        calls = [
            node
            for node in ast.walk(assign.flow.scope)
            if isinstance(node, ast.Call) and path_of(node.func) == assign.target.id
        ]
        if calls and not any(node.args or node.keywords for node in calls):
            yield _finding(chosen.body, asked)


def _untold(call: Call) -> Iterator[Finding]:
    """Autocast without a dtype, where the test that switches it on asks for one."""
    if len(call.node.args) > 1 or not _SET.isdisjoint(names(call.flow.tree)):
        return  # the second is the dtype, or `enabled` of the older form
    tests = [enabled] if (enabled := call.argument_node(None, "enabled")) is not None else []
    around = next(within(call.node, call.flow), None)
    if isinstance(around, ast.IfExp) and around.body is call.node:
        tests.append(around.test)
    held = call.flow.conditions[-1] if call.flow.conditions else None
    if held is not None and held.holds and call.flow.function is not None:
        tests.append(held.test)
    asked = next(filter(None, map(_asked, tests)), None)
    if asked is not None:
        yield _finding(call.node, asked)


def _finding(node: ast.expr, asked: str) -> Finding:
    return Finding(
        node,
        f"`{asked}` asks for a dtype, but autocast gets none: on CUDA it uses float16",
        help="Pass `dtype=`",
    )


_SET = frozenset({"set_autocast_gpu_dtype", "set_autocast_dtype"})
"""What changes the dtype that autocast casts to unless it is told one."""
_DTYPE = re.compile(r"(?:^|_)dtype$")


def _asked(test: ast.expr) -> str | None:
    """What a test asks for: bfloat16, or `dtype is not None`. That a tensor is bfloat16 nobody has asked for."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
        other = test.comparators[0]
        none = isinstance(other, ast.Constant) and other.value is None
        return ast.unparse(test) if none and _DTYPE.search(last_name(test.left)) else None
    return asks_bfloat16(test)
