"""Lists and dicts that more than one name or attribute holds: what changes one, changes it for all of them."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, TypeGuard

from dtlint.infer.program.objects import at_rest
from dtlint.infer.values import (
    UNKNOWN,
    Either,
    Items,
    Iteration,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    identities,
    identity,
    join,
    options,
    same_as,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CONTAINERS", "identities_of", "is_container", "shares", "tensors_in", "with_change"]

CONTAINERS = (Items, Table, Iteration)
_DEEPEST = 4
"""Containers in one another that tensors are looked for in."""


def is_container(value: Value) -> TypeGuard[Items | Table | Iteration]:
    """Is it a list, a tuple, a set, a dict, or what gives items one after the other?"""
    return isinstance(value, CONTAINERS)


def identities_of(value: Value) -> frozenset[int]:
    """The identity of a container, or of each that a value may be."""
    return frozenset().union(*(identity(choice) for choice in options(value) if is_container(choice)))


def shares(value: Value, others: Iterable[Value]) -> bool:
    """Is a container among a value and what it holds that is among the others and what they hold?"""
    found = identities(value)
    return bool(found) and not all(found.isdisjoint(identities(other)) for other in others)


def with_change(held: Value, who: frozenset[int], value: Value, beside: frozenset[int] = frozenset()) -> Value:
    """What a name holds once the containers of an identity may be `value`: the very same object where it holds none of them.

    Args:
        beside: the identity of a container which is known to hold the one that has changed, and is changed for itself.
    """
    if not isinstance(held, (Either, Partial, *CONTAINERS)) or identities(held).isdisjoint(who):
        return held
    if isinstance(held, Partial):
        args = tuple(with_change(item, who, value, beside) for item in held.args)
        keywords = {name: with_change(item, who, value, beside) for name, item in held.keywords.items()}
        return Partial(held.callee, args, keywords)
    if isinstance(held, Either):
        return reduce(join, (with_change(choice, who, value, beside) for choice in held.choices))
    mine = identity(held)
    if not mine.isdisjoint(beside):
        return held
    if not mine.isdisjoint(who):
        if type(value) is Unknown:
            return value
        return at_rest(join(held, value))
    if not held.taken.isdisjoint(who):
        return UNKNOWN
    before = _inside(held)
    after = [with_change(item, who, value, beside) for item in before]
    return held if all(map(operator.is_, before, after)) else same_as(_holding(held, after), held)


def tensors_in(value: Value, depth: int = 0) -> list[Tensor]:
    """The tensors in a list, or in dicts in a list, as optimizers are given them."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, CONTAINERS) and depth < _DEEPEST:
        return [tensor for held in _inside(value) for tensor in tensors_in(held, depth + 1)]
    return []


def _inside(container: Items | Table | Iteration) -> list[Value]:
    """What a container holds."""
    if isinstance(container, Items):
        return list(container.items)
    if isinstance(container, Iteration):
        return [container.item]
    return [*container.items.values(), *([] if container.rest is None else [container.rest])]


def _holding(container: Items | Table | Iteration, held: list[Value]) -> Items | Table | Iteration:
    """Another container that holds these in the same places."""
    if isinstance(container, Items):
        return container.holding(held)
    if isinstance(container, Iteration):
        return replace(container, item=held[0])
    items = dict(zip(container.items, held, strict=False))
    return Table(items, container.perhaps, None if container.rest is None else held[-1])
