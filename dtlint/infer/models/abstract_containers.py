"""What collections.abc gives classes that say only how single items are read and written: `get`, `items`, `in`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import NO_TENSOR, NONE, TOP, Const, Many, Number, Tuple, Value
from dtlint.infer.models.mappings import of_mapping_or_pairs
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_MAPPING = "collections.abc.Mapping"
_MUTABLE = "collections.abc.MutableMapping"


@model(f"{_MAPPING}.get", f"{_MUTABLE}.pop")
def _get(ctx: Context, arguments: Arguments) -> Value:
    """The item, or the default: whether the class's `__getitem__` raises is not known."""
    owner, key = arguments.args[0], arguments.get(1, "key")
    default = arguments.get(2, "default") or NONE
    if key is None:
        return TOP
    try:
        found = ctx.semantics.subscript(ctx, owner, key, arguments.node)
    except NeverReturns:
        return default
    return join(found, default)


@model(f"{_MUTABLE}.setdefault")
def _setdefault(ctx: Context, arguments: Arguments) -> Value:
    value = _get(ctx, arguments)
    if len(arguments.args) > 1:
        ctx.semantics.assign_item(ctx, arguments.args[0], arguments.args[1], value, arguments.node)
    return value


@model(f"{_MAPPING}.__contains__")
def _contains(ctx: Context, arguments: Arguments) -> Value:
    try:
        ctx.semantics.subscript(ctx, arguments.args[0], arguments.get(1, "key") or TOP, arguments.node)
    except NeverReturns:
        return Const(False)
    return Number(Category.BOOL)


@model(f"{_MAPPING}.keys")
def _keys(ctx: Context, arguments: Arguments) -> Value:
    return ctx.semantics.items(ctx, arguments.args[0], arguments.node)


@model(f"{_MAPPING}.items")
def _items(ctx: Context, arguments: Arguments) -> Value:
    keys = _keys(ctx, arguments)
    if isinstance(keys, Tuple):
        return Tuple(tuple(Tuple((key, _item(ctx, arguments, key))) for key in keys.items))
    return Many(Tuple((keys.item if isinstance(keys, Many) else TOP, _item(ctx, arguments, NO_TENSOR))))


@model(f"{_MAPPING}.values")
def _values(ctx: Context, arguments: Arguments) -> Value:
    keys = _keys(ctx, arguments)
    if isinstance(keys, Tuple):
        return Tuple(tuple(_item(ctx, arguments, key) for key in keys.items))
    return Many(_item(ctx, arguments, NO_TENSOR))


def _item(ctx: Context, arguments: Arguments, key: Value) -> Value:
    try:
        return ctx.semantics.subscript(ctx, arguments.args[0], key, arguments.node)
    except NeverReturns:
        return TOP


@model(f"{_MUTABLE}.update")
def _update(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    added: list[tuple[Value, Value]] = [(Const(name), value) for name, value in arguments.keywords.items()]
    if len(arguments.args) > 1:
        content = of_mapping_or_pairs(ctx, arguments.args[1], arguments.node)
        added += content.items
        if content.rest is not None:
            added.append((NO_TENSOR, content.rest))
    for key, value in added:
        ctx.semantics.assign_item(ctx, owner, key, value, arguments.node)
    return NONE


@model(f"{_MUTABLE}.popitem")
def _popitem(ctx: Context, arguments: Arguments) -> Value:
    items = _items(ctx, arguments)
    found = items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ()
    return join_all(found) or TOP
