"""The order in which a container of modules was filled: known where it is filled where it is made, in one straight line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dtlint.infer.values import Key, Value

__all__ = ["Order"]


@dataclass(slots=True)
class _Line:
    """One container.

    Attributes:
        place: the reading of a function, and the undecided branches and loops around, in which it was made.
    """

    place: Hashable
    items: list[Value]


class Order:
    """The items of containers by their places, for one round of reading.

    A key may stand for several containers, which a loop makes one after the other: each has a line of its own.
    """

    def __init__(self) -> None:
        self._lines: dict[Key, list[_Line]] = {}
        self._disturbed: set[Key] = set()

    def clear(self) -> None:
        """Begin a round."""
        self._lines.clear()
        self._disturbed.clear()

    def begin(self, key: Key, place: Hashable, items: list[Value]) -> None:
        """A container is made of these."""
        self._lines.setdefault(key, []).append(_Line(place, items))

    def add(self, key: Key, place: Hashable, item: Value) -> None:
        """An item is appended. Elsewhere than where the container was made, it may be so never, or more than once."""
        lines = self._lines.get(key)
        if lines is None or lines[-1].place != place:
            self.disturb(key)
        else:
            lines[-1].items.append(item)

    def disturb(self, key: Key) -> None:
        """The container is changed in another way."""
        self._disturbed.add(key)

    def at(self, key: Key, index: int) -> list[Value]:
        """What may be at a place; empty where that is not known."""
        lines = self._lines.get(key, [])
        if key in self._disturbed or not all(-len(line.items) <= index < len(line.items) for line in lines):
            return []
        return [line.items[index] for line in lines]
