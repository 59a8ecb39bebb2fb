"""DT208: autocast is told a device that need not be the one that the program runs on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Autocast
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bound_once
from dtlint_rules._functions import parameters
from dtlint_rules._lowered import is_lowered
from dtlint_rules._names import last_name, mentions, names, said
from dtlint_rules._parts import given
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Condition, End

__all__ = ["AutocastDeviceHardcoded"]

_ELSEWHERE = ("cuda", "device", "cpu", "mps", "gpu", "xpu", "amp", "fp16", "bf16", "autocast", "precision")
"""In names of a test that chooses the region by device, or by a setting that does."""


class AutocastDeviceHardcoded(Rule):
    """Autocast is told a device that need not be the one of the tensors.

    ## What it does
    Reports an autocast whose device is chosen by `torch.cuda.is_available()` where the program has a device of its own
    in hand (`self.device`, a parameter `device`); one that is written for CUDA, whatever that device is, or though the
    program falls back to the CPU itself, `torch.device("cuda" if torch.cuda.is_available() else "cpu")`, and has no
    switch; and one that is written for CUDA and switched off, `enabled=False`, in code that takes tensors of any
    device, around what autocast would cast to half: products, layers, functions of other files. Files that are for CUDA
    alone, by `.cuda()`, Triton or a GradScaler, are left alone, as are tests and settings that choose the region.

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
        self.falling: list[tuple[ast.Call, str]] = []
        """Those of programs that take a device themselves, and the CPU where there is no GPU."""
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
                elif device is None and (device := _falls_back(call)) is not None:
                    self.falling.append((call.node, device))
        device_type = call.argument_node(0, "device_type") if call.target == "torch.amp.autocast" else None
        return () if device_type is None else self._chosen(call, device_type)

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not (self.off or self.always or self.falling) or _is_for_cuda(tree):
            return
        for node, device in () if _runs_on_cuda(tree) else self.always:
            yield Finding(
                node,
                f"Autocast is hard-coded for CUDA, whatever `{device}` is",
                help=f"Pass `{device}.type`",
            )
        for node, device in () if _is_told_cuda(tree) else self.falling:
            yield Finding(
                node,
                f"Autocast is hard-coded for CUDA, but `{device}` falls back to the CPU",
                help=f"Pass `{device}.type`",
            )
        if self.on:
            return
        for node in self.off:
            outer = list(around(node, tree))
            within = next((part for part in outer if isinstance(part, _REGIONS)), None)
            owner = next((part for part in outer if isinstance(part, ast.ClassDef)), None)
            in_function = any(isinstance(part, _FUNCTIONS) for part in outer)
            if in_function and within is not None and is_lowered(within, tree, owner):
                yield Finding(
                    node,
                    "This switches autocast off on CUDA only",
                    help="Pass the device of the tensors, `x.device.type`",
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
                f"Autocast is for CUDA wherever there is a GPU, but `{device}` may be another device",
                help=f"Pass `{device}.type`",
                notes=() if where is None else ((where, "chosen by `torch.cuda.is_available()`"),),
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
_ANYWHERE = frozenset({"is_available", "amp", "is_bf16_supported"})
"""Of torch.cuda what programs for the CPU may use."""


def _runs_on_cuda(tree: ast.Module) -> bool:
    """Does a program that scales losses, or asks for the GPU's memory, plainly run on a GPU?"""
    return any("GradScaler" in name for name in names(tree)) or any(
        isinstance(node, ast.Attribute) and path_of(node.value) == "torch.cuda" and node.attr not in _ANYWHERE
        for node in nodes([tree])
    )


_SWITCHES = ("half", "mixed", "dtype", "16")
"""In names of a test by which a program may leave autocast out on the CPU, besides those above."""
_HARMLESS = _ANYWHERE | {"set_device", "manual_seed", "manual_seed_all", "empty_cache", "device_count"}
"""What programs that fall back to the CPU ask of a GPU where there is one."""


def _is_told_cuda(tree: ast.Module) -> bool:
    """Does a program that falls back to the CPU scale losses, take "cuda" in other places, or ask for the GPU's memory?"""
    for node in nodes([tree]):
        if isinstance(node, ast.Attribute) and path_of(node.value) == "torch.cuda" and node.attr not in _HARMLESS:
            return True
        if isinstance(node, ast.Assert) and "is_available" in said(node.test):
            return True
        moved = given(node) if isinstance(node, ast.Call) and last_name(node) == "to" else []
        if any(isinstance(part, ast.Constant) and str(part.value).startswith("cuda") for part in moved):
            return True
    return any("GradScaler" in name for name in names(tree))


def _falls_back(call: Call) -> str | None:
    """The device that the program takes by `torch.device("cuda" if torch.cuda.is_available() else "cpu")`, and moves
    tensors to where it autocasts."""
    scope = call.flow.scope
    decorators = getattr(scope, "decorator_list", [])
    if mentions(call.flow.conditions, _SWITCHES) or any("cuda" in name for each in decorators for name in said(each)):
        return None
    if any(isinstance(parent, (ast.IfExp, ast.BoolOp)) for parent in within(call.node, call.flow)):
        return None
    moved = {
        path_of(each)
        for node in nodes([scope])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to"
        for each in given(node)
        if isinstance(each, ast.Name)
    }
    for name in sorted(path for path in moved if path is not None and "device" in path):
        bound = bound_once(name, scope) or bound_once(name, call.flow.tree)
        if bound is not None and _is_fallback(bound):
            return name
    return None


def _is_fallback(node: ast.expr) -> bool:
    """`torch.device("cuda" if torch.cuda.is_available() else "cpu")`."""
    if not isinstance(node, ast.Call) or path_of(node.func) != "torch.device" or len(node.args) != 1:
        return False
    asked = _asked(node.args[0])
    return asked is not None and isinstance(asked.orelse, ast.Constant) and asked.orelse.value == "cpu"


def _is_chosen(conditions: list[Condition]) -> bool:
    return mentions(conditions, _ELSEWHERE)


def _is_for_cuda(tree: ast.Module) -> bool:
    """Is a file for CUDA alone, by a Triton kernel or `x.cuda()`?"""
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
