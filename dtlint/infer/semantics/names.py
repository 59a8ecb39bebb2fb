"""Variables: looking names up, and binding them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.infer.context import Unfit
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import (
    TOP,
    Function,
    Imported,
    Many,
    ProjectClass,
    Ref,
    SuperOf,
    Tensor,
    Tuple,
    Value,
    present,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.departures import marked, tell_written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address

__all__ = ["OUTER", "assign", "bind", "function_of", "look_up", "super_of", "unbind"]

OUTER = "*outer"
"""The field of a frame that refers to the variables around it."""


def look_up(ctx: Context, name: str) -> Value:
    """The value of a name where it is read.

    Raises:
        NeverReturns: it is certainly unbound.
    """
    frame, store = ctx.frame, ctx.store
    address: Address | None = frame.address
    if name in frame.global_names:
        address = None
    while address is not None:
        value = store.read(address, name)
        if value is not None:
            found = present(value)
            if found is not None:
                return _resolved(ctx, address, name, found)
        outer = store.read(address, OUTER)
        address = outer.address if isinstance(outer, Ref) else None
    found = ctx.modules.global_of(ctx, frame.module, name)
    return TOP if found is None else found


def _resolved(ctx: Context, address: Address, name: str, value: Value) -> Value:
    if isinstance(value, Imported):
        value = ctx.modules.imported(ctx, value)
        ctx.modules.settle(ctx, address, name, value)
    return value


def bind(ctx: Context, name: str, value: Value) -> None:
    """`name = value`."""
    frame = ctx.frame
    if name in frame.global_names:
        ctx.modules.set_global(ctx, frame.module, name, value)
        return
    address: Address | None = frame.address
    if name in frame.nonlocal_names:
        while address is not None:
            outer = ctx.store.read(address, OUTER)
            address = outer.address if isinstance(outer, Ref) else None
            if address is not None and ctx.store.read(address, name) is not None:
                ctx.store.overwrite(address, name, value)
                return
        return
    ctx.store.overwrite(frame.address, name, value)


def bind_around(ctx: Context, name: str, value: Value) -> None:
    """`(name := value)` in a generator: it binds a name around it. How far the generator is run, nobody knows."""
    outer = ctx.store.read(ctx.frame.address, OUTER)
    if not isinstance(outer, Ref):
        known = ctx.modules.global_of(ctx, ctx.frame.module, name)
        ctx.modules.set_global(ctx, ctx.frame.module, name, value if known is None else join(known, value))
        return
    known = ctx.store.read(outer.address, name)
    ctx.store.overwrite(outer.address, name, value if known is None else join(known, value))


def unbind(ctx: Context, name: str) -> None:
    """`del name`."""
    ctx.store.delete(ctx.frame.address, name)


def assign(ctx: Context, target: ast.expr, value: Value) -> None:
    """Bind a target: a name, an attribute, an item, or several."""
    if isinstance(target, ast.Name):
        if ctx.recorder is not None:
            ctx.recorder.evaluated(target, (), value, ctx)
        bind(ctx, target.id, value)
    elif isinstance(target, ast.Attribute):
        owner = ctx.semantics.evaluate(ctx, target.value)
        if ctx.recorder is not None:
            ctx.recorder.evaluated(target, (owner,), value, ctx)
        ctx.semantics.assign_attribute(ctx, owner, target.attr, value, target)
    elif isinstance(target, ast.Subscript):
        owner = ctx.semantics.evaluate(ctx, target.value)
        index = ctx.semantics.evaluate(ctx, target.slice)
        if ctx.recorder is not None:
            ctx.recorder.evaluated(target, (owner, index), value, ctx)
        ctx.semantics.assign_item(ctx, owner, index, value, target)
        if isinstance(owner, Tensor):
            ctx.site = target
            made = marked(ctx, "torch.Tensor.__setitem__", [owner, plain_tensors.plain(ctx, value)], owner)
            tell_written(ctx, target.value, made)
    elif isinstance(target, ast.Starred):
        assign(ctx, target.value, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(ctx, target, value)


def _unpack_unknown(ctx: Context, targets: Sequence[ast.expr]) -> None:
    """Unpack what has another number of items, as far as is seen.

    Raises:
        Unfit: a `try` around it is for that.
    """
    if ctx.frame.trying:
        raise Unfit
    for one in targets:
        assign(ctx, one.value if isinstance(one, ast.Starred) else one, TOP)


def _unpack(ctx: Context, target: ast.Tuple | ast.List, value: Value) -> None:
    items = ctx.semantics.items(ctx, value, target)
    targets = target.elts
    starred = next((place for place, one in enumerate(targets) if isinstance(one, ast.Starred)), None)
    if isinstance(items, Tuple):
        given = items.items
        if starred is None:
            if len(given) != len(targets):
                _unpack_unknown(ctx, targets)
                return
            for one, item in zip(targets, given, strict=True):
                assign(ctx, one, item)
            return
        behind = len(targets) - starred - 1
        if len(given) < starred + behind:
            _unpack_unknown(ctx, targets)
            return
        middle = given[starred : len(given) - behind]
        for one, item in zip(targets[:starred], given, strict=False):
            assign(ctx, one, item)
        assign(ctx, targets[starred], ctx.allocate(target, "builtins.list", Tuple(middle)))
        for one, item in zip(targets[starred + 1 :], given[len(given) - behind :], strict=True):
            assign(ctx, one, item)
        return
    item = items.item if isinstance(items, Many) else TOP
    for one in targets:
        if isinstance(one, ast.Starred):
            assign(ctx, one, ctx.allocate(one, "builtins.list", Many(item)))
        else:
            assign(ctx, one, item)


def function_of(ctx: Context, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, owner: Any = None) -> Function:
    """The function that a definition makes, with its defaults evaluated and the variables around it."""
    definition = ctx.modules.function(ctx.frame.module, node, owner)
    if definition.defaults is None or ctx.frame.function is not None:
        definition.set_defaults(
            {name: ctx.semantics.evaluate(ctx, default) for name, default in definition.default_nodes}
        )
    closure = ctx.frame.address if ctx.frame.address.kind == "frame" else ctx.frame.outer
    return Function(definition, closure)


def super_of(ctx: Context) -> Value:
    """`super()`: the running method's receiver, seen from behind the class that defines the method."""
    frame = ctx.frame
    address: Address | None = frame.address
    while address is not None:
        owner, receiver = ctx.store.read(address, "__class__"), ctx.store.read(address, "*receiver")
        if isinstance(owner, ProjectClass) and receiver is not None:
            return SuperOf(owner, receiver)
        outer = ctx.store.read(address, OUTER)
        address = outer.address if isinstance(outer, Ref) else None
    return TOP
