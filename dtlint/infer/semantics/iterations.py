"""A loop's body run once more: what it makes is told apart from what it has made before, until the body ends.

An allocation site in a loop stands for several objects from the second round on, which are updated weakly. While a round
runs, though, what it makes is one object: it is allocated behind a path of its own, and joins the others at the round's end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import ABSENT, Const, ProjectClass, Tuple
from dtlint.infer.semantics.relocation import Relocation
from dtlint.infer.state import MADE, SEVERAL, TRUE, Iteration

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Value
    from dtlint.infer.state import Difference

__all__ = ["is_unrolled", "makes_objects", "once_more"]

T = TypeVar("T")

_MOST_UNROLLED = 12
"""A loop over no more items than this, all known one by one, is run once for each."""
_MOST_NAMES = 64
"""The same for names, and pairs that begin with one: the settings of a program, which each are something else."""


def is_unrolled(items: Tuple) -> bool:
    """Is a loop over these items run once for each?"""
    given = items.items
    return len(given) <= _MOST_UNROLLED or (len(given) <= _MOST_NAMES and all(map(_goes_by_name, given)))


def _goes_by_name(item: Value) -> bool:
    first = item.items[0] if isinstance(item, Tuple) and item.items else item
    return isinstance(first, Const) and isinstance(first.value, str)


def makes_objects(ctx: Context, mark: int) -> bool:
    """Have objects of classes or layers been made since a mark? Only for these is a round told apart from those before it."""
    return any(
        field is MADE and (isinstance(address.kind, ProjectClass) or address.kind.startswith("torch.nn."))
        for address, field, _ in ctx.store.trail[mark:]
    )


def once_more(ctx: Context, loop: Hashable, run: Callable[[], T], found: list[Value] | None = None) -> T:
    """Run a round of a loop that is not its first.

    Args:
        loop: its syntax.
        run: evaluates the body, from here.
        found: values that the round appends.
    """
    store, frame = ctx.store, ctx.frame
    usual = frame.path
    if usual is None:
        return run()
    path, mark = store.path(usual, Iteration(loop)), store.mark()
    values = [frame.yields] if found is None else [frame.yields, found]
    ways = [] if not frame.loops else [frame.loops[-1].breaks, frame.loops[-1].continues]
    had = len(frame.returns), [len(each) for each in values], [len(each) for each in ways]
    frame.path = path
    try:
        result = run()
    finally:
        frame.path = usual
    fold = _Folding(ctx, Relocation(store, path, usual))
    changed = store.difference(mark)
    left = [way for each, start in zip(ways, had[2], strict=True) for way in each[start:]]
    left += [way for way, _ in frame.returns[had[0] :]]
    if not any(map(fold.concerns, (changed, *left))) or any(map(_defines_classes, (changed, *left))):
        return result
    store.undo(mark)
    for each, start in zip(ways, had[2], strict=True):
        each[start:] = map(fold.difference, each[start:])
    frame.returns[had[0] :] = [(fold.difference(way), fold.value(value)) for way, value in frame.returns[had[0] :]]
    for given, start in zip(values, had[1], strict=True):
        given[start:] = map(fold.value, given[start:])
    store.repeat(fold.renamed(changed))
    return result


def _defines_classes(changed: Difference) -> bool:
    return any(address.kind == "class" and field is MADE for address, field in changed)


class _Folding:
    """Puts what a round has made to what the rounds before it have made."""

    def __init__(self, ctx: Context, relocation: Relocation) -> None:
        self.store = ctx.store
        self.relocation = relocation

    def concerns(self, changed: Difference) -> bool:
        """Is there anything in a difference that the round has made?"""
        return any(field is MADE and self.relocation.address(address) is not address for address, field in changed)

    def value(self, value: Value) -> Value:
        """A value, its objects renamed."""
        return self.relocation.value(value)

    def renamed(self, changed: Difference) -> Difference:
        """A difference from the round's beginning, its objects renamed."""
        move = self.relocation
        return {(move.address(address), field): move.value(value) for (address, field), value in changed.items()}

    def difference(self, changed: Difference) -> Difference:
        """The same for a difference from before the round, which may tell of both the objects of this round and those of the
        rounds before."""
        move = self.relocation
        mine = {address for address, field in changed if field is MADE and move.address(address) is not address}
        made: Difference = {cell: move.value(value) for cell, value in changed.items() if cell[0] not in mine}
        for (address, field), value in changed.items():
            if address not in mine:
                continue
            cell = move.address(address), field
            new = move.value(value)
            if cell[0] in self.store.objects:
                made[cell[0], SEVERAL] = TRUE
                known = made.get(cell)
                if known is None:
                    known = self.store.objects[cell[0]].get(field, ABSENT)
                if field is MADE:
                    continue
                new = join(known, new)
            made[cell] = new
        return made
