"""What containers hold, and which of them two values have in common: a list that is in both is one list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dtlint.infer.values import Either, Items, Iteration, Table, Value, options

__all__ = ["CONTAINERS", "inside", "shares"]

CONTAINERS = (Items, Table, Iteration)
_DEEPEST = 4
"""Containers in one another that are looked into."""


def inside(container: Value) -> list[Value]:
    """What a container holds."""
    if isinstance(container, Items):
        return list(container.items)
    if isinstance(container, Table):
        return [*container.items.values(), *([] if container.rest is None else [container.rest])]
    return list(options(container.item)) if isinstance(container, Iteration) else []


def shares(value: Value, others: Iterable[Value]) -> bool:
    """Is a container among a value and what it holds that is among the others and what they hold?"""
    found = {id(container) for container in _containers(value)}
    return bool(found) and any(id(container) in found for other in others for container in _containers(other))


def _containers(value: Value, depth: int = 0) -> Iterator[Value]:
    if isinstance(value, Either):
        for choice in value.choices:
            yield from _containers(choice, depth)
    elif isinstance(value, CONTAINERS) and depth <= _DEEPEST:
        yield value
        for held in inside(value):
            yield from _containers(held, depth + 1)
