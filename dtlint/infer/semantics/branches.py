"""Paths that part and meet again: each is run from the same state, and what is known where they meet is joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.lattice import join

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Value
    from dtlint.infer.state import Difference

__all__ = ["alternatives", "do_on_each_way_out", "on_each_way_out", "value_of_alternatives", "ways_out"]


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
    written = len(footprint.writes)
    ends: list[Difference] = []
    for number, path in enumerate(paths, 1):
        ctx.undecided += 1
        try:
            reached = path()
        except NeverReturns:
            reached = False
        finally:
            ctx.undecided -= 1
        if reached and not ends and number == len(paths):
            return True  # the only one that gets there: the state is that of its end
        changed = store.take(mark)
        footprint.forget_writes(written)
        if reached:
            ends.append(changed)
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


def ways_out(ctx: Context) -> tuple[int, int, int]:
    """How many ways out by `return`, `break` and `continue` have been found so far."""
    frame = ctx.frame
    if not frame.loops:
        return len(frame.returns), 0, 0
    return len(frame.returns), len(frame.loops[-1].breaks), len(frame.loops[-1].continues)


def on_each_way_out(
    ctx: Context, since: tuple[int, int, int], action: Callable[[Difference, int], Difference | None]
) -> None:
    """Do something on each way out of a block that was found since there were so many.

    Args:
        action: is given the state of the way, as a difference from a mark, and that mark; gives the state behind it, from
            the same mark, or None where its end is not reached. The state here is left as it was.
    """
    frame = ctx.frame
    for place in range(since[0], len(frame.returns)):
        changed, value = frame.returns[place]
        frame.returns[place] = action(changed, frame.mark) or changed, value
    if frame.loops:
        exits = frame.loops[-1]
        for ways, first in ((exits.breaks, since[1]), (exits.continues, since[2])):
            for place in range(first, len(ways)):
                ways[place] = action(ways[place], exits.mark) or ways[place]


def do_on_each_way_out(ctx: Context, since: tuple[int, int, int], action: Callable[[], bool]) -> None:
    """Do something on each way out of a block, from the state that it leaves."""
    store = ctx.store
    here = store.mark()

    def run(changed: Difference, mark: int) -> Difference | None:
        store.apply({**store.difference(mark), **changed})
        done = store.difference(mark) if action() else None
        store.undo(here)
        return done

    on_each_way_out(ctx, since, run)
