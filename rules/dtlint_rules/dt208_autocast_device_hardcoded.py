"""DT208: autocast is told a device that need not be the one that the program runs on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Autocast
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name, mentions, names, said
from dtlint_rules._parts import given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Condition, End

__all__ = ["AutocastDeviceHardcoded"]

_FOR_CUDA = frozenset({"triton", "cuda", "nccl"})
"""Names by which a file says that it is for CUDA alone: a Triton kernel, `x.cuda()`."""
_ELSEWHERE = ("cuda", "device", "cpu", "mps", "gpu", "xpu", "amp", "fp16", "bf16", "autocast", "precision")
"""In names of a test that chooses the region by device, or by a setting that does."""


class AutocastDeviceHardcoded(Rule):
    """Autocast is told a device that need not be the one of the tensors.

    ## What it does
    Reports an autocast whose device is chosen by `torch.cuda.is_available()` where the program has a device of its own
    in hand (`self.device`, a parameter `device`); one that is written for CUDA, whatever that device is, and has no
    switch; and one that is written for CUDA and switched off, `enabled=False`, in code that takes tensors of any
    device. Files that are for CUDA alone, by `.cuda()`, Triton or a GradScaler, are left alone, as are tests and
    settings that choose the region.

    ## Why it matters
    Autocast is kept per device. A region for CUDA does nothing for tensors on the CPU, on XPU or on MPS: a model that
    runs on the CPU of a machine with a GPU runs in float32, and where the region is there to keep a computation in
    float32, `autocast("cuda", enabled=False)`, the computation is cast to half under the autocast of any other device.

    ## Example
    ```python
    import torch

    def normalized(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", enabled=False):
            return x.float() @ weight.float()
    ```

    ## Use instead
    ```python
    import torch

    def normalized(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return x.float() @ weight.float()
    ```

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name = "DT208", "autocast-device-hardcoded"
    triggers = ("*autocast*",)
    calls = frozenset({"autocast"})

    def __init__(self) -> None:
        self.off: list[ast.Call] = []
        """Regions for CUDA that are switched off."""
        self.always: list[tuple[ast.Call, str]] = []
        """Regions for CUDA that are on whatever the device, and the device that the program has in hand."""
        self.on = False
        """Does the file autocast for CUDA?"""

    def on_call(self, call: Call) -> Iterable[Finding]:
        region = call.result
        if not isinstance(region, Autocast) or region.made is not call.node:
            return ()
        if region.device == "cuda":
            self.on = self.on or region.enabled is not False
            if region.enabled is False and not _is_chosen(call.flow.conditions):
                self.off.append(call.node)
            elif not _is_switched(call.node) and not _is_chosen(call.flow.conditions):
                device = _device_in_hand(call)
                if device is not None and "nullcontext" not in said(call.flow.scope):
                    self.always.append((call.node, device))
        device_type = call.argument_node(0, "device_type") if call.target == "torch.amp.autocast" else None
        return () if device_type is None else self._chosen(call, device_type)

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not (self.off or self.always) or _is_for_cuda(tree):
            return
        for node, device in () if _runs_on_cuda(tree) else self.always:
            yield Finding(
                node,
                f"Autocast is for CUDA whatever `{device}` is: on the CPU, XPU or MPS it does nothing but warn",
                help=f"Give `{device}.type`",
            )
        if self.on:
            return
        for node in self.off:
            within = next((part for part in around(node, tree) if isinstance(part, _REGIONS)), None)
            in_function = any(isinstance(part, _FUNCTIONS) for part in around(node, tree))
            if in_function and within is not None and not _only_moves(within):
                yield Finding(
                    node,
                    "This switches autocast off for CUDA alone: under autocast of the CPU, XPU or MPS it does nothing",
                    help="Give the device of the tensors, `x.device.type`",
                )

    def _chosen(self, call: Call, device_type: ast.expr) -> Iterator[Finding]:
        chosen, where = device_type, None
        if isinstance(device_type, ast.Name):
            bound = _binding(device_type.id, call)
            if bound is None or _is_device(device_type.id, call.flow.scope):
                return
            chosen, where = bound.value, bound
        asked = _asked(chosen)
        device = _device_in_hand(call) if asked is not None else None
        if device is not None:
            yield Finding(
                call.node,
                f"Autocast is for CUDA wherever a GPU is in the machine, though `{device}` may be another device",
                help=f"Give `{device}.type`",
                notes=() if where is None else ((where, "chosen by torch.cuda.is_available() here"),),
            )


def _is_switched(node: ast.Call) -> bool:
    """Is `enabled` given, by which the program may switch the region off where there is no CUDA?"""
    old = path_of(node.func) or ""
    return (
        any(keyword.arg in ("enabled", None) for keyword in node.keywords)
        or ("cuda" in old and bool(node.args))
        or len(node.args) > 2
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_REGIONS = (*_FUNCTIONS, ast.With, ast.AsyncWith)
_MOVING = frozenset({"rearrange", "repeat", "reduce", "stack", "cat", "chunk", "split", "unbind", "view", "reshape"})
"""What autocast leaves alone, on every device."""


def _only_moves(region: ast.AST) -> bool:
    """Does a region, or a decorated function, compute nothing that autocast would cast: `torch.stack((-b, a), dim=-1)`?"""
    body = [part for statement in getattr(region, "body", []) for part in ast.walk(statement)]
    called = [last_name(part) for part in body if isinstance(part, ast.Call)]
    products = any(isinstance(part, ast.BinOp) and isinstance(part.op, (ast.MatMult, ast.Pow)) for part in body)
    return bool(called) and not products and _MOVING.issuperset(called)


_ANYWHERE = frozenset({"is_available", "amp", "is_bf16_supported"})
"""Of torch.cuda what programs for the CPU may use."""


def _runs_on_cuda(tree: ast.Module) -> bool:
    """Does a program that scales losses, or asks for the GPU's memory, plainly run on a GPU?"""
    return any("GradScaler" in name for name in names(tree)) or any(
        isinstance(node, ast.Attribute) and path_of(node.value) == "torch.cuda" and node.attr not in _ANYWHERE
        for node in nodes([tree])
    )


def _is_chosen(conditions: list[Condition]) -> bool:
    return mentions(conditions, _ELSEWHERE)


def _is_for_cuda(tree: ast.Module) -> bool:
    known = names(tree)
    if "triton" in known or any(name.startswith("triton ") for name in known):
        return True
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"
        for node in nodes([tree])
    )


def _asked(node: ast.expr) -> ast.IfExp | None:
    """The expression, if it asks whether there is a GPU: `"cuda" if torch.cuda.is_available() else "cpu"`."""
    if not isinstance(node, ast.IfExp):
        return None
    asks = any(
        isinstance(part, ast.Attribute) and path_of(part) == "torch.cuda.is_available" for part in ast.walk(node.test)
    )
    literal = all(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.body, node.orelse))
    return node if asks and literal and "device" not in " ".join(said(node.test)) else None


def _binding(name: str, call: Call) -> ast.Assign | None:
    """The one assignment to a name in the running function."""
    bound = [
        node
        for node in nodes([call.flow.scope])
        if isinstance(node, ast.Assign) and any(last_name(target) == name for target in node.targets)
    ]
    before = [node for node in bound if node.lineno <= call.node.lineno]
    return before[-1] if before and all(_asked(node.value) is not None for node in bound) else None


def _is_device(name: str, scope: ast.AST) -> bool:
    """Is the name also where the tensors go: `x.to(name)`, `device=name`, `torch.device(name)`?"""
    return any(
        isinstance(node, ast.Call)
        and last_name(node) != "autocast"
        and any(isinstance(each, ast.Name) and each.id == name for each in given(node))
        for node in nodes([scope])
    )


def _device_in_hand(call: Call) -> str | None:
    """A device that the program was given: `self.device`, or a parameter."""
    function = call.flow.function
    if function is None:
        return None
    if any(parameter.arg == "device" for parameter in parameters(function.node)):
        return "device"
    where = function.owner.node if function.owner is not None else function.node
    return "self.device" if any(path_of(node) == "self.device" for node in nodes([where])) else None
