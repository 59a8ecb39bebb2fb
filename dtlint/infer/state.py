"""One program point: the contents of every heap object, as one value that can be saved, undone and joined.

There is one mutable table of objects and a *trail* of what was overwritten since. To try a branch is to mark the trail,
run, and take the difference; undoing it costs what was written, and nothing is copied. A variable, an attribute, the
content of a list, the region in force and a scaler's phase are all *cells*: a field of an object.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import ABSENT, Address, CallPath, Const, Many, Mapping, Tensor, Tuple, Union, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

__all__ = ["AMBIENT", "CONTENT", "MADE", "SEVERAL", "TRUE", "Cell", "Difference", "Footprint", "Iteration", "Store"]

Cell = tuple[Address, "Hashable"]
"""A field of an object: (frame, "x"), (instance, "weight"), (list, CONTENT)."""
Difference = dict[Cell, Value]
"""What some code has changed: the new value of each cell. ABSENT: it is not there any more."""

CONTENT = "*"
"""The field that holds all of a list, a set, a dict or a parameter."""
SEVERAL = "*several"
"""The field that is there where an object stands for several: its updates are weak."""
AMBIENT = Address(None, "ambient", "ambient")
"""What holds everywhere: the autocast region, the default dtype."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """The site of a path on which a loop runs its body once more.

    Attributes:
        loop: the loop's syntax.
    """

    loop: object


class Footprint:
    """What a call reads of what was there before it, and which cells it writes.

    Attributes:
        reads: the value of each cell at the first read of it, unless the call had written it before.
        writes: the cells that are written on the way to where it is now, in the order of the first write of each.
        made: the objects that it has allocated.
    """

    __slots__ = ("made", "reads", "writes")

    def __init__(self) -> None:
        self.reads: Difference = {}
        self.writes: dict[Cell, None] = {}
        self.made: set[Address] = set()

    def absorb(self, inner: Footprint) -> None:
        """A call inside this one is over: what it read before writing it, this one has read, too."""
        writes, made, reads = self.writes, self.made, self.reads
        for cell, value in inner.reads.items():
            if cell not in writes and cell[0] not in made and cell not in reads:
                reads[cell] = value
        writes.update(inner.writes)
        made |= inner.made

    def forget_writes(self, count: int) -> None:
        """Another path begins where so many cells had been written."""
        writes = self.writes
        while len(writes) > count:
            writes.popitem()


class Store:
    """The heap at the point that is being evaluated."""

    def __init__(self) -> None:
        self.objects: dict[Address, dict[Hashable, Value]] = {AMBIENT: {}}
        self.trail: list[tuple[Address, Hashable, Value]] = []
        self.footprints: list[Footprint] = [Footprint()]
        self.watches: list[tuple[Difference, set[Address] | None]] = []
        """What has been written since a block began that an exception may leave at any point, innermost block last; and the
        objects of a call's own, which nobody sees who catches the exception."""
        self.frozen: set[Address] = set()
        """Objects that do not change once made, modules and classes: reads of them need not be remembered."""
        self._holders: dict[Address, None] = {}
        """Objects of which a cell has held a tensor, itself or in a tuple, a list or a dict."""
        self._unsearched: dict[Cell, None] = {}
        """Cells with tuples, lists and dicts that nobody has looked into."""
        self.thawed = 0
        """How often an object that was frozen began to change."""
        self._addresses: dict[tuple[CallPath | None, object, object], Address] = {}
        self._paths: dict[tuple[CallPath | None, object], CallPath] = {}

    def unfreeze(self, address: Address) -> None:
        """What was taken not to change does: whatever rests on reads of it that were not remembered is void."""
        if address in self.frozen:
            self.frozen.discard(address)
            self.thawed += 1

    # -- identity --------------------------------------------------------------------------------------------------------

    def path(self, caller: CallPath | None, site: object, module: object = None) -> CallPath:
        """The path of a call from a site."""
        key = caller, site
        found = self._paths.get(key)
        if found is None:
            depth = 1 if caller is None else caller.depth + (type(site) is not Iteration)
            found = self._paths[key] = CallPath(caller, site, depth, module)
        return found

    def address(self, path: CallPath | None, site: object, kind: Any) -> Address:
        """The address of what a site allocates in a call."""
        key = path, site, kind
        found = self._addresses.get(key)
        if found is None:
            found = self._addresses[key] = Address(path, site, kind)
        return found

    def allocate(self, address: Address, content: Value | None = None) -> Address:
        """Make a new object there. Where there is one already, the address stands for several from now on."""
        if address in self.objects:
            fields = self.objects[address]
            if SEVERAL not in fields:
                self._put(address, SEVERAL, TRUE)
            if content is not None:
                self.write(address, CONTENT, content)
            return address
        self._make(address)
        if content is not None:
            self._put(address, CONTENT, content)
        return address

    def _make(self, address: Address) -> None:
        self.objects[address] = {}
        self.trail.append((address, MADE, ABSENT))
        self.footprints[-1].made.add(address)
        if self.watches:
            self.note(address, MADE, TRUE)

    def is_several(self, address: Address) -> bool:
        """Does the address stand for more than one object?"""
        return self.read(address, SEVERAL) is not None

    # -- cells -----------------------------------------------------------------------------------------------------------

    def read(self, address: Address, field: Hashable) -> Value | None:
        """The value of a cell; None where there is none. One that may be missing has an ABSENT alternative."""
        fields = self.objects.get(address)
        value = None if fields is None else fields.get(field)
        footprint = self.footprints[-1]
        if address not in footprint.made and address not in self.frozen:
            cell = address, field
            if cell not in footprint.writes and cell not in footprint.reads:
                footprint.reads[cell] = ABSENT if value is None else value
        return None if value is ABSENT else value

    def fields(self, address: Address) -> tuple[Hashable, ...]:
        """The fields of an object, without its marks."""
        fields = self.objects.get(address, {})
        for field in fields:
            self.read(address, field)
        return tuple(field for field, value in fields.items() if value is not ABSENT and field is not SEVERAL)

    def write(self, address: Address, field: Hashable, value: Value) -> None:
        """Update a cell: in place of what was there, or beside it where the address stands for several objects."""
        if self.read(address, SEVERAL) is not None:
            known = self.read(address, field)
            if known is not None:
                value = join(known, value)
        self._put(address, field, value)

    def overwrite(self, address: Address, field: Hashable, value: Value) -> None:
        """Update a cell for all objects that the address stands for."""
        self._put(address, field, value)

    def blend(self, address: Address, field: Hashable, value: Value) -> None:
        """Update a cell weakly: it is this, or what it was."""
        known = self.read(address, field)
        self._put(address, field, value if known is None else join(known, value))

    def delete(self, address: Address, field: Hashable) -> None:
        """Take a field away; for several objects, from some of them."""
        known = self.read(address, field)
        if known is not None:
            self._put(address, field, join(known, ABSENT) if self.is_several(address) else ABSENT)

    def _put(self, address: Address, field: Hashable, value: Value) -> None:
        fields = self.objects.get(address)
        if fields is None:
            fields = self.objects[address] = {}
        old = fields.get(field, ABSENT)
        self.footprints[-1].writes[address, field] = None
        if old is value:
            return
        self.trail.append((address, field, old))
        fields[field] = value
        self._note_tensors(address, field, value)
        if self.watches:
            self.note(address, field, value)

    def settle(self, address: Address, field: Hashable, value: Value) -> None:
        """What a cell stands for was found out: that is no change of the state."""
        self.objects.setdefault(address, {})[field] = value
        self._note_tensors(address, field, value)

    def _note_tensors(self, address: Address, field: Hashable, value: Value) -> None:
        kind = type(value)
        if kind is Tensor:
            self._holders[address] = None
        elif kind in _CONTAINERS:
            self._unsearched[address, field] = None

    def holders(self) -> list[Address]:
        """The objects of which a cell may hold a tensor, itself or in a tuple, a list or a dict."""
        objects, holders = self.objects, self._holders
        for address, field in self._unsearched:
            if address not in holders and _holds_tensor(objects.get(address, {}).get(field, ABSENT)):
                holders[address] = None
        self._unsearched.clear()
        self._holders = {address: None for address in holders if address in objects}
        return list(self._holders)

    # -- exceptional exits -----------------------------------------------------------------------------------------------

    def watch(self, own: set[Address] | None = None) -> None:
        """A block begins that an exception may leave at any point.

        Args:
            own: the objects that a call makes, where the block is a function's body.
        """
        self.watches.append(({}, own))

    @property
    def may_be_caught(self) -> bool:
        """Is a block under way that may catch an exception, or does something when one leaves it?"""
        return any(own is None for _, own in self.watches)

    def note(self, address: Address, field: Hashable, value: Value) -> None:
        """A cell has had a value in the innermost block."""
        seen, own = self.watches[-1]
        if own is None or address not in own:
            cell = address, field
            known = seen.get(cell)
            seen[cell] = value if known is None or known is value else join(known, value)

    def unwatch(self) -> Difference:
        """The block is over: each cell written in it, with the join of the values that it has had. The block around it has
        seen these, too."""
        seen, _ = self.watches.pop()
        if self.watches:
            for (address, field), value in seen.items():
                self.note(address, field, value)
        return seen

    def left_anywhere(self, seen: Difference) -> Difference:
        """What an exception may leave of a block, told from its beginning: what was there, or what it has written."""
        found: Difference = {}
        for (address, field), value in seen.items():
            if address in self.objects:
                if field is not MADE:
                    found[address, field] = join(self.objects[address].get(field, ABSENT), value)
            elif (address, MADE) in seen:
                found[address, field] = value
        return dict(sorted(found.items(), key=lambda each: each[0][1] is not MADE))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is evaluated meanwhile leaves no trace: it is undone, and is nothing that the calls under way do."""
        saved = self.trail, self.footprints, self.watches
        self.trail, self.footprints, self.watches = [], [Footprint()], []
        try:
            yield
        finally:
            self.undo(0)
            self.trail, self.footprints, self.watches = saved

    # -- branches --------------------------------------------------------------------------------------------------------

    def mark(self) -> int:
        """The place in the trail, to come back to."""
        return len(self.trail)

    def difference(self, mark: int) -> Difference:
        """What has changed since a mark."""
        objects = self.objects
        changed: Difference = {}
        for address, field, _ in self.trail[mark:]:
            fields = objects.get(address)
            if fields is not None:
                changed[address, field] = TRUE if field is MADE else fields.get(field, ABSENT)
        return changed

    def undo(self, mark: int) -> None:
        """Back to how it was at a mark."""
        objects, trail = self.objects, self.trail
        while len(trail) > mark:
            address, field, old = trail.pop()
            if field is MADE:
                objects.pop(address, None)
            elif old is ABSENT:
                objects[address].pop(field, None)
            else:
                objects[address][field] = old
                if type(old) in _CONTAINERS:
                    self._unsearched[address, field] = None

    def take(self, mark: int) -> Difference:
        """The difference since a mark, undone."""
        changed = self.difference(mark)
        self.undo(mark)
        return changed

    def apply(self, changed: Difference) -> None:
        """Make a difference again."""
        for (address, field), value in changed.items():
            if field is not MADE:
                self._put(address, field, value)
            elif address not in self.objects:
                self._make(address)

    def repeat(self, changed: Difference) -> None:
        """Make a difference again, whose objects may be there from the time before: from now on these are several."""
        again = {address for address, field in changed if field is MADE and address in self.objects}
        if not again:
            self.apply(changed)
            return
        self.apply({cell: value for cell, value in changed.items() if cell[0] not in again})
        for address in again:
            self.allocate(address)
        for (address, field), value in changed.items():
            if address in again and field is not MADE:
                self.blend(address, field, value)

    def merge(self, differences: Iterable[Difference], how: Callable[[Value, Value], Value] = join) -> None:
        """Go on from where several paths meet, each given by its difference from here."""
        paths = list(differences)
        if len(paths) == 1:
            self.apply(paths[0])
            return
        cells: dict[Cell, list[Value]] = {}
        for path in paths:
            for cell, value in path.items():
                known = cells.get(cell)
                if known is None:
                    cells[cell] = [value]
                else:
                    known.append(value)
        new = {address for address, field in cells if field is MADE and address not in self.objects}
        for address, field in cells:
            if field is MADE and address not in self.objects:
                self._make(address)
        for cell, values in cells.items():
            address, field = cell
            if field is MADE:
                continue
            ways = len(cells[address, MADE]) if address in new else len(paths)
            if len(values) == ways and all(value is values[0] for value in values):
                self._put(address, field, values[0])
                continue
            result: Value | None = None
            before: Value | None = None
            for path in paths:
                given = path.get(cell)
                if given is None:
                    if address in new and (address, MADE) not in path:
                        continue  # the object is not there on this path
                    if before is None:
                        before = self.read(address, field) or ABSENT
                    given = before
                result = given if result is None else how(result, given)
            if result is not None:
                self._put(address, field, result)


MADE = "*made"
"""The field that a difference has for an object that is made in it."""
TRUE = Const(True)
_CONTAINERS = frozenset({Tuple, Many, Mapping, Union})
"""Kinds of values that may hold tensors."""


def _holds_tensor(value: Value) -> bool:
    kind = type(value)
    if kind is Tensor:
        return True
    if kind is Tuple:
        return any(map(_holds_tensor, value.items))  # type: ignore[attr-defined]
    if kind is Many:
        return _holds_tensor(value.item)  # type: ignore[attr-defined]
    if kind is Mapping:
        rest: Value | None = value.rest  # type: ignore[attr-defined]
        held = any(_holds_tensor(item) for _, item in value.items)  # type: ignore[attr-defined]
        return held or (rest is not None and _holds_tensor(rest))
    return kind is Union and any(map(_holds_tensor, value.choices))  # type: ignore[attr-defined]
