"""Paths that part and meet again: each is run from the same state, and what is known where they meet is joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.lattice import join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Value
    from dtlint.infer.state import Cell

__all__ = ["alternatives", "on_each_return", "value_of_alternatives"]


def alternatives(ctx: Context, paths: Sequence[Callable[[], bool]]) -> bool:
    """Run each path from here, and go on from where they meet.

    Args:
        paths: each runs and says whether its end is reached.

    Returns:
        Is the end of any of them reached?
    """
    if len(paths) == 1:
        return paths[0]()
    store = ctx.store
    mark, footprint = store.mark(), store.footprints[-1]
    before: set[Cell] = footprint.writes
    ends = []
    for path in paths:
        footprint.writes = set(before)
        try:
            reached = path()
        except NeverReturns:
            reached = False
        changed = store.take(mark)
        if reached:
            ends.append(changed)
    footprint.writes = before
    if not ends:
        return False
    store.merge(ends)
    return True


def value_of_alternatives(ctx: Context, paths: Sequence[Callable[[], Value]]) -> Value:
    """The join of what several paths give, each evaluated from here.

    Raises:
        NeverReturns: none of them gives a value.
    """
    if len(paths) == 1:
        return paths[0]()
    found: list[Value] = []

    def run(path: Callable[[], Value]) -> Callable[[], bool]:
        def running() -> bool:
            found.append(path())
            return True

        return running

    if not alternatives(ctx, [run(path) for path in paths]):
        raise NeverReturns
    result = found[0]
    for value in found[1:]:
        result = join(result, value)
    return result


def on_each_return(ctx: Context, since: int, action: Callable[[], bool]) -> None:
    """Do something on each way out by `return` that was found since there were so many."""
    store, frame = ctx.store, ctx.frame
    here = store.mark()
    kept = store.difference(frame.mark)
    for place in range(since, len(frame.returns)):
        changed, value = frame.returns[place]
        store.apply({**kept, **changed})
        if action():
            frame.returns[place] = (store.difference(frame.mark), value)
        store.undo(here)
