"""The records of all ranks of a distributed run as one: what each saw is added up, and each event has its rank.

What one rank gives birth to, a collective brings to the others in the same step; those are told as its spread.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from dtlint.trace.octaves import add_up
from dtlint.trace.schema import (
    DtypeError,
    Entry,
    Event,
    Gains,
    LocalError,
    Memory,
    Operand,
    ScaledClip,
    Scaler,
    SkipCause,
    Unseen,
    Weight,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.trace.record import TraceRecord

__all__ = ["merge"]

CAME_IN = "came-in"

SUMMED = (
    "count",
    "nbytes",
    "round_trips",
    "nonfinite",
    "sampled",
    "lost",
    "looked",
    "wrapped",
    "nonzero",
    "cut",
    "sums",
    "meant",
    "matter",
    "seconds",
)
"""Counts of an entry."""

SHARED = frozenset(("gradients", "weights", "the loss", "other ranks"))
"""What ranks exchange."""


def merge(records: Sequence[TraceRecord]) -> TraceRecord:
    """One record of several, one of each rank, in their order. A single one is itself, unless other ranks are missing."""
    if len(records) == 1 and records[0].world == 1:
        return records[0]
    return _Merger(records).record()


class _Numbered:
    """Things of all ranks, each kept once, by what makes it the same."""

    def __init__(self) -> None:
        self.of: dict[object, int] = {}

    def number(self, key: object) -> tuple[int, bool]:
        """Its number, and whether it is new."""
        new = key not in self.of
        return self.of.setdefault(key, len(self.of)), new


class _Merger:
    """Goes over the ranks once, renumbering what refers to places and entries."""

    def __init__(self, records: Sequence[TraceRecord]) -> None:
        self.records = records
        first = records[0]
        self.merged = replace(
            first,
            places=[],
            entries=[],
            events=[],
            unseen=[],
            weights=[],
            memory=[],
            errors=[],
            clips=[],
            sources={},
            scaler=None,
            sketches=None,
            local=[],
            gains=[],
        )
        self._places, self._entries, self._events = _Numbered(), _Numbered(), _Numbered()

    def record(self) -> TraceRecord:
        merged, records = self.merged, self.records
        merged.ranks = [record.rank for record in records]
        merged.world = max(record.world for record in records)
        merged.exit_code = next((record.exit_code for record in records if record.exit_code), 0)
        merged.steps = max(record.steps for record in records)
        merged.traced = sum(record.looked_at for record in records)
        merged.operators = sum(record.operators for record in records)
        for record in records:
            self._add(record)
        self._fold()
        merged.memory = self._largest()
        return merged

    def _add(self, record: TraceRecord) -> None:
        for file, lines in record.sources.items():
            self.merged.sources.setdefault(file, {}).update(lines)
        places = [self._place(record, number) for number in range(len(record.places))]
        place: Callable[[int | None], int | None] = lambda number: None if number is None else places[number]  # noqa: E731
        entries = self._add_entries(record, places)
        events = [
            self._event(
                replace(
                    event,
                    place=place(event.place),
                    entry=_at(entries, event.entry),
                    written=place(event.written),
                    maker=_at(entries, event.maker),
                    rank=record.rank,
                )
            )
            for event in record.events
        ]
        self._add_local([replace(local, entry=entries[local.entry]) for local in record.local])
        self._add_gains([replace(gains, entry=entries[gains.entry]) for gains in record.gains])
        self._add_clips([replace(clip, place=places[clip.place]) for clip in record.clips])
        self._add_unseen([replace(unseen, place=place(unseen.place)) for unseen in record.unseen])
        self._add_weights([replace(weight, place=place(weight.place)) for weight in record.weights])
        for error in record.errors:
            operands = [_moved(operand, entries) for operand in error.operands]
            self._add_error(replace(error, place=place(error.place), operands=operands))
        if record.scaler is not None and self.merged.scaler is None:  # all ranks skip the same steps
            self.merged.scaler = _scaler(record.scaler, place(record.scaler.place), events)

    def _place(self, record: TraceRecord, number: int) -> int:
        at = record.places[number]
        index, new = self._places.number(tuple(getattr(at, field.name) for field in fields(at)))
        if new:
            self.merged.places.append(at)
        return index

    def _add_entries(self, record: TraceRecord, places: list[int]) -> list[int]:
        """The numbers that the record's entries get. An entry may refer to one that comes after it."""
        numbers, added = [], []
        for entry in record.entries:
            dtypes = tuple((operand.dtype, operand.zero_dim) for operand in entry.inputs)
            key = (places[entry.place], entry.op, entry.phase, dtypes, entry.output, entry.author, entry.finding)
            number, new = self._entries.number(key)
            numbers.append(number)
            if new:
                self.merged.entries.append(entry)
                added.append((number, entry))
            else:
                self.merged.entries[number] = _sum(self.merged.entries[number], entry)
        for number, entry in added:
            self.merged.entries[number] = replace(
                self.merged.entries[number],
                place=places[entry.place],
                inputs=[_moved(operand, numbers) for operand in entry.inputs],
                undoes=_at(numbers, entry.undoes),
            )
        return numbers

    def _event(self, event: Event) -> int:
        number, new = self._events.number((event.kind, event.place, event.entry, event.subject))
        if new:
            self.merged.events.append(event)
        else:
            self.merged.events[number] = _joined(self.merged.events[number], event)
        return number

    def _fold(self) -> None:
        """What came in on one rank, in or after the step of a birth that reached the gradients, came from there."""
        events = self.merged.events
        births = [event for event in events if event.kind != CAME_IN and not SHARED.isdisjoint(event.reached)]
        kept: dict[int, int] = {}
        for number, event in enumerate(events):
            cause = next((birth for birth in births if birth.step <= event.step and birth.rank != event.rank), None)
            if cause is not None and _from_others(event):
                cause.spread += event.times + event.spread
                cause.reached = list(dict.fromkeys((*cause.reached, *event.reached)))
            else:
                kept[number] = len(kept)
        self.merged.events = [events[number] for number in kept]
        if self.merged.scaler is not None:
            self.merged.scaler = _scaler(self.merged.scaler, self.merged.scaler.place, kept)

    def _add_local(self, errors: list[LocalError]) -> None:
        at = {known.entry: number for number, known in enumerate(self.merged.local)}
        for one in errors:
            if one.entry in at:
                self.merged.local[at[one.entry]] = _both(self.merged.local[at[one.entry]], one)
            else:
                at[one.entry] = len(self.merged.local)
                self.merged.local.append(one)

    def _add_gains(self, gains: list[Gains]) -> None:
        at = {known.entry: number for number, known in enumerate(self.merged.gains)}
        for one in gains:
            if one.entry in at:
                known = self.merged.gains[at[one.entry]]
                known.gains = [max(pair) for pair in zip_longest(known.gains, one.gains, fillvalue=1.0)]
            else:
                self.merged.gains.append(one)

    def _add_clips(self, clips: list[ScaledClip]) -> None:
        at = {known.place: number for number, known in enumerate(self.merged.clips)}
        for one in clips:
            if one.place in at:
                known = self.merged.clips[at[one.place]]
                self.merged.clips[at[one.place]] = replace(known, times=known.times + one.times)
            else:
                self.merged.clips.append(one)

    def _add_unseen(self, unseen: list[Unseen]) -> None:
        at = {known.what: number for number, known in enumerate(self.merged.unseen)}
        for one in unseen:
            if one.what in at:
                known = self.merged.unseen[at[one.what]]
                self.merged.unseen[at[one.what]] = replace(known, count=known.count + one.count)
            else:
                self.merged.unseen.append(one)

    def _add_weights(self, weights: list[Weight]) -> None:
        """Under DDP each rank has the same ones; where they are shards, each rank has values of its own."""
        at = {weight.name: number for number, weight in enumerate(self.merged.weights)}
        for one in weights:
            if one.name in at:
                known = self.merged.weights[at[one.name]]
                self.merged.weights[at[one.name]] = replace(
                    known,
                    checked=known.checked + one.checked,
                    stuck=known.stuck + one.stuck,
                    looked=known.looked + one.looked,
                    matter=known.matter + one.matter,
                    tiny=add_up(known.tiny, one.tiny),
                )
            else:
                self.merged.weights.append(one)

    def _add_error(self, error: DtypeError) -> None:
        for number, known in enumerate(self.merged.errors):
            if (known.message, known.op, known.place) == (error.message, error.op, error.place):
                fatal, count = known.fatal or error.fatal, known.count + error.count
                self.merged.errors[number] = replace(known, fatal=fatal, count=count)
                return
        self.merged.errors.append(error)

    def _largest(self) -> list[Memory]:
        """Of the rank that held most: it is the one that runs out."""
        return max((record.memory for record in self.records), key=lambda held: sum(m.nbytes for m in held))


def _from_others(event: Event) -> bool:
    """Did a collective bring it? DDP's own are not seen: there, a gradient that no operator spoilt came from one."""
    return event.kind == CAME_IN and (bool(event.brought) or event.entry is None)


def _at(numbers: Sequence[int], number: int | None) -> int | None:
    return None if number is None else numbers[number]


def _moved(operand: Operand, entries: Sequence[int]) -> Operand:
    return replace(operand, origin=_at(entries, operand.origin), maker=_at(entries, operand.maker))


def _sum(one: Entry, other: Entry) -> Entry:
    """The same entry on two ranks. What the first refers to stands."""
    return replace(
        one,
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        stalled=max(one.stalled, other.stalled),
        held=max(one.held, other.held),
        tiny=add_up(one.tiny, other.tiny),
        **{name: getattr(one, name) + getattr(other, name) for name in SUMMED},
    )


def _both(one: LocalError, other: LocalError) -> LocalError:
    """The errors of one entry on two ranks."""
    calls = one.calls + other.calls
    return LocalError(
        one.entry,
        calls,
        error=math.sqrt((one.calls * one.error**2 + other.calls * other.error**2) / calls),
        worst=max(one.worst, other.worst),
        values=one.values + other.values,
        saturated=one.saturated + other.saturated,
        vanished=one.vanished + other.vanished,
        amplified=max(one.amplified, other.amplified),
    )


def _joined(one: Event, other: Event) -> Event:
    """The same event on two ranks: born where it came first."""
    first, later = (other, one) if other.step < one.step else (one, other)
    return replace(
        first,
        times=first.times + later.times,
        spread=first.spread + later.spread,
        reached=list(dict.fromkeys((*first.reached, *later.reached))),
        by_scaler=first.by_scaler and later.by_scaler,
    )


def _scaler(scaler: Scaler, place: int | None, events: Sequence[int] | dict[int, int]) -> Scaler:
    """With its causes renumbered; a cause that is not kept is left out."""
    known = events if isinstance(events, dict) else dict(enumerate(events))
    return replace(
        scaler,
        place=place,
        causes=[SkipCause(known[cause.event], cause.count) for cause in scaler.causes if cause.event in known],
        skips=[replace(skip, event=None if skip.event is None else known.get(skip.event)) for skip in scaler.skips],
    )
