"""DT218: autocast is used as a decorator in a way that raises, or that never enters the region, and autocast or a
GradScaler is given what another class of that name takes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Const, Device, Dtype, Region, Value, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import FACTORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["AmpWrapperMisuse"]

_TAKING = (*FACTORIES, *(f"torch.{package}.GradScaler" for package in ("amp", "cuda.amp", "cpu.amp")))
_FIRST = {
    f"torch.{device}.amp.{name}": first
    for device in ("cuda", "cpu")
    for name, first in (("autocast", "enabled"), ("GradScaler", "init_scale"))
}
"""The classes of torch.cuda.amp and torch.cpu.amp, and what each takes first; those of torch.amp take the device."""


class AmpWrapperMisuse(Rule):
    """Autocast or a GradScaler is made, or decorates a function, in a way that cannot work.

    ## What it does
    Reports `@autocast` and `with autocast` without parentheses, and autocast around a generator or a
    coroutine.
    Also a device that is given to the classes of `torch.cuda.amp` and `torch.cpu.amp`, which know none,
    `torch.cuda.amp.autocast(x.device.type, enabled=False)` and `torch.cuda.amp.GradScaler("cuda")`; and those of
    `torch.amp` where they lack the device, or are given a switch in place of it or of the dtype,
    `torch.autocast("cuda", False)`.

    ## Why it matters
    `torch.autocast` without parentheses takes the function for a device and raises; that of `torch.cuda.amp` takes it
    for `enabled`, and the decorated name is then a context and no function. A generator runs when it is iterated over,
    and by then the region that the decorator entered has ended: it computes in float32, without a word.

    The classes of `torch.amp` take the device first, the older ones of the same names take `enabled` and `init_scale`. An
    autocast or a scaler that has the one's arguments and is imported from the other raises: the scaler only where a loss
    is scaled, on a GPU. `torch.amp.GradScaler(False)` raises nowhere, and is on.

    ## Example
    ```python
    import torch

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def products(matrices):
        for matrix in matrices:
            yield matrix @ matrix

    results = list(products([torch.randn(4, 4)]))
    ```

    ## Use instead
    ```python
    import torch

    def products(matrices):
        for matrix in matrices:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                product = matrix @ matrix
            yield product

    results = list(products([torch.randn(4, 4)]))
    ```

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name, severity = "DT218", "amp-wrapper-misuse", Severity.ERROR
    triggers = ("*autocast*", "GradScaler")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls(*_TAKING):
            guarded = facts.around.guards(call.node) or any(
                isinstance(one, ast.Try) for one in facts.around.around(call.node)
            )
            sure = len({one.name for one in facts.calls_at(call.node)}) == 1
            if sure and not guarded and (found := _misplaced(facts, call)) is not None:
                yield found
        for node, name in facts.names(*FACTORIES):
            parent = facts.around.parent(node)
            if isinstance(parent, ast.withitem):
                yield Finding(
                    node,
                    "`with` gets the class `autocast`, not an instance: this raises",
                    help="Call it: `torch.autocast(device_type)`",
                )
            elif isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in parent.decorator_list:
                old = "the function becomes a context"
                new = "the function is taken for the device, which raises"
                yield Finding(
                    node,
                    f"`@autocast` lacks parentheses: {new if name == FACTORIES[0] else old}",
                    help="Call it: `@torch.autocast(...)`",
                )
        for function in facts.around.functions():
            yield from _too_early(facts, function)


def _too_early(facts: ModuleFacts, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    """Autocast around a generator or a coroutine."""
    for decorator in function.decorator_list:
        region = facts.value(decorator)
        if isinstance(region, Region) and region.enabled is not False and _runs_later(facts, function):
            kind = "coroutine" if isinstance(function, ast.AsyncFunctionDef) else "generator"
            yield Finding(
                decorator,
                f"Autocast ends before the {kind} `{function.name}` runs",
                help="Enter autocast by `with` inside the function",
                severity=Severity.WARNING,
            )


def _runs_later(facts: ModuleFacts, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Does calling the function not run its body?"""
    if isinstance(function, ast.AsyncFunctionDef):
        return True
    yields = (node for node in ast.walk(function) if isinstance(node, (ast.Yield, ast.YieldFrom)))
    managers = {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}
    return not managers & {"contextmanager", "fixture"} and any(
        facts.around.function(one) is function for one in yields
    )


def _misplaced(facts: ModuleFacts, call: Call) -> Finding | None:
    """The device that an old class is given, `torch.cuda.amp.autocast("cuda")`, or the switch that a new class is given in
    the place of a device or a dtype, `torch.amp.autocast("cuda", False)`."""
    if (first := _FIRST.get(call.name)) is not None:
        return _unknown_keyword(call) or _device(facts, call, first)
    if not call.complete:
        return None
    return _region(call) if call.name == "torch.amp.autocast" else _scaler(call)


def _unknown_keyword(call: Call) -> Finding | None:
    for keyword in call.node.keywords:
        if keyword.arg in ("device", "device_type"):
            told = f"`{call.name}` has no argument `{keyword.arg}`: this raises TypeError"
            return Finding(keyword.value, told, _advice(call))
    return None


def _device(facts: ModuleFacts, call: Call, first: str) -> Finding | None:
    """A device, or the dtype of an autocast, in the first place of an old class."""
    node, value = call.argument_node(0, ""), call.argument(0, "")
    if node is None or not ((dtype := isinstance(value, Dtype)) or _is_device(facts, node, value)):
        return None
    of_scaler = call.name.endswith("GradScaler")
    if first in call.keywords:
        fate = f"TypeError, got multiple values for argument '{first}'"
    else:
        fate = f"TypeError {'where a loss is scaled' if of_scaler else 'where the region is entered'}"
    return Finding(
        node,
        f"`{call.name}` takes `{first}` here, and `{ast.unparse(node)}` is a {'dtype' if dtype else 'device'}: {fate}",
        help="Name it: `dtype=`" if dtype and not of_scaler else _advice(call),
    )


def _advice(call: Call) -> str:
    return f"Use `torch.amp.{call.name.rpartition('.')[2]}`, which takes the device first"


def _region(call: Call) -> Finding | None:
    """`torch.autocast(enabled=...)` without a device, and bools in the places of the device and the dtype."""
    bound = isinstance(call.result, Region) and call.result.device is not None  # by `functools.partial`
    if not call.args and "device_type" not in call.keywords and not bound:
        return Finding(
            call.node,
            "`torch.autocast` needs a device type: this raises TypeError",
            help='Pass it first: `torch.autocast("cuda", ...)`',
        )
    for position, name in enumerate(("device_type", "dtype")):
        node = call.argument_node(position, "")
        if node is not None and isinstance(call.constant(position, ""), bool):
            fate = "it raises" if position == 0 else "it is taken for the dtype"
            return Finding(
                node,
                f"`torch.autocast` takes `{name}` here, and `{ast.unparse(node)}` is none: {fate}",
                help="Name it: `enabled=`",
            )
    return None


def _scaler(call: Call) -> Finding | None:
    """`torch.amp.GradScaler(False)`, which is on."""
    node, given = call.argument_node(0, ""), call.constant(0, "")
    if node is None or not isinstance(given, (bool, int, float)):
        return None
    meant = "enabled" if isinstance(given, bool) else "init_scale"
    return Finding(
        node,
        f"`torch.amp.GradScaler` takes `device` here: `{ast.unparse(node)}` does not set `{meant}`",
        help=f"Name it: `{meant}=`",
    )


def _is_device(facts: ModuleFacts, node: ast.expr, value: Value | None) -> bool:
    """Is it a device, or the type of one?"""
    if isinstance(node, ast.Attribute) and node.attr == "type":
        return isinstance(facts.value(node.value), Device)
    given = () if value is None else choices(value)
    return bool(given) and all(
        isinstance(one, Device) or (isinstance(one, Const) and isinstance(one.value, str)) for one in given
    )
