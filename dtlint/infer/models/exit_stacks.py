"""contextlib.ExitStack: what holds in a context that is entered on a stack, holds until the stack is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Device,
    Function,
    Partial,
    Ref,
    Region,
    Tuple,
    Unknown,
    Value,
)
from dtlint.infer.models.registry import model
from dtlint.infer.state import AMBIENT, CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_KINDS = ("contextlib.ExitStack", "contextlib.AsyncExitStack")
_AROUND = ("region", "default dtype", "default device")
"""What holds everywhere, and contexts change."""


@model(*_KINDS)
def _make(ctx: Context, arguments: Arguments) -> Value:
    return ctx.allocate(arguments.node, _KINDS[0], Tuple(()))


def _keep(ctx: Context, stack: Value, value: Value) -> None:
    """Remember what is to be left, or called, at the end."""
    held = ctx.store.read(stack.address, CONTENT) if isinstance(stack, Ref) else None
    if isinstance(held, Tuple) and isinstance(stack, Ref):
        ctx.store.write(stack.address, CONTENT, Tuple((*held.items, value)))


@model(*(f"{kind}.callback" for kind in _KINDS))
def _callback(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) > 1 and arguments.complete:
        given = tuple(arguments.keywords.items())
        _keep(ctx, arguments.args[0], Partial(arguments.args[1], tuple(arguments.args[2:]), given))
    return arguments.args[1] if len(arguments.args) > 1 else TOP


@model(*(f"{kind}.{name}" for kind in _KINDS for name in ("enter_context", "enter_async_context")))
def _enter(ctx: Context, arguments: Arguments) -> Value:
    """Enter a context: the stack remembers what held before the first."""
    stack, manager = arguments.args[0], arguments.get(1, "cm") or TOP
    if not isinstance(stack, Ref):
        return TOP
    for name in _AROUND:
        if ctx.store.read(stack.address, f"*{name}") is None:
            ctx.store.write(stack.address, f"*{name}", ctx.ambient(name))
    if isinstance(manager, Region):
        ctx.set_ambient("region", manager)
        return manager
    if isinstance(manager, Device):
        ctx.set_ambient("default device", manager)
        return manager
    if isinstance(manager, Partial) and isinstance(manager.callee, Function):
        return _at_yield(ctx, manager)
    if isinstance(manager, Ref):
        method = ctx.semantics.attribute(ctx, manager, "__enter__", arguments.node)
        if isinstance(method, Function):
            _keep(ctx, stack, manager)
            return ctx.semantics.call(ctx, method, Arguments([], {}, True, arguments.node))
        return manager
    if isinstance(manager, Unknown) and manager != NO_TENSOR:
        ctx.set_ambient("region", TOP)
    return ctx.modules.entered(ctx, manager) or TOP


def _at_yield(ctx: Context, manager: Partial) -> Value:
    """Run the function of a context; from here on that holds which holds where it yields."""
    given: list[Value] = []
    inside: dict[str, Value] = {}

    def on_yield(value: Value) -> Value:
        given.append(value)
        inside.update((name, ctx.ambient(name)) for name in _AROUND)
        return NONE

    ctx.modules.run_generator(ctx, manager, on_yield)
    if not given:
        raise NeverReturns
    for name, value in inside.items():
        ctx.set_ambient(name, value)
    return given[0]


@model(*(f"{kind}.{name}" for kind in _KINDS for name in ("__exit__", "__aexit__", "close", "aclose")))
def _leave(ctx: Context, arguments: Arguments) -> Value:
    stack = arguments.args[0]
    if isinstance(stack, Ref):
        for name in _AROUND:
            before = ctx.store.read(stack.address, f"*{name}")
            if before is not None:
                ctx.store.overwrite(AMBIENT, name, before)
                ctx.store.delete(stack.address, f"*{name}")
    return NONE
