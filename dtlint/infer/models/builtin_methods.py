"""Methods of Python's containers and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, Unfit
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    ABSENT,
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    Many,
    Mapping,
    Number,
    ProjectClass,
    Ref,
    Tuple,
    Union,
    Value,
    may_be_absent,
    present,
)
from dtlint.infer.models import enumerations
from dtlint.infer.models.mappings import (
    content_of_mapping,
    distinct,
    merged,
    of_mapping_or_pairs,
    set_content,
    with_item,
)
from dtlint.infer.models.module_views import is_view
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context


def _content(ctx: Context, arguments: Arguments) -> Tuple | Many | None:
    owner = arguments.args[0]
    content = ctx.store.read(owner.address, CONTENT) if isinstance(owner, Ref) else owner
    return content if isinstance(content, (Tuple, Many)) else None


def _set(ctx: Context, arguments: Arguments, content: Value) -> None:
    owner = arguments.args[0]
    if isinstance(owner, Ref):
        ctx.store.write(owner.address, CONTENT, content)


def _any(content: Tuple | Many | None) -> Value:
    if content is None:
        return TOP
    return (join_all(content.items) or TOP) if isinstance(content, Tuple) else content.item


_MOST_LISTED = 24


@model("builtins.list.append", "collections.deque.append")
def _append(ctx: Context, arguments: Arguments) -> Value:
    content, item = _content(ctx, arguments), arguments.args[1] if len(arguments.args) > 1 else TOP
    if isinstance(content, Tuple) and len(content.items) < _MOST_LISTED:
        _set(ctx, arguments, Tuple((*content.items, item)))
    elif isinstance(content, Tuple):
        _set(ctx, arguments, Many(join_all([*content.items, item]) or TOP))
    elif content is not None:
        _set(ctx, arguments, Many(join(content.item, item)))
    return NONE


@model("builtins.set.add")
def _add(ctx: Context, arguments: Arguments) -> Value:
    _append(ctx, arguments)
    content = _content(ctx, arguments)
    if content is not None:
        _set(ctx, arguments, distinct(content))
    return NONE


@model("collections.deque.appendleft")
def _append_left(ctx: Context, arguments: Arguments) -> Value:
    content, item = _content(ctx, arguments), arguments.args[1] if len(arguments.args) > 1 else TOP
    if content is not None:
        items = (item, *(content.items if isinstance(content, Tuple) else (content.item,)))
        known = isinstance(content, Tuple) and len(items) < _MOST_LISTED
        _set(ctx, arguments, Tuple(items) if known else Many(join_all(items) or TOP))
    return NONE


@model("collections.OrderedDict.move_to_end")
def _move_to_end(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    if isinstance(owner, Ref):
        content = ctx.store.read(owner.address, CONTENT)
        if isinstance(content, Mapping):  # in which order, nobody knows
            every = [item for _, item in content.items] + ([] if content.rest is None else [content.rest])
            ctx.store.write(owner.address, CONTENT, Mapping((), join_all(every) or TOP))
    return NONE


@model("builtins.list.extend", "collections.deque.extend")
def _extend(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    more = ctx.semantics.items(ctx, arguments.args[1], arguments.node) if len(arguments.args) > 1 else Many(TOP)
    if isinstance(content, Tuple) and isinstance(more, Tuple) and len(content.items) + len(more.items) < _MOST_LISTED:
        _set(ctx, arguments, Tuple((*content.items, *more.items)))
    elif content is not None:
        held = [*(content.items if isinstance(content, Tuple) else (content.item,))]
        held += more.items if isinstance(more, Tuple) else (more.item,) if isinstance(more, Many) else (TOP,)
        _set(ctx, arguments, Many(join_all(held) or TOP) if held else Tuple(()))
    return NONE


@model("builtins.set.update")
def _update_set(ctx: Context, arguments: Arguments) -> Value:
    _extend(ctx, arguments)
    content = _content(ctx, arguments)
    if content is not None:
        _set(ctx, arguments, distinct(content))
    return NONE


@model("builtins.list.insert")
def _insert(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    item = arguments.args[2] if len(arguments.args) > 2 else TOP
    place = arguments.args[1] if len(arguments.args) > 1 else TOP
    if isinstance(content, Tuple) and place == Const(0):
        _set(ctx, arguments, Tuple((item, *content.items)))
    elif content is not None:
        _set(ctx, arguments, Many(join(_any(content), item) if content != Tuple(()) else item))
    return NONE


@model("collections.deque.popleft")
def _pop_left(ctx: Context, arguments: Arguments) -> Value:
    return _pop(ctx, Arguments([arguments.args[0], Const(0)], {}, True, arguments.node))


@model("builtins.list.pop", "collections.deque.pop", "builtins.set.pop")
def _pop(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    if isinstance(content, Tuple):
        if not content.items:
            raise Unfit
        if len(arguments.args) == 1:
            _set(ctx, arguments, Tuple(content.items[:-1]))
            return content.items[-1]
        if arguments.args[1] == Const(0):
            _set(ctx, arguments, Tuple(content.items[1:]))
            return content.items[0]
        _set(ctx, arguments, Many(_any(content)))
    return _any(content)


@model("builtins.list.clear", "builtins.set.clear", "collections.deque.clear")
def _clear(ctx: Context, arguments: Arguments) -> Value:
    _set(ctx, arguments, Tuple(()))
    return NONE


@model("builtins.list.copy", "builtins.set.copy")
def _copy(ctx: Context, arguments: Arguments) -> Value:
    return ctx.allocate(arguments.node, "builtins.list", _content(ctx, arguments) or Many(TOP))


@model(
    "builtins.list.reverse", "builtins.list.sort", "builtins.list.remove", "builtins.set.discard", "builtins.set.remove"
)
def _reorder(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    if isinstance(content, Tuple) and content.items:
        _set(ctx, arguments, Many(_any(content)))
    return NONE


@model("builtins.list.index", "builtins.list.count", "builtins.tuple.index", "builtins.tuple.count")
def _count(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("builtins.set.union", "builtins.set.intersection", "builtins.set.difference")
def _union(ctx: Context, arguments: Arguments) -> Value:
    found = [_any(_content(ctx, arguments))]
    for value in arguments.args[1:]:
        items = ctx.semantics.items(ctx, value, arguments.node)
        found += items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ()
    return ctx.allocate(arguments.node, "builtins.set", Many(join_all(found) or TOP))


# -- dicts ---------------------------------------------------------------------------------------------------------------


def _mapping(ctx: Context, arguments: Arguments) -> Mapping | None:
    return content_of_mapping(ctx, arguments.args[0])


def _any_value(content: Mapping | None) -> Value:
    if content is None:
        return TOP
    held = [found for _, value in content.items if (found := present(value)) is not None]
    if content.rest is not None:
        held.append(content.rest)
    return join_all(held) or TOP


@model("builtins.dict.get")
def _get(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    default = arguments.args[2] if len(arguments.args) > 2 else arguments.keywords.get("default", NONE)
    key = enumerations.plain(ctx, arguments.args[1]) if len(arguments.args) > 1 else TOP
    if content is None:
        return TOP
    if isinstance(key, Union) and all(isinstance(one, Const) for one in key.choices):
        owner = arguments.args[0]
        each = (_get(ctx, Arguments([owner, one, default], {}, True, arguments.node)) for one in key.choices)
        return join_all(each) or TOP
    known = content.get(key)
    if known is not None:
        found = present(known)
        return default if found is None else join(found, default) if may_be_absent(known) else found
    if isinstance(key, Const):
        return default if content.rest is None else join(content.rest, default)
    return join(_any_value(content), default) if content.items or content.rest is not None else default


@model("builtins.dict.pop")
def _pop_key(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    key = enumerations.plain(ctx, arguments.args[1]) if len(arguments.args) > 1 else TOP
    result = _get(ctx, arguments)
    if content is not None:
        if content.get(key) is not None:
            left = Mapping(tuple((name, value) for name, value in content.items if name != key), content.rest)
        elif isinstance(key, Const):
            left = content
        else:
            left = Mapping(tuple((name, join(value, ABSENT)) for name, value in content.items), content.rest)
        set_content(ctx, arguments.args[0], left)
    return result


@model("builtins.dict.setdefault")
def _setdefault(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    key = enumerations.plain(ctx, arguments.args[1]) if len(arguments.args) > 1 else TOP
    default = arguments.args[2] if len(arguments.args) > 2 else NONE
    result = _get(ctx, Arguments([arguments.args[0], key, default], {}, True, arguments.node))
    if content is not None:
        set_content(ctx, arguments.args[0], with_item(content, key, result))
    return result


@model("builtins.dict.update")
def _update(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    if content is None:
        return NONE
    if len(arguments.args) > 1:
        content = merged(content, of_mapping_or_pairs(ctx, arguments.args[1], arguments.node))
    named = Mapping(tuple((Const(name), value) for name, value in arguments.keywords.items()))
    content = merged(content, named if arguments.complete else Mapping(named.items, TOP))
    set_content(ctx, arguments.args[0], content)
    return NONE


@model("builtins.dict.items")
def _items(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    if content is None:
        return Many(Tuple((TOP, TOP)))
    if content.rest is None and not any(may_be_absent(value) for _, value in content.items):
        return Tuple(tuple(Tuple(pair) for pair in content.items))
    keys = NO_TENSOR if all(isinstance(key, Const) for key, _ in content.items) else TOP
    return Many(Tuple((keys, _any_value(content))))


@model("builtins.dict.values")
def _values(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    if content is not None and content.rest is None and not any(may_be_absent(value) for _, value in content.items):
        return Tuple(tuple(value for _, value in content.items))
    return Many(_any_value(content))


@model("builtins.dict.keys")
def _keys(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    if content is not None and content.rest is None and not any(may_be_absent(value) for _, value in content.items):
        return Tuple(tuple(key for key, _ in content.items))
    return Many(NO_TENSOR)


@model("builtins.dict.copy", "copy.copy")
def _copy_dict(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else TOP
    if is_view(value):
        return ctx.allocate(arguments.node, "builtins.dict", _mapping(ctx, arguments))
    content = ctx.store.read(value.address, CONTENT) if isinstance(value, Ref) else None
    if isinstance(value, Ref) and value.address.kind in ("builtins.dict", "builtins.list") and content is not None:
        return ctx.allocate(arguments.node, value.address.kind, content)
    if isinstance(value, Ref) and isinstance(value.address.kind, ProjectClass):
        return _another(ctx, value, arguments)
    return value


def _another(ctx: Context, value: Ref, arguments: Arguments) -> Value:
    """What `copy.copy` makes of an object: another of its class, that holds the same."""
    fields = [(field, ctx.store.read(value.address, field)) for field in ctx.store.fields(value.address)]
    made = ctx.allocate((arguments.node, value.address), value.address.kind)
    for field, held in fields:
        if held is not None:
            ctx.store.write(made.address, field, held)
    return made


@model("builtins.dict.clear")
def _clear_dict(ctx: Context, arguments: Arguments) -> Value:
    set_content(ctx, arguments.args[0], Mapping())
    return NONE


@model("builtins.dict.__getitem__")
def _item_of_dict(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    key = arguments.get(1, "key") or TOP
    if content is None:
        return TOP
    known = content.get(key)
    found = None if known is None else present(known)
    if found is not None:
        return found
    if isinstance(key, Const) and content.rest is None:
        raise Unfit
    return _any_value(content) if not isinstance(key, Const) or content.rest is None else content.rest


@model("builtins.dict.__setitem__")
def _set_item_of_dict(ctx: Context, arguments: Arguments) -> Value:
    content = _mapping(ctx, arguments)
    if content is not None and len(arguments.args) == 3 and isinstance(arguments.args[0], Ref):
        ctx.store.write(arguments.args[0].address, CONTENT, with_item(content, *arguments.args[1:]))
    return NONE


@model("builtins.dict.__delitem__")
def _delete_item_of_dict(ctx: Context, arguments: Arguments) -> Value:
    _pop_key(ctx, arguments)
    return NONE


@model("builtins.dict.__init__")
def _initialise_dict(ctx: Context, arguments: Arguments) -> Value:
    if isinstance(arguments.args[0], Ref):
        ctx.store.write(arguments.args[0].address, CONTENT, Mapping())
        _update(ctx, arguments)
    return NONE


# -- lists, past what a subclass defines -----------------------------------------------------------------------------


@model("builtins.list.__init__", "builtins.set.__init__")
def _initialise_list(ctx: Context, arguments: Arguments) -> Value:
    return _extend(ctx, arguments) if len(arguments.args) > 1 else NONE


@model("builtins.list.__getitem__", "builtins.tuple.__getitem__")
def _get_place(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    place = arguments.args[1] if len(arguments.args) > 1 else TOP
    if isinstance(content, Tuple) and isinstance(place, Const) and type(place.value) is int:
        if -len(content.items) <= place.value < len(content.items):
            return content.items[place.value]
        raise Unfit
    return TOP if isinstance(place, Const) and isinstance(place.value, tuple) else _any(content)


@model("builtins.list.__setitem__")
def _set_place(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    if content is not None:
        given = arguments.args[2] if len(arguments.args) > 2 else TOP
        _set(ctx, arguments, Many(join(_any(content), given)))
    return NONE


@model("builtins.list.__iter__")
def _iterate(ctx: Context, arguments: Arguments) -> Value:
    return _content(ctx, arguments) or Many(TOP)


@model("builtins.list.__len__")
def _length(ctx: Context, arguments: Arguments) -> Value:
    content = _content(ctx, arguments)
    return Const(len(content.items)) if isinstance(content, Tuple) else Number(Category.INTEGER)


# -- texts ---------------------------------------------------------------------------------------------------------------


def _joined(ctx: Context, between: str, arguments: Arguments) -> Value:
    """`between.join(texts)`."""
    items = ctx.semantics.items(ctx, arguments.args[1], arguments.node)
    texts = [one.value for one in items.items if isinstance(one, Const)] if isinstance(items, Tuple) else [None]
    known = isinstance(items, Tuple) and len(texts) == len(items.items) and all(isinstance(one, str) for one in texts)
    return Const(between.join(map(str, texts))) if known else NO_TENSOR


def _of_text(name: str) -> None:
    @model(f"builtins.str.{name}")
    def call(ctx: Context, arguments: Arguments) -> Value:
        known = [value.value for value in arguments.args if isinstance(value, Const)]
        if name == "join" and len(known) == 1 and len(arguments.args) == 2:
            return _joined(ctx, str(known[0]), arguments)
        if (
            len(known) == len(arguments.args)
            and not arguments.keywords
            and all(isinstance(one, (str, int)) for one in known)
        ):
            try:
                result = getattr(known[0], name)(*known[1:])
            except (TypeError, ValueError, IndexError, KeyError, AttributeError):
                return NO_TENSOR
            if isinstance(result, (str, bool, int)):
                return Const(result)
            if isinstance(result, list):
                return ctx.allocate(arguments.node, "builtins.list", Tuple(tuple(map(Const, result))))
            if isinstance(result, tuple):
                return Tuple(tuple(map(Const, result)))
        if name in ("split", "rsplit", "splitlines"):
            return ctx.allocate(arguments.node, "builtins.list", Many(NO_TENSOR))
        return Many(NO_TENSOR) if name in ("partition", "rpartition") else NO_TENSOR


for _name in (
    *("startswith", "endswith", "lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "replace", "join"),
    *("format", "partition", "rpartition", "removeprefix", "removesuffix", "title", "capitalize", "find", "isdigit"),
    *("splitlines", "encode", "count", "index", "zfill", "ljust", "rjust", "center"),
):
    _of_text(_name)
