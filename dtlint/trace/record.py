"""One run's trace record, and what rules and reports ask of it: groups of its parts, and their wording.

It needs no torch, so that `dtlint report` reads it anywhere; `store` writes it into a file.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint import __version__
from dtlint.diagnostic import Diagnostic, Location, Note, Severity, Span
from dtlint.dtypes.dtype import DTYPES
from dtlint.trace.options import VALUES
from dtlint.trace.precision_plan import Plan  # noqa: TC001 -- `store` resolves it
from dtlint.trace.schema import (
    REACHED,
    SCHEMA,
    VANISHES,
    DtypeError,
    Entry,
    Event,
    Gains,
    Histogram,
    LocalError,
    Memory,
    Operand,
    Place,
    Range,
    ScaledClip,
    Scaler,
    Series,
    Sketches,
    Timing,
    Unseen,
    Weight,
)
from dtlint.trace.words import in_package, shorten, times, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.rule import RuntimeRule

__all__ = ["AROUND", "CALLED", "TraceRecord", "nothing"]

AROUND = 2
"""Lines of source kept on each side of a place."""


CALLED = "called from here"
"""The note at the program's own line, of a place in an installed package."""

SIGNS = {"mul": "*", "div": "/"}
"""How an operator of a tensor and a number is written."""

TRAINED = frozenset(("the loss", "gradients", "weights"))
"""What training goes by."""

QUOTIENTS = frozenset(("div", "reciprocal", "rsqrt"))
"""Overflow where their last operand is small."""


@dataclass(slots=True)
class TraceRecord:
    """One run: of one process, or with `ranks` of the processes whose records were merged."""

    schema: int
    dtlint: str
    torch: str
    """Its version; "" if the program never imported it."""
    python: str
    argv: list[str]
    exit_code: int
    steps: int
    operators: int
    places: list[Place] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    scaler: Scaler | None = None
    clips: list[ScaledClip] = field(default_factory=list)
    """Calls that clipped gradients with the GradScaler's scale."""
    unseen: list[Unseen] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)
    """How magnitudes are spread; of a merged record, on its first rank."""
    errors: list[DtypeError] = field(default_factory=list)
    assume: str = ""
    """The dtype that `--assume` asked about, or ""."""
    watched: list[str] | None = None
    """dtypes whose values were judged; None for all that can be."""
    traced: int | None = None
    """Steps that were looked at, over all ranks; None for all of `steps`."""
    left_out: str = ""
    """The options that leave steps out, as they were written; "" if none."""
    covers: list[str] = field(default_factory=list)
    """Patterns of the modules whose operators were traced; none for all."""
    simulated: str = ""
    """The device that was simulated on the CPU, as `cuda`; "" if none."""
    ran: list[str] = field(default_factory=list)
    """Where no operator was traced: the first modules that ran, for one to be named instead."""
    rank: int = 0
    """Which process of a distributed run this was."""
    world: int = 1
    """How many processes that run had."""
    ranks: list[int] = field(default_factory=list)
    """Of a merged record: the ranks whose records it holds."""
    series: Series | None = None
    """What modules did over the steps; of a merged record, on its first rank."""
    timing: Timing | None = None
    """Where times were taken."""
    plan: Plan | None = None
    """The precision plan under which it ran, if it did."""
    plan_problem: str = ""
    """Why that plan could not be applied, in one line; "" if it was."""
    shadow: str = ""
    """The wider dtype in which operators were computed once more, or ""."""
    local: list[LocalError] = field(default_factory=list)
    """Of these operators: how far they are from it; with `assume`, how far that dtype would be."""
    gains: list[Gains] = field(default_factory=list)
    """Of these operators: what becomes of errors of their operands, where that was measured."""
    sketches: Sketches | None = None
    """What `--sketch` kept; None without, and of a merged record."""
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    """Lines of the user's files around the places: file -> line number -> text."""

    def diagnostic(
        self,
        rule: RuntimeRule,
        place: int | None,
        message: str,
        *,
        help: str = "",
        severity: Severity | None = None,
        notes: Sequence[tuple[int, str]] = (),
    ) -> Diagnostic:
        """A diagnostic of `rule` at a place of this record, with its frame of source lines."""
        at = self.places[place] if place is not None else Place(self.argv[0] if self.argv else "", 1, 1, 0, 0, "", "")
        return Diagnostic(
            code=rule.code,
            name=rule.name,
            severity=severity or rule.severity,
            message=message,
            location=_location(at),
            help=help,
            notes=(
                *(Note(_location(self.places[where]), text) for where, text in notes),
                *((Note(_line(at.caller, at.caller_line), CALLED),) if at.caller else ()),
            ),
            lines=tuple(self._lines(at)),
            noqa_line=at.end_line,
        )

    def _lines(self, at: Place) -> Iterator[tuple[int, str]]:
        source = self.sources.get(at.file, {})
        for number in range(at.line - AROUND, at.end_line + AROUND + 1):
            if str(number) in source:
                yield number, source[str(number)]

    def events_of(self, kind: str) -> list[list[Event]]:
        """Events of a kind that the GradScaler did not expect, grouped over modules; each group's gravest comes first.

        Of two in one step that is the one in the forward, of which the backward's is born. It stands for the whole group:
        what became of any of them became of it.
        """
        groups: dict[object, list[Event]] = {}
        for number, event in enumerate(self.events):
            if event.kind == kind and not event.by_scaler:
                at = None if event.place is None else self.places[event.place]
                key = (
                    number if at is None or event.entry is None else (at.file, at.line, at.column, event.entry is None)
                )
                groups.setdefault(key, []).append(event)
        for group in groups.values():
            group.sort(key=lambda event: (not event.hurts, event.step, self._in_backward(event), -event.spread))
            reached = {what for event in group for what in event.reached}
            group[0] = replace(
                group[0],
                spread=sum(event.spread for event in group),
                reached=[what for what in REACHED if what in reached],
            )
        return list(groups.values())

    @property
    def trains(self) -> bool:
        """Did a backward run?"""
        return any(entry.phase == "backward" for entry in self.entries)

    def severity(self, event: Event, otherwise: Severity | None = None) -> Severity | None:
        """An error where it reached what the run is about; else as the rule has it.

        In training that is the loss, a gradient or a weight: another number that the program read, as a metric, is worth
        a warning. Elsewhere it is the numbers that the program reads.
        """
        if event.hurts and (not self.trains or TRAINED & set(event.reached)):
            return Severity.ERROR
        return otherwise

    def harmless(self, event: Event) -> bool:
        """Did it come to nothing? An inf that spread may have: what divides by it is a wrong 0, and finite."""
        if not event.spread and not event.reached:
            return True
        return self.trains and not event.reached and event.low != event.low

    def _in_backward(self, event: Event) -> bool:
        return event.entry is not None and self.entries[event.entry].phase == "backward"

    def when(self, event: Event) -> str:
        """` in step 3`, counted from 1, with the rank if there are several; no step in a run without any."""
        on = f" on rank {event.rank}" if event.rank is not None else ""
        if not self.steps:
            return on
        return (
            f" in step {event.step + 1}{on}"
            if event.step < self.steps
            else f" after the last of {self.steps} steps{on}"
        )

    @property
    def narrowed(self) -> list[str]:
        """The options that leave out steps, modules or dtypes, in words such as `--every 2`."""
        watched = f"--watch {','.join(self.watched)}" if self.watched else ""
        return [*filter(None, (self.left_out, " ".join(f"--module {name}" for name in self.covers), watched))]

    @property
    def looked_at(self) -> int:
        """The steps that counts of operators are over; 1 where there are none."""
        return (self.steps if self.traced is None else self.traced) or 1

    def what(self, event: Event) -> str:
        """`x.pow(2)` (pow) in blocks.0, or the backward of it."""
        at = None if event.place is None else self.places[event.place]
        shown = shorten(at.expression) if at is not None else ""
        module = within(at.module) if at is not None else ""
        if event.entry is None:
            return f"{event.subject}{_others(event.times)}, in {shown or 'an optimizer step'},"
        entry = self.entries[event.entry]
        operator = {"_to_copy": "the cast", "copy_": "the copy"}.get(entry.op, entry.op.lstrip("_"))
        operator += f" inside {entry.inside}" if entry.inside not in ("", operator) else ""
        if entry.phase == "backward":
            return f"the backward of {shown or 'an operator'} ({operator}){module}"
        return f"{shown} ({operator}){module}" if shown else f"{operator}{module}"

    def operands(self, event: Event) -> str:
        """`400 / 0.005 is past 65504`, `inputs reach 300` or, of a quotient, `inputs as small as 1e-07`; else ""."""
        reach, number = event.reach, event.number
        if reach is None or event.kind == "pole":
            return ""
        name = self.entries[event.entry].op.rstrip("_") if event.entry is not None else ""
        if number is not None and name in SIGNS and event.dtype in DTYPES:
            limit = DTYPES[event.dtype].max
            if number and (reach / abs(number) if name == "div" else reach * abs(number)) > limit:
                return f"{reach:.5g} {SIGNS[name]} {number:.5g} is past {limit:.5g}"
        least = _least(event.inputs[-1])
        if name in QUOTIENTS and 0 < least < 1 and (name != "div" or len(event.inputs) > 1):
            return f"inputs as small as {least:.2g}"
        return f"inputs reach {reach:.5g}"

    def zero(self, event: Event) -> str:
        """`, as `var + 1e-08` at m.py:3 held 0, since 1e-08 is 0 in float16`, as far as it is known."""
        if event.maker is None:
            return ""
        maker = self.entries[event.maker]
        at = self.places[maker.place]
        small = maker.number is not None and maker.output == "float16" and 0 < abs(maker.number) <= VANISHES
        eps = (
            f", since {maker.number:g} is 0 in float16" if small and maker.op.strip("_") in ("add", "clamp_min") else ""
        )
        here = None if event.place is None else self.places[event.place]
        if not eps and here is not None and (here.file, here.line) == (at.file, at.line):
            return ""
        return f", as {shorten(at.expression) or maker.op} at {in_package(at.file)}:{at.line} held 0{eps}"

    def written(self, event: Event) -> str:
        """`, with inf from `data[0, 0]` at train.py:39`: of a NaN that came of what the program wrote; else ""."""
        if event.written is None:
            return ""
        at = self.places[event.written]
        return f", with inf from {shorten(at.expression) or 'a constant'} at {in_package(at.file)}:{at.line}"

    def by_line(self, entries: Sequence[Entry]) -> list[list[Entry]]:
        """Entries grouped over modules: one group per expression, operator, dtypes and phase, in order of weight."""
        groups: dict[tuple[object, ...], list[Entry]] = {}
        for entry in entries:
            at = self.places[entry.place]
            dtypes = tuple(operand.dtype for operand in entry.inputs)
            key = (at.file, at.line, at.column, entry.op, dtypes, entry.output, entry.phase, entry.author)
            groups.setdefault(key, []).append(entry)
        return sorted(groups.values(), key=lambda group: -sum(e.nbytes or e.count for e in group))

    def modules(self, group: Sequence[Entry]) -> str:
        """` in blocks.0.attn (+3 modules)`, or "" outside any module."""
        names = list(dict.fromkeys(self.places[entry.place].module for entry in group))
        if not names or not names[0]:
            return ""
        more = f" (+{len(names) - 1} modules)" if len(names) > 2 else " (+1 module)" if len(names) == 2 else ""
        return f"{within(names[0])}{more}"

    def calls(self, group: Sequence[Entry]) -> str:
        """`once`, `3 times`: how often the group ran."""
        return times(sum(entry.count for entry in group))

    def origin(self, operand: Operand) -> str:
        """Where an operand's dtype came from, in words; "" if that was not seen."""
        more = ", among others" if operand.varies else ""
        if operand.name:
            return operand.name + more
        if operand.origin is None:
            followed = operand.dtype in (VALUES if self.watched is None else self.watched)
            return (
                "data made outside the traced operators" if followed else "values whose origin was not followed"
            ) + more
        entry = self.entries[operand.origin]
        at = self.places[entry.place]
        return f"{shorten(at.expression) or entry.op} at {in_package(at.file)}:{at.line}{more}"


def nothing(argv: list[str], exit_code: int) -> TraceRecord:
    """The record of a program that never imported torch."""
    return TraceRecord(SCHEMA, __version__, "", platform.python_version(), argv, exit_code, steps=0, operators=0)


def _line(file: str, line: int) -> Location:
    return Location(file, Span(line, 0, line, 0))


def _location(at: Place) -> Location:
    return Location(at.file, Span(at.line, at.column, at.end_line, at.end_column))


def _least(r: Range) -> float:
    """The smallest magnitude of values that are all of one sign; 0 of others."""
    return max(r.low, -r.high, 0.0)


def _others(times: int) -> str:
    return f" and {times - 1} more" if times > 1 else ""
