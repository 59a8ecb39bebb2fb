"""DT218: autocast is used as a decorator in a way that raises, or that never enters the region, and autocast or a
GradScaler is given what another class of that name takes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.around import parents
from dtlint.infer.names import path_of
from dtlint.infer.values import Autocast
from dtlint.infer.walk import SCOPES, nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._amp_arguments import misplaced
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End, Reference

__all__ = ["AmpWrapperMisuse"]

_AUTOCASTS = frozenset({"torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_OLD = frozenset({"torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
_TAKING = _AUTOCASTS | {f"torch.{package}.GradScaler" for package in ("amp", "cuda.amp", "cpu.amp")}


class AmpWrapperMisuse(Rule):
    """Autocast or a GradScaler is made, or decorates a function, in a way that cannot work.

    ## What it does
    Reports `@autocast` and `with autocast` without parentheses, autocast around a generator or a coroutine, and a bound
    method that is wrapped in autocast and then bound a second time, `MethodType(autocast(...)(model.forward), model)`.
    Also a device that is given to the classes of `torch.cuda.amp` and `torch.cpu.amp`, which know none,
    `torch.cuda.amp.autocast(x.device.type, enabled=False)` and `torch.cuda.amp.GradScaler("cuda")`; and those of
    `torch.amp` where they lack the device, or are given a switch in place of it or of the dtype,
    `torch.autocast("cuda", False)`.

    ## Why it matters
    `torch.autocast` without parentheses takes the function for a device and raises; that of `torch.cuda.amp` takes it
    for `enabled`, and the decorated name is then a context and no function. A generator runs when it is iterated over,
    and by then the region that the decorator entered has ended: it computes in float32, without a word. A method that
    is bound twice gets `self` twice.

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
    calls = frozenset({"autocast", "GradScaler"})
    references = _AUTOCASTS

    def __init__(self) -> None:
        self.made: set[ast.expr] = set()
        self.named: dict[ast.expr, str] = {}

    def on_call(self, call: Call) -> Iterable[Finding]:
        if isinstance(call.result, Autocast) and call.result.made is call.node and call.result.enabled is not False:
            self.made.add(call.node)
        if call.target not in _TAKING or call.flow.version_gated or (found := misplaced(call)) is None:
            return ()
        return (found,)

    def on_reference(self, reference: Reference) -> Iterable[Finding]:
        self.named[reference.node] = reference.name
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not (self.made or self.named):
            return
        known = parents(tree)
        for node in nodes([tree]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.decorator_list:
                yield from self._decorated(node)
            elif isinstance(node, ast.Call) and last_name(node.func) == "MethodType" and len(node.args) == 2:
                yield from self._bound_twice(node)
        for expression in self.named:
            if isinstance(known.get(expression), ast.withitem):
                yield Finding(
                    expression,
                    "`with` gets the class `autocast`, not an instance: this raises",
                    help="Call it: `torch.autocast(device_type)`",
                )

    def _decorated(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
        for decorator in function.decorator_list:
            name = self.named.get(decorator)
            if name is not None:
                fate = (
                    "the function becomes a context"
                    if name in _OLD
                    else "the function is taken for the device, which raises"
                )
                yield Finding(
                    decorator, f"`@autocast` lacks parentheses: {fate}", help="Call it: `@torch.autocast(...)`"
                )
            elif decorator in self.made and _runs_later(function):
                kind = "coroutine" if isinstance(function, ast.AsyncFunctionDef) else "generator"
                yield Finding(
                    decorator,
                    f"Autocast ends before the {kind} `{function.name}` runs",
                    help="Enter autocast by `with` inside the function",
                    severity=Severity.WARNING,
                )

    def _bound_twice(self, node: ast.Call) -> Iterator[Finding]:
        wrapped = node.args[0]
        if not isinstance(wrapped, ast.Call) or wrapped.func not in self.made or len(wrapped.args) != 1:
            return
        method, instance = path_of(wrapped.args[0]), path_of(node.args[1])
        if method is not None and instance is not None and method.rpartition(".")[0] == instance:
            yield Finding(
                node,
                f"`{method}` is already bound: bound again, it gets `{instance}` twice and raises",
                help=f"Wrap `{method}.__func__`, or remove `MethodType`",
            )


def _runs_later(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Does calling the function not run its body?"""
    if isinstance(function, ast.AsyncFunctionDef):
        return True
    yields = any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes(function.body, SCOPES))
    managers = {last_name(part) for part in function.decorator_list}
    return yields and managers.isdisjoint({"contextmanager", "fixture"})
