"""DT208: autocast is told a device that need not be the one that the program runs on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const, Device, Region, Unknown, Value, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["AutocastDeviceHardcoded"]

_ANYWHERE = ("amp", "is_available", "is_bf16_supported", "set_device", "manual_seed", "manual_seed_all", "empty_cache")
"""Of torch.cuda what programs use that run on the CPU as well."""
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "baddbmm", "addmm", "linear", "conv1d", "conv2d", "conv3d"})


class AutocastDeviceHardcoded(Rule):
    """Autocast is told a device that need not be the one of the tensors.

    ## What it does
    Reports an autocast that is written for CUDA in a function that moves tensors to a device that it is given, or that
    falls back to the CPU, `"cuda" if torch.cuda.is_available() else "cpu"`, where nothing switches it; and one that is
    written for CUDA and switched off, `enabled=False`, around what autocast would cast to half: products, layers,
    functions that are not in view. Files that are for CUDA alone, by `.cuda()`, Triton, a GradScaler or what else they ask
    of `torch.cuda`, are left alone, as are regions under a test.

    Conditional, and so reported with `--preview` only: an autocast that is on, for most of such code is for GPUs though it
    moves its tensors to a device; and a region that is switched off, where the file has no autocast of another device.

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if _is_for_cuda(facts):
            return
        regions = {call.node: call for call in facts.calls(*FACTORIES) if isinstance(call.result, Region)}
        lowering = any(isinstance(one.result, Region) and _is_cuda(one.result) for one in regions.values())
        elsewhere = any(isinstance(one.result, Region) and one.result.device != "cuda" for one in regions.values())
        for call in regions.values():
            region = call.result
            if not isinstance(region, Region) or region.device != "cuda":
                continue
            if facts.around.guards(call.node) or _is_left_out(facts, call.node):
                continue
            if (
                region.enabled is False
                and not lowering
                and _lowers(facts, call.node)
                and not _is_one_of_several(facts, regions, call.node)
            ):
                yield Finding(
                    call.node,
                    "This switches autocast off on CUDA only",
                    help="Pass the device of the tensors, `x.device.type`",
                    conditional=not elsewhere,
                )
            elif region.enabled is True and "enabled" not in call.keywords:
                device = _device_in_hand(facts, call)
                if device is not None:
                    yield Finding(
                        call.node,
                        f"Autocast is hard-coded for CUDA, whatever `{device}` is",
                        help=f"Pass `{device}.type`",
                        conditional=True,
                    )


def _is_one_of_several(facts: ModuleFacts, regions: Mapping[ast.Call, Call], made: ast.expr) -> bool:
    """Does a context beside it, of the same function or the same `with`, switch autocast off on another device?"""
    around = facts.around
    parent = around.parent(made)
    entering = around.parent(parent) if isinstance(parent, ast.withitem) else parent
    beside = getattr(entering, "decorator_list", []) + [one.context_expr for one in getattr(entering, "items", [])]
    others = [regions[one].result for one in beside if isinstance(one, ast.Call) and one is not made and one in regions]
    return any(isinstance(one, Region) and one.device != "cuda" and one.enabled is False for one in others)


def _is_cuda(region: Region) -> bool:
    return region.device == "cuda" and region.enabled is not False


def _is_for_cuda(facts: ModuleFacts) -> bool:
    """Is a file for CUDA alone?"""
    if any(facts.methods("cuda")) or any(facts.names("triton.")) or any(facts.calls("torch.amp.GradScaler")):
        return True
    if any("is_available" in ast.unparse(node.test) for node in facts.around.of_kind(ast.Assert)):
        return True
    used = (name.split(".")[2] for _, name in facts.names("torch.cuda."))
    return any(part not in _ANYWHERE for part in used) or any(
        value in (Const("cuda"), Device("cuda"))
        for call in facts.methods("to")
        for value in (*call.args, *call.keywords.values())
    )


def _is_left_out(facts: ModuleFacts, node: ast.AST) -> bool:
    """Does a decorator run the function on a GPU alone, as those of tests do?"""
    decorators = getattr(facts.around.function(node), "decorator_list", [])
    return any("is_available" in ast.unparse(one) for one in decorators)


def _device_in_hand(facts: ModuleFacts, call: Call) -> str | None:
    """The device that the function moves tensors to, if that may be another one: a parameter, an attribute, or the choice
    of the program."""
    around = facts.around
    scope = around.scope(call.node)
    for moved in facts.methods("to"):
        given = moved.argument_node(0, "device")
        value = moved.argument(0, "device")
        if given is None or value is None or around.scope(moved.node) is not scope:
            continue
        path = ast.unparse(given)
        if path.rpartition(".")[2] == "device" and isinstance(given, (ast.Name, ast.Attribute)) and _is_any(value):
            return path
    return None


def _is_any(value: Value) -> bool:
    """May a device be the CPU?"""
    if isinstance(value, Unknown):
        return True
    kinds = {one.type if isinstance(one, Device) else getattr(one, "value", None) for one in choices(value)}
    return bool(kinds - {"cuda"})


def _lowers(facts: ModuleFacts, made: ast.expr) -> bool:
    """Does something run in a region that autocast would cast to half, and does its function take tensors of any device?"""
    around = facts.around
    parent = around.parent(made)
    region = around.parent(parent) if isinstance(parent, ast.withitem) else parent
    if not isinstance(region, (ast.With, ast.FunctionDef)) or (
        isinstance(region, ast.With) and not around.function(made)
    ):
        return False
    for node in (part for statement in region.body for part in ast.walk(statement)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Call):
            for call in facts.calls_at(node):
                last = call.name.rpartition(".")[2]
                layer = last == "__call__" and call.name.startswith("torch.nn.")
                if layer or last in _PRODUCTS or (last == "einsum" and _sums(node)):
                    return True
                if not call.name and not call.method and call.result is not None and isinstance(node.func, ast.Name):
                    return True
                own = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self"
                if not call.name and (own or call.method == "forward"):
                    return True
    return False


def _sums(node: ast.Call) -> bool:
    """Does an einsum sum over an index? Otherwise it is elementwise."""
    equation = node.args[0] if node.args else None
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        return True
    inputs, arrow, output = equation.value.replace(" ", "").partition("->")
    return not arrow or not set(inputs) - {","} <= set(output)
