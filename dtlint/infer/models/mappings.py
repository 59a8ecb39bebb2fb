"""What dicts hold, after an item is set or another dict is merged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    TOP,
    Bound,
    Const,
    Dtype,
    External,
    Function,
    Many,
    Mapping,
    ProjectClass,
    Ref,
    Tuple,
    Value,
    present,
)
from dtlint.infer.models import enumerations
from dtlint.infer.models.module_views import content_of_view, is_view, set_content_of_view
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from dtlint.infer.context import Context

__all__ = [
    "content_of_mapping",
    "distinct",
    "is_key",
    "merged",
    "of_items",
    "of_mapping_or_pairs",
    "set_content",
    "with_item",
]

_MOST_KEYS = 1000


def is_key(value: Value) -> bool:
    """Can a value be told apart from others as a key?"""
    if isinstance(value, Tuple):
        return all(map(is_key, value.items))
    return isinstance(value, (Const, Dtype, ProjectClass, External, Function)) or enumerations.is_member(value)


def distinct(content: Tuple | Many) -> Tuple | Many:
    """What a set holds of some items: each once, where they can be told apart."""
    if isinstance(content, Many) or len(content.items) < 2:
        return content
    if all(map(is_key, content.items)):
        return Tuple(tuple(dict.fromkeys(content.items)))
    return Many(join_all(content.items) or TOP)


def with_item(content: Mapping, key: Value, value: Value) -> Mapping:
    """A dict after `d[key] = value`."""
    if not is_key(key):
        return _with_any_item(content, value)
    return _with_items(content, ((key, value),))


def _with_any_item(content: Mapping, value: Value) -> Mapping:
    """A dict after `d[key] = value` for a key that is not known."""
    items = tuple((name, join(known, value)) for name, known in content.items)
    return Mapping(items, value if content.rest is None else join(content.rest, value))


def _with_items(content: Mapping, added: Iterable[tuple[Value, Value]]) -> Mapping:
    """A dict after an item is set under each of some keys that can be told apart."""
    items = dict(content.items)
    rest = content.rest
    for key, value in added:
        if key in items or len(items) < _MOST_KEYS:
            items[key] = value
        else:
            rest = value if rest is None else join(rest, value)
    return Mapping(tuple(items.items()), rest)


def of_items(listed: Iterable[tuple[Value, Value]]) -> Mapping:
    """A dict of keys and values, given one after the other."""
    pairs = list(listed)
    if all(is_key(key) for key, _ in pairs):
        return _with_items(Mapping(), pairs)
    made = Mapping()
    for key, value in pairs:
        made = with_item(made, key, value)
    return made


def merged(content: Mapping, other: Mapping | None) -> Mapping:
    """A dict after `d.update(other)`; None: after one of which nothing is known."""
    if other is None:
        return Mapping(tuple((name, join(known, TOP)) for name, known in content.items), TOP)
    held = dict(content.items)
    added = []
    for key, value in other.items:
        found = present(value)
        if found is not None:
            sure = found is value or key not in held
            added.append((key, found if sure else join(found, held[key])))
    content = _with_items(content, added)
    if other.rest is not None:
        items = tuple((name, join(known, other.rest)) for name, known in content.items)
        content = Mapping(items, other.rest if content.rest is None else join(content.rest, other.rest))
    return content


def content_of_mapping(ctx: Context, value: Value) -> Mapping | None:
    """What a dict holds; None where it is not known to be one."""
    if isinstance(value, Bound) and is_view(value):
        return content_of_view(ctx, value)
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        return content if isinstance(content, Mapping) else None
    return value if isinstance(value, Mapping) else None


def set_content(ctx: Context, owner: Value, content: Mapping) -> None:
    """A dict holds this from now on."""
    if isinstance(owner, Ref):
        ctx.store.write(owner.address, CONTENT, content)
    elif isinstance(owner, Bound) and is_view(owner):
        set_content_of_view(ctx, owner, content)


def of_mapping_or_pairs(ctx: Context, value: Value, node: ast.AST) -> Mapping:
    """What `dict(value)` holds."""
    content = content_of_mapping(ctx, value)
    if content is not None:
        return content
    pairs = ctx.semantics.items(ctx, value, node)
    if isinstance(pairs, Tuple):
        listed = []
        for pair in pairs.items:
            if not isinstance(pair, Tuple) or len(pair.items) != 2:
                return Mapping((), TOP)
            listed.append((pair.items[0], pair.items[1]))
        return of_items(listed)
    if isinstance(pairs, Many) and isinstance(pairs.item, Tuple) and len(pairs.item.items) == 2:
        return Mapping((), pairs.item.items[1])
    return Mapping((), TOP)
