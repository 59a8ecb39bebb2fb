"""What an operator was made of: its operands, followed back through casts and unmatched operators to where they were compared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.compare.difference import FLOOR
from dtlint.compare.roundoff import Incoming, roundoff, unit_roundoff

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.compare.run import Line

__all__ = ["Operands", "Pair", "Side", "operands_of"]

MOST = 200
"""Lines that are looked at for one operator."""


@dataclass(slots=True)
class Pair:
    """A result of both runs that was compared."""

    one: Line
    other: Line
    difference: float
    sparse: bool = False
    """May few values differ by much, since a decision turned? A sample does not tell how many; a product spreads them."""
    row: int = 1
    """Of operators of one line that each take the result of the one before: how many there were."""
    brought: float = 0.0
    """The sum of squares of what the first operand of that row, and all others since, brought along."""


@dataclass(slots=True)
class Side:
    """One run's lines of a step."""

    lines: list[Line]
    matched: set[int]
    """Numbers of those that have a counterpart."""
    pairs: dict[int, Pair] = field(default_factory=dict)
    """By number: those that were compared."""


@dataclass(frozen=True, slots=True)
class Operands:
    """All that a pair was made of, in both runs."""

    incoming: list[Incoming]
    alone: tuple[list[Line], list[Line]]
    """Lines on the way that round or compute, and that only the first run has, or only the second."""
    sparse: bool
    """Do few values of one of them differ by much?"""
    alike: bool
    """Are these the same in both runs?"""
    indexed: bool
    """Was an index computed from values that differ? Then other values may have been picked."""


@dataclass(frozen=True, slots=True)
class _Path:
    """The way of an operand from where it was compared."""

    pair: Pair
    through: tuple[Line, ...]
    """Casts to a narrower dtype, and operators without a counterpart."""
    decides: bool
    index: bool


def operands_of(one: Line, other: Line, sides: tuple[Side, Side], same_precision: bool) -> Operands:
    """What a line is made of in both runs.

    Of runs in the same precision only what both do on the way is taken for rounding.
    """
    ways = list(_paths(one, sides[0])), list(_paths(other, sides[1]))
    met = [
        Counter(_kind(line) for line in {line.number: line for way in side for line in way.through}.values())
        for side in ways
    ]
    alone = [
        _first_of({line.number: line for way in side for line in way.through}, met[n] - met[1 - n])
        for n, side in enumerate(ways)
    ]
    common = met[0] & met[1]
    incoming: dict[int, Incoming] = {}
    for way in (*ways[0], *ways[1]):
        key = way.pair.other.number
        rms = way.pair.one.rms
        rounded = sum(roundoff(line.dtype, rms) for line in way.through if not same_precision or common[_kind(line)])
        known = incoming.get(key)
        incoming[key] = Incoming(
            way.pair.one,
            way.pair.difference,
            max(rounded, known.rounded if known else 0.0),
            way.decides or (known is not None and known.decides),
        )
    indexed = any(way.index and way.pair.difference > FLOOR for side in ways for way in side)
    alike = {way.pair.other.number for way in ways[0]} == {way.pair.other.number for way in ways[1]}
    sparse = any(way.pair.sparse for side in ways for way in side)
    return Operands(list(incoming.values()), (alone[0], alone[1]), sparse, alike, indexed)


def _kind(line: Line) -> tuple[str, str]:
    return line.op, line.dtype


def _first_of(lines: dict[int, Line], kinds: Counter[tuple[str, str]]) -> list[Line]:
    found = []
    for number in sorted(lines):
        if kinds[_kind(lines[number])] > 0:
            kinds[_kind(lines[number])] -= 1
            found.append(lines[number])
    return found


def _paths(line: Line, side: Side) -> Iterator[_Path]:
    waiting: list[tuple[int, tuple[Line, ...], bool, bool]] = [(n, (), False, False) for n in reversed(line.sources)]
    seen: set[tuple[int, tuple[int, ...], bool, bool]] = set()
    while waiting and len(seen) < MOST:
        number, through, decides, index = waiting.pop()
        key = number, tuple(met.number for met in through), decides, index
        if key in seen:
            continue
        seen.add(key)
        at, pair = side.lines[number], side.pairs.get(number)
        if pair is not None:
            if at.floating:
                yield _Path(pair, through, decides, index)
            continue
        if not at.floating:
            decides, index = decides or at.dtype == "bool", index or at.dtype != "bool"
        elif at.moves and any(unit_roundoff(side.lines[n].dtype) < unit_roundoff(at.dtype) for n in at.sources):
            through = (at, *through)
        if at.entry is not None and number not in side.matched and not at.moves:
            through = (at, *through)
        waiting += [(n, through, decides, index) for n in reversed(at.sources)]
