"""`with`: autocast regions, contexts that generators make, and those that change no dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Const,
    Device,
    External,
    Function,
    Partial,
    Ref,
    Region,
    Tuple,
    Union,
    Value,
    choices,
)
from dtlint.infer.models.amp import DEFAULT_DTYPE
from dtlint.infer.semantics import names
from dtlint.infer.semantics.branches import do_on_each_way_out, on_each_way_out, ways_out
from dtlint.infer.semantics.expressions import evaluate
from dtlint.infer.state import AMBIENT, CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context
    from dtlint.infer.state import Difference

__all__ = ["in_region", "with_statement"]


def with_statement(ctx: Context, node: ast.With | ast.AsyncWith) -> bool:
    """Enter the contexts one in another, run the block, leave them."""

    def entered(place: int) -> bool:
        if place == len(node.items):
            return ctx.semantics.execute(ctx, node.body)
        item = node.items[place]
        manager = evaluate(ctx, item.context_expr)

        def run(given: Value) -> bool:
            if item.optional_vars is not None:
                names.assign(ctx, item.optional_vars, given)
            return entered(place + 1)

        return _in_context(ctx, manager, run, node)

    return entered(0)


def _in_context(ctx: Context, manager: Value, run: Callable[[Value], bool], node: ast.AST) -> bool:
    """Run a block in a context."""
    regions = [one for one in choices(manager) if isinstance(one, Region)]
    if regions:
        # a context that may be a region, or none: what is under it is computed in a region that may be off
        region = regions[0] if len(regions) == 1 else _one_of(regions)
        if len(regions) < len(choices(manager)):
            region = Region(region.device, region.dtype, None)
        return in_region(ctx, region, lambda: run(manager))
    if isinstance(manager, Partial) and manager.callee == GENERATOR_CONTEXT:
        return _in_generator(ctx, manager, run)
    if isinstance(manager, Partial) and manager.callee == SUPPRESSING:
        return _leaving(ctx, lambda: run(NONE), lambda raised: Const(raised), swallows=True)
    if isinstance(manager, Ref) and manager.address.kind == STACK:
        return _in_stack(ctx, manager, run, node)
    if isinstance(manager, Ref):
        return _restoring(ctx, lambda: _in_object(ctx, manager, run, node))
    if isinstance(manager, Device):  # `with torch.device("meta"):` tensors are made there
        return _by_default(ctx, "default device", manager, lambda: run(manager))
    if isinstance(manager, Partial) and manager.callee == DEFAULT_DTYPE:
        return _by_default(ctx, "default dtype", manager.args[0], lambda: run(NONE))
    given = ctx.modules.entered(ctx, manager)
    return run(TOP if given is None else given)


def _by_default(ctx: Context, name: str, value: Value, run: Callable[[], bool]) -> bool:
    """Run a block in which tensors are made on another device by default, or in another dtype."""
    around = ctx.ambient(name)
    returns = len(ctx.frame.returns)
    ctx.set_ambient(name, value)
    try:
        return run()
    finally:
        ctx.set_ambient(name, around)
        for changed, _ in ctx.frame.returns[returns:]:
            changed[AMBIENT, name] = around


def _in_object(ctx: Context, manager: Ref, run: Callable[[Value], bool], node: ast.AST) -> bool:
    """Run a block between an object's `__enter__` and `__exit__`."""
    enter = ctx.semantics.attribute(ctx, manager, "__enter__", node)
    if not isinstance(enter, Function):
        return run(manager)
    leaving = ctx.semantics.attribute(ctx, manager, "__exit__", node)
    entered = ctx.semantics.call(ctx, enter, Arguments([], {}, True, node))
    if not isinstance(leaving, Function):
        return run(entered)
    leave: Function = leaving

    def left(raised: bool) -> Value:
        return ctx.semantics.call(ctx, leave, Arguments([TOP if raised else NONE] * 3, {}, True, node))

    return _leaving(ctx, lambda: run(entered), left, _may_swallow(leave))


def _restoring(ctx: Context, run: Callable[[], bool]) -> bool:
    """Run a block in a context that may change the region or the default dtype, and puts them back on every way out."""
    store, frame = ctx.store, ctx.frame
    around = {(AMBIENT, name): ctx.ambient(name) for name in ("region", "opened", "default dtype", "default device")}
    loops = frame.loops[-1] if frame.loops else None
    before = len(frame.returns), len(loops.breaks) if loops else 0, len(loops.continues) if loops else 0
    noted = {cell: store.watches[-1][0].get(cell) for cell in around} if store.watches else {}
    try:
        return run()
    finally:
        for (_, name), value in around.items():
            if ctx.ambient(name) != value:
                ctx.set_ambient(name, value)
        for cell, known in noted.items():  # an exception puts it back, too
            if known is None:
                store.watches[-1][0].pop(cell, None)
            else:
                store.watches[-1][0][cell] = known
        left = [changed for changed, _ in frame.returns[before[0] :]]
        if loops is not None:
            left += [*loops.breaks[before[1] :], *loops.continues[before[2] :]]
        for changed in left:
            changed.update((cell, value) for cell, value in around.items() if cell in changed)


SUPPRESSING = External("contextlib.suppress")
STACK = "contextlib.ExitStack"


def _may_swallow(leave: Function) -> bool:
    """May an `__exit__` say that an exception goes no further?"""
    node = leave.definition.node
    if isinstance(node, ast.Lambda):
        return True
    returns = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
    return any(not isinstance(one, ast.Constant) or bool(one.value) for one in returns)


def _leaving(ctx: Context, run: Callable[[], bool], left: Callable[[bool], Value], swallows: bool) -> bool:
    """Run a block, and what is run when it is left: at its end, by a jump, or by an exception at any point of it."""
    store = ctx.store
    since, mark = ways_out(ctx), store.mark()
    ends: list[Difference] = []

    def leave(raised: bool) -> Value | None:
        try:
            return left(raised)
        except NeverReturns:
            return None

    store.watch()
    try:
        reached = run()
    except NeverReturns:
        reached = False
    seen = store.unwatch()
    if reached and leave(False) is not None:
        ends.append(store.difference(mark))
    store.undo(mark)
    do_on_each_way_out(ctx, since, lambda: leave(False) is not None)
    if swallows or store.watches:
        store.apply(store.left_anywhere(seen))
        answer = leave(True)
        if swallows and answer is not None and ctx.semantics.truth(ctx, answer) is not False:
            ends.append(store.difference(mark))
        store.undo(mark)
    if not ends:
        return False
    store.merge(ends)
    return True


def _in_stack(ctx: Context, stack: Ref, run: Callable[[Value], bool], node: ast.AST) -> bool:
    """`with ExitStack() as stack`: what was entered by it is left at its end."""

    def left(raised: bool) -> Value:
        held = ctx.store.read(stack.address, CONTENT)
        given = Arguments([TOP if raised else NONE] * 3, {}, True, node)
        for one in reversed(held.items if isinstance(held, Tuple) else ()):
            if isinstance(one, Partial):
                ctx.semantics.call(ctx, one, Arguments([], {}, True, node))
                continue
            leave = ctx.semantics.attribute(ctx, one, "__exit__", node)
            if isinstance(leave, Function):
                ctx.semantics.call(ctx, leave, given)
        return NONE

    return _restoring(ctx, lambda: _leaving(ctx, lambda: run(stack), left, swallows=False))


GENERATOR_CONTEXT = Function("contextlib.contextmanager")
"""Marks the context that calling a generator under `contextlib.contextmanager` makes: a `Partial` of this."""


def _one_of(regions: list[Region]) -> Region:
    devices = {region.device for region in regions}
    dtypes = {region.dtype for region in regions}
    enabled = {region.enabled for region in regions}
    return Region(
        devices.pop() if len(devices) == 1 else None,
        dtypes.pop() if len(dtypes) == 1 else None,
        enabled.pop() if len(enabled) == 1 else None,
    )


_ANY = Region(None, None, None)
"""Some region, or none."""


def _within(around: Value, region: Value) -> Value:
    """A region inside another. Where a caller may have opened one, it stays on for other devices than the inner one's."""
    if around == TOP:
        off = isinstance(region, Region) and region.enabled is False
        return TOP if off else _ANY
    if around == _ANY:
        return _ANY
    others = [
        one
        for one in choices(around)
        if isinstance(one, Region) and isinstance(region, Region) and None not in (one.device, region.device)
        if one.device != region.device and one.enabled is not False
    ]  # each device has a region of its own
    return Union((*others, region)) if others else region


def in_region(ctx: Context, region: Value, run: Callable[[], bool]) -> bool:
    """Run a block in an autocast region, and put the one around it back on every way out."""

    def inside() -> bool:
        ctx.set_ambient("region", _within(ctx.ambient("region"), region))
        ctx.set_ambient("opened", region)
        return run()

    return _restoring_region(ctx, inside)


def _restoring_region(ctx: Context, run: Callable[[], bool]) -> bool:
    """Run a block, and put the region that is in force back on every way out."""
    store, frame = ctx.store, ctx.frame
    around: Difference = {(AMBIENT, name): ctx.ambient(name) for name in ("region", "opened")}
    loops = frame.loops[-1] if frame.loops else None
    before = len(frame.returns), len(loops.breaks) if loops else 0, len(loops.continues) if loops else 0
    noted = {cell: store.watches[-1][0].get(cell) for cell in around} if store.watches else {}
    try:
        reached = run()
    except NeverReturns:
        reached = False
    finally:
        for (address, name), value in around.items():
            store.overwrite(address, name, value)
    for cell, known in noted.items():  # an exception puts it back, too
        if known is None:
            store.watches[-1][0].pop(cell, None)
        else:
            store.watches[-1][0][cell] = known
    for changed, _ in frame.returns[before[0] :]:
        changed.update(around)
    if loops is not None:
        for changed in (*loops.breaks[before[1] :], *loops.continues[before[2] :]):
            changed.update(around)
    return reached


def _in_generator(ctx: Context, manager: Partial, run: Callable[[Value], bool]) -> bool:
    """Run the block where the generator yields. A way out of the block runs the rest of the generator, too."""
    store, caller = ctx.store, ctx.frame
    around = ctx.ambient("region"), ctx.ambient("opened")
    since, mark = ways_out(ctx), store.mark()
    yielded = False

    def from_yield(block: Callable[[Value], bool]) -> bool:
        """Run the generator, with a block where it yields: is its end reached?"""

        def on_yield(given: Value) -> Value:
            nonlocal yielded
            yielded = True
            inner, ctx.frame = ctx.frame, caller
            try:
                reached = block(given)
            finally:
                ctx.frame = inner
            if not reached:
                raise NeverReturns
            return NONE

        try:
            ctx.modules.run_generator(ctx, manager, on_yield)
        except NeverReturns:
            return False
        return True

    reached = from_yield(run)
    if not yielded:
        return reached or run(TOP)
    if ways_out(ctx) == since:
        return reached
    behind = store.take(mark)

    def leave(changed: Difference, of: int) -> Difference:
        changed = {**changed, (AMBIENT, "region"): around[0], (AMBIENT, "opened"): around[1]}

        def there(given: Value) -> bool:
            store.apply(changed)
            return True

        left = store.difference(of) if from_yield(there) else changed
        store.undo(mark)
        return left

    on_each_way_out(ctx, since, leave)
    store.apply(behind)
    return reached
