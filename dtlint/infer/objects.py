"""Objects of a program: what their attributes hold, and which module owns which.

Both hold for the whole run, whatever the order: an attribute is all that is ever assigned to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.values import UNKNOWN, Either, Items, Key, Module, Unknown, Value, join

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Objects"]


class Objects:
    """Attributes by object, and owners by module. `changed` tells that a round of reading has shown something new."""

    def __init__(self, lost: Callable[[Value], None]) -> None:
        self.lost = lost
        """Told of what is put where nobody follows it."""
        self.attributes: dict[Key, dict[str, Value]] = {}
        self.owners: dict[Key, set[Key]] = {}
        self.wild: set[str] = set()
        """Attributes that were assigned to something unknown: it may have been any of the objects."""
        self.shared: set[Key] = set()
        """Objects that stand for several, made at one place in a loop: a cast of one is no cast of all."""
        self.changed = False

    def get(self, key: Key, name: str) -> Value | None:
        """What is known of an attribute; None when nobody assigns it."""
        if name in self.wild:
            return UNKNOWN
        return self.attributes.get(key, {}).get(name)

    def put(self, key: Key, name: str, value: Value) -> None:
        """Something is assigned to an attribute."""
        known = self.attributes.setdefault(key, {})
        before = known.get(name)
        if isinstance(before, Unknown):  # anything already
            self.lost(value)
            return
        after = value if before is None else join(before, value)
        if before is None or before != after:
            known[name] = after
            self.changed = True
        self.own(key, value)

    def own(self, owner: Key, value: Value) -> None:
        """A module, or each of a list of them, belongs to another, and is cast with it."""
        if isinstance(value, Module):
            if value.key != owner and owner not in self.owners.setdefault(value.key, set()):
                self.owners[value.key].add(owner)
                self.changed = True
        elif isinstance(value, (Items, Either)):
            for item in value.items if isinstance(value, Items) else value.choices:
                self.own(owner, item)

    def forget(self, name: str) -> None:
        """An attribute of nobody knows which object is assigned."""
        if name not in self.wild:
            self.wild.add(name)
            self.changed = True

    def above(self, key: Key) -> set[Key]:
        """A module and all that own it, directly or not."""
        found, queue = {key}, [key]
        while queue:
            for owner in self.owners.get(queue.pop(), ()):
                if owner not in found:
                    found.add(owner)
                    queue.append(owner)
        return found
