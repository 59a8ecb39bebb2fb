"""Objects of a program: what their attributes hold, and which module owns which.

Both hold for the whole run, whatever the order: an attribute is all that is ever assigned to it.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.values import (
    UNKNOWN,
    Either,
    Items,
    Iteration,
    Key,
    Module,
    Table,
    Unknown,
    Value,
    forget,
    identities,
    join,
    options,
    same_as,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.scopes import ClassInfo

__all__ = ["EVERY", "Objects", "Store", "at_rest", "class_key", "one_list"]

EVERY = "*"
"""Stands for every object, where something unknown is given attributes; and for every attribute, where the name is unknown."""
Store = tuple[Key, str]
"""An object and the attribute that is assigned to it; either may be any."""


class Objects:
    """Attributes by object, and owners by module. `changed` tells that a round of reading has shown something new."""

    def __init__(self, lost: Callable[[Value], None], fresh: bool = True) -> None:
        self.lost = lost
        """Told of what is put where nobody follows it."""
        self.fresh = Objects(_nobody, fresh=False) if fresh else None
        """What the running round alone has shown."""
        self.attributes: dict[Key, dict[str, Value]] = {}
        self.owners: dict[Key, set[Key]] = {}
        self.wild: set[str] = set()
        """Attributes that were assigned to something unknown: it may have been any of the objects."""
        self._holders: dict[int, set[Store]] = {}
        """The attributes that hold a list or dict, or one that it is in, by its identity."""
        self.open: set[Key] = set()
        """Objects that were given attributes of unknown names."""
        self.scattered: set[Key] = set()
        """Objects that were given another dict of attributes, in any round: others may have that too."""
        self.shared: set[Key] = set()
        """Objects that stand for several, made at one place in a loop: a cast of one is no cast of all."""
        self.grown: set[tuple[Key, str]] = set()
        """Attributes of which the running round has shown more than was known."""
        self.stored: set[Store] = set()
        """The attributes that the function being read has assigned so far, and the functions that it has called."""
        self.detached: set[Key] = set()
        """Modules that were taken out of another, in any round: whether that owns them is not known."""
        self.deleted: set[Store] = set()
        """The attributes that were deleted, in any round: they may be there or not."""
        self.changed = False

    def begin_round(self, narrow: bool) -> None:
        """Start a round of reading with what is known; with `narrow`, with what the last round alone has shown.

        A round that shows nothing beyond what it began with has shown all, whatever it began with.
        """
        fresh = self.fresh
        if narrow and fresh is not None:
            self.attributes, self.owners, self._holders = fresh.attributes, fresh.owners, fresh._holders
            self.wild, self.open, self.shared = fresh.wild, fresh.open, fresh.shared
        self.fresh = Objects(_nobody, fresh=False)
        self.grown.clear()
        self.changed = False

    @property
    def shown_all(self) -> bool:
        """Has the round shown again all that it began with?"""
        return self.fresh is not None and self.fresh.attributes == self.attributes

    def stand_for_several(self, key: Key) -> None:
        """The object is made in a loop."""
        for known in self._both():
            known.shared.add(key)

    def _both(self) -> tuple[Objects, ...]:
        return (self,) if self.fresh is None else (self, self.fresh)

    def get(self, key: Key, name: str) -> Value | None:
        """What is known of an attribute; None when nobody assigns it."""
        if name in self.wild or key in self.scattered:
            return UNKNOWN
        return self.attributes.get(key, {}).get(name)

    def of(self, key: Key) -> dict[str, Value]:
        """The attributes of an object."""
        return self.attributes.get(key, {})

    def put(self, key: Key, name: str, value: Value, owned: bool = True) -> None:
        """Something is assigned to an attribute; a module that is, is a part of the other, unless that goes past it."""
        if self.fresh is not None:
            for module in _modules(self.fresh.of(key).get(name)) - _modules(value):
                self.detach(module)  # another is in its place
            self.fresh.put(key, name, value, owned)
        self.stored.add((key, name))
        self.hold(value, key, name)
        known = self.attributes.setdefault(key, {})
        before = known.get(name)
        if isinstance(before, Unknown):  # anything already
            self.lost(value)
            return
        after = value if before is None else at_rest(one_list(join(before, at_rest(value))))
        known[name] = after  # which may be another list that is alike
        if before is None or at_rest(before) != after:
            self.grown.add((key, name))
            self.changed = True
        if owned:
            self.own(key, value)

    def holders(self, who: frozenset[int]) -> set[Store]:
        """The attributes that hold a container of that identity, or something that it is in."""
        return set().union(*(self._holders.get(one, ()) for one in who))

    def hold(self, value: Value, key: Key, name: str) -> None:
        """An attribute holds the containers in a value."""
        for one in identities(value):
            self._holders.setdefault(one, set()).add((key, name))

    def own(self, owner: Key, value: Value) -> None:
        """A module belongs to another, and is cast with it. Those in a list that is an attribute do not."""
        if self.fresh is not None:
            self.fresh.own(owner, value)
        if isinstance(value, Module):
            if value.key != owner and owner not in self.owners.setdefault(value.key, set()):
                self.owners[value.key].add(owner)
                self.changed = True
        elif isinstance(value, Either):
            for item in value.choices:
                self.own(owner, item)

    def forget(self, name: str) -> None:
        """An attribute of nobody knows which object is assigned."""
        if self.fresh is not None:
            self.fresh.forget(name)
        self.stored.add((EVERY, name))
        if name not in self.wild:
            self.wild.add(name)
            self.changed = True

    def detach(self, key: Key) -> None:
        """A module is taken out of one that owns it."""
        if key not in self.detached:
            self.detached.add(key)
            self.changed = True

    def delete(self, key: Key, name: str) -> None:
        """An attribute is deleted."""
        for module in _modules(self.of(key).get(name)):
            self.detach(module)
        self.stored.add((key, name))
        if (key, name) not in self.deleted:
            self.deleted.add((key, name))
            self.changed = True

    def open_up(self, key: Key) -> None:
        """An attribute of an unknown name is assigned: whatever is known of any is no more, and none is surely absent."""
        if self.fresh is not None:
            self.fresh.open_up(key)
        self.stored.add((key, EVERY))
        if key not in self.open:
            self.open.add(key)
            self.changed = True
        for known in list(self.attributes.get(key, ())):
            self.put(key, known, UNKNOWN)

    def scatter(self, key: Key) -> None:
        """An object is given another dict of attributes."""
        self.open_up(key)
        if key not in self.scattered:
            self.scattered.add(key)
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


def _modules(value: Value | None) -> set[Key]:
    """The modules that a value may be."""
    return set() if value is None else {choice.key for choice in options(value) if isinstance(choice, Module)}


def class_key(info: ClassInfo) -> Key:
    """What the attributes of a class are kept under."""
    return f"class {id(info.node)}"


def one_list(value: Value) -> Value:
    """A list of which one path has added to the other's: what it holds, on any path."""
    if not isinstance(value, Either) or not all(isinstance(choice, (Items, Iteration)) for choice in value.choices):
        return value
    held: list[Value] = []
    for choice in value.choices:
        held += choice.items if isinstance(choice, Items) else [choice.item] if isinstance(choice, Iteration) else []
    result = held[0] if held else UNKNOWN
    for item in held[1:]:
        result = join(result, item)
    made = Iteration(result)
    made.who = frozenset().union(*map(identities, value.choices))
    return made


def at_rest(value: Value) -> Value:
    """What is held by a container that may hold anything is no more than that: past a few choices a join is unknown,
    and would else begin to count them again, round after round."""
    if isinstance(value, Items):
        items = tuple(map(_anything, value.items))
        return value if all(map(operator.is_, items, value.items)) else same_as(value.holding(items), value)
    if isinstance(value, Iteration):
        item = _anything(value.item)
        return value if item is value.item else same_as(replace(value, item=item), value)
    if isinstance(value, Table):
        table = {key: _anything(item) for key, item in value.items.items()}
        rest = None if value.rest is None else _anything(value.rest)
        same = rest is value.rest and all(map(operator.is_, table.values(), value.items.values()))
        return value if same else same_as(Table(table, value.perhaps, rest), value)
    return value


def _anything(value: Value) -> Value:
    """Unknown, if one of the choices is; and no more than that, in whatever autocast region it was computed."""
    if type(value) is Unknown and value.under is not None:
        return UNKNOWN if value.dtypes is None else Unknown(dtypes=value.dtypes)
    if not isinstance(value, Either):
        return at_rest(value)
    if not any(isinstance(choice, Unknown) for choice in value.choices):
        return value
    forget(value.choices)
    return UNKNOWN


def _nobody(value: Value) -> None:
    """Whoever keeps a second account need not be told again."""
