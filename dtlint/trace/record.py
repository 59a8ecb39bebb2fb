"""The trace record: what a run showed, as plain data with a versioned schema.

It needs no torch, so that `dtlint report` reads it anywhere. dtypes are names as in `torch.float16`, without `torch.`.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from dtlint import __version__
from dtlint.diagnostic import Diagnostic, Location, Note, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.rule import RuntimeRule

__all__ = [
    "SCHEMA",
    "DtypeError",
    "Entry",
    "Event",
    "Memory",
    "Operand",
    "Place",
    "Range",
    "RecordError",
    "Scaler",
    "Skip",
    "SkipCause",
    "TraceRecord",
    "Unseen",
    "Weight",
    "encoded",
    "load",
    "nothing",
    "save",
    "shorten",
    "times",
]

SCHEMA = 2
"""Raised when an older reader would misread a newer record. What 2 added has defaults, so that 1 is still read."""

VANISHES = 2.0**-25
"""What rounds to 0 in float16: at most half of its smallest positive value."""

AROUND = 2
"""Lines of source kept on each side of a place."""


class RecordError(ValueError):
    """The file is not a trace record that this version reads; the message is one line that says so."""


@dataclass(slots=True)
class Place:
    """An expression of the user's source, while one module runs. Lines from 1, columns from 0 in characters."""

    file: str
    """Relative to the directory of the run where it lies below it."""
    line: int
    end_line: int
    column: int
    end_column: int
    expression: str
    module: str
    """`blocks.2.fc`, or "" outside any module."""


@dataclass(slots=True)
class Operand:
    """One tensor argument."""

    dtype: str
    zero_dim: bool
    origin: int | None
    """The entry at which its dtype was decided, if that was seen."""
    name: str
    """`parameter fc.weight` or `buffer cos`, where it is one."""


@dataclass(slots=True)
class Entry:
    """One operator with one tuple of input dtypes at one place."""

    place: int
    op: str
    phase: str
    """`forward` or `backward`; a backward entry stands at the forward's place."""
    inputs: list[Operand]
    output: str | None
    count: int
    author: str
    """Of a cast: `asked`, `autocast`, `implicit` (an operator's own) or `backward`; else ""."""
    finding: str
    """`promoted`, `float64` (appeared without a float64 input), `float64-data` (came in as such), `int-to-float`, or ""."""
    culprit: int | None
    """The operand that raised the dtype."""
    autocast: bool
    """Was autocast on for this device at the first call? Of the backward, never."""
    nbytes: int
    """Bytes over the run: of a cast, read and written; of a collective, its largest argument, a list counted whole."""
    round_trips: int
    undoes: int | None
    """The cast that this one undoes."""
    flops: int
    """Of one call, for matrix products, convolutions and attention."""
    low: float
    high: float
    """Smallest and largest finite value of the output, 0 included."""
    nonfinite: int
    """Calls whose output held an inf or NaN."""
    sampled: int = 0
    """Values other than 0 in those calls that were sampled for loss: casts to a dtype of smaller range, and with
    `assume` every result that is wider than the assumed dtype."""
    lost: int = 0
    """How many of them the narrower dtype turns into 0."""

    @property
    def reach(self) -> float:
        """The largest finite magnitude of the output."""
        return max(-self.low, self.high)

    @property
    def share_lost(self) -> float:
        """The share of values that became 0, from 0 to 1."""
        return self.lost / self.sampled if self.sampled else 0.0


@dataclass(slots=True)
class Range:
    """The values of an operand when an event was born."""

    dtype: str
    low: float
    high: float


@dataclass(slots=True)
class Event:
    """Non-finite values where none were before, and what became of them."""

    kind: str
    """`overflow`, `invalid`, `pole`, `masked-row` or `came-in`."""
    step: int
    place: int | None
    entry: int | None
    """None for a weight that an optimizer step spoilt."""
    subject: str
    """The weight or batch, where it has a name."""
    dtype: str
    low: float
    high: float
    inputs: list[Range]
    times: int
    spread: int
    """Results that inherited it."""
    reached: list[str]
    """Of `the loss`, `gradients`, `weights`, `a number the program read`."""
    by_scaler: bool
    """Born in a backward of a scaled loss, and every time the GradScaler skipped the step: as meant."""
    eps: float | None
    """The optimizer's eps, where an optimizer step spoilt a weight."""
    brought: str = ""
    """The collective that brought it, as `c10d::allreduce_`, where one did."""
    rank: int | None = None
    """In a merged record: the rank on which it was born."""

    @property
    def hurts(self) -> bool:
        """Did it reach what training or the program goes by?"""
        return bool(self.reached) and not self.by_scaler

    @property
    def fate(self) -> str:
        """What became of it, as the end of a sentence."""
        spread = f"it spread to {self.spread} result{'s' * (self.spread != 1)}" if self.spread else ""
        reached = f"reached {_and(self.reached)}" if self.reached else ""
        if not spread:
            return f"it {reached}" if reached else "nothing inherited it"
        return f"{spread} and {reached}" if reached else f"{spread}, none of them the loss, a gradient or a weight"

    @property
    def by_eps(self) -> str:
        """`, since the optimizer's eps of 1e-08 is 0 in float16`, where that is what spoilt a weight; else ""."""
        if self.eps is None or self.dtype != "float16" or self.eps > VANISHES:
            return ""
        return f", since the optimizer's eps of {self.eps:g} is 0 in float16"

    @property
    def help_with_eps(self) -> str:
        """What to do about that; else ""."""
        return "keep the weights in float32 and use autocast, or give an eps of 1e-4 or so" if self.by_eps else ""

    @property
    def inputs_text(self) -> str:
        """`inputs reach 300`: the largest magnitude among the operands, if known."""
        known = [max(abs(r.low), abs(r.high)) for r in self.inputs]
        return f"inputs reach {max(known):.5g}" if known else ""


@dataclass(slots=True)
class SkipCause:
    """Steps that the GradScaler skipped because of one event."""

    event: int
    count: int


@dataclass(slots=True)
class Skip:
    """One step that the GradScaler skipped."""

    step: int
    """Counted from 0."""
    event: int | None
    """What made the gradients non-finite, if that was seen."""


@dataclass(slots=True)
class Scaler:
    """What the GradScaler did."""

    updates: int
    skipped: int
    leading: int
    """Skips before the first good step: the scale finding its level."""
    scale: float | None
    causes: list[SkipCause]
    place: int | None
    """Where `update()` was called."""
    lowest: float | None = None
    """The smallest scale that an update left."""
    skips: list[Skip] = field(default_factory=list)
    """The first of the skips; `skipped` counts them all."""


@dataclass(slots=True)
class Unseen:
    """A part of the program that the trace does not show."""

    what: str
    count: int
    place: int | None = None
    """Where it was met first, if that is known."""
    by_design: bool = False
    """Left out on purpose, and nothing is missed by it: weights are judged after each step, for one."""


@dataclass(slots=True)
class Weight:
    """A parameter as an optimizer's step left it."""

    name: str
    """`fc.weight`, or its number and group where no module that ran holds it."""
    shape: list[int]
    dtype: str
    gradient: str
    """The gradient's dtype; "" if it had none."""
    states: list[str]
    """dtypes of the optimizer's states for it, such as Adam's averages; a 0-dim step counter aside."""
    checked: int
    """Of half weights, in sampled steps: values whose gradient was not 0 while the learning rate was not."""
    stuck: int
    """How many of those kept their value to the bit."""
    place: int | None
    """Where `step()` was called."""

    @property
    def share_stuck(self) -> float:
        """The share of values that did not move, from 0 to 1."""
        return self.stuck / self.checked if self.checked else 0.0


@dataclass(slots=True)
class Memory:
    """Bytes that tensors of one dtype held, in the sampled step in which they held most."""

    what: str
    """`parameters`, `gradients`, `optimizer states`, or `activations`: what the forward left when a backward began."""
    dtype: str
    nbytes: int


@dataclass(slots=True)
class DtypeError:
    """An operator that refused the dtypes it was given."""

    message: str
    """The exception's first line."""
    op: str
    step: int
    place: int | None
    arguments: list[str]
    """Names of the tensor arguments in the operator's schema, such as `mat1`."""
    operands: list[Operand]
    """The tensor arguments, in the same order."""
    count: int
    fatal: bool
    """Did the traced program end by it?"""


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
    unseen: list[Unseen] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    memory: list[Memory] = field(default_factory=list)
    errors: list[DtypeError] = field(default_factory=list)
    assume: str = ""
    """The dtype that `--assume` asked about, or ""."""
    traced: int | None = None
    """Steps that were looked at, over all ranks; None for all of `steps`."""
    rank: int = 0
    """Which process of a distributed run this was."""
    world: int = 1
    """How many processes that run had."""
    ranks: list[int] = field(default_factory=list)
    """Of a merged record: the ranks whose records it holds."""
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
            notes=tuple(Note(_location(self.places[where]), text) for where, text in notes),
            lines=tuple(self._lines(at)),
            noqa_line=at.end_line,
        )

    def _lines(self, at: Place) -> Iterator[tuple[int, str]]:
        source = self.sources.get(at.file, {})
        for number in range(at.line - AROUND, at.end_line + AROUND + 1):
            if str(number) in source:
                yield number, source[str(number)]

    def events_of(self, kind: str) -> list[list[Event]]:
        """Events of a kind that the GradScaler did not expect, grouped over modules; each group's gravest comes first."""
        groups: dict[object, list[Event]] = {}
        for number, event in enumerate(self.events):
            if event.kind == kind and not event.by_scaler:
                at = None if event.place is None else self.places[event.place]
                key = (
                    number if at is None or event.entry is None else (at.file, at.line, at.column, event.entry is None)
                )
                groups.setdefault(key, []).append(event)
        for group in groups.values():
            group.sort(key=lambda event: (not event.hurts, event.step, -event.spread))
        return list(groups.values())

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
    def looked_at(self) -> int:
        """The steps that counts of operators are over; 1 where there are none."""
        return (self.steps if self.traced is None else self.traced) or 1

    def what(self, event: Event) -> str:
        """`x.pow(2)` (pow) in blocks.0, or the backward of it."""
        at = None if event.place is None else self.places[event.place]
        shown = shorten(at.expression) if at is not None else ""
        module = f" in {at.module}" if at is not None and at.module else ""
        if event.entry is None:
            return f"{event.subject}{_others(event.times)}, in {shown or 'an optimizer step'},"
        entry = self.entries[event.entry]
        operator = {"_to_copy": "the cast", "copy_": "the copy"}.get(entry.op, entry.op.lstrip("_"))
        if entry.phase == "backward":
            return f"the backward of {shown or 'an operator'} ({operator}){module}"
        return f"{shown} ({operator}){module}" if shown else f"{operator}{module}"

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
        return f" in {names[0]}{more}"

    def calls(self, group: Sequence[Entry]) -> str:
        """`once`, `3 times`: how often the group ran."""
        return times(sum(entry.count for entry in group))

    def origin(self, operand: Operand) -> str:
        """Where an operand's dtype came from, in words; "" if that was not seen."""
        if operand.name:
            return operand.name
        if operand.origin is None:
            return "data made outside the traced operators"
        entry = self.entries[operand.origin]
        at = self.places[entry.place]
        return f"{shorten(at.expression) or entry.op} at {at.file}:{at.line}"


def nothing(argv: list[str], exit_code: int) -> TraceRecord:
    """The record of a program that never imported torch."""
    return TraceRecord(SCHEMA, __version__, "", platform.python_version(), argv, exit_code, steps=0, operators=0)


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def shorten(expression: str, width: int = 50) -> str:
    """An expression in backquotes, cut to `width` characters."""
    text = " ".join(expression.split())
    if not text:
        return ""
    return f"`{text if len(text) <= width else text[: width - 3] + '...'}`"


def _location(at: Place) -> Location:
    return Location(at.file, Span(at.line, at.column, at.end_line, at.end_column))


def _others(times: int) -> str:
    return f" and {times - 1} more" if times > 1 else ""


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# -- files ------------------------------------------------------------------------------------------------------------


def encoded(record: TraceRecord) -> dict[str, Any]:
    """The record as JSON has it: dicts, lists, texts and finite numbers. What is not finite is a text, as in `inf`."""
    plain: dict[str, Any] = _encode(asdict(record))
    return plain


def save(record: TraceRecord, path: Path) -> None:
    """Write the record, wholly or not at all."""
    text = json.dumps(encoded(record), allow_nan=False, separators=(",", ":"))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def load(path: Path) -> TraceRecord:
    """Read a record.

    Raises:
        RecordError: the file is missing, damaged, of a newer schema, or no trace record at all.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise RecordError(f"{path} is not a trace record: it is not valid JSON") from error
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int):
        raise RecordError(f"{path} is not a trace record; `dtlint trace --output NEW_FILE SCRIPT` writes one")
    if schema > SCHEMA:
        raise RecordError(f"{path} has schema {schema}, newer than this dtlint reads ({SCHEMA}); upgrade dtlint")
    try:
        record = _decode(TraceRecord, data)
        assert isinstance(record, TraceRecord)
        _check(record)
    except (TypeError, KeyError, AssertionError) as error:
        raise RecordError(f"{path} is a damaged trace record ({error}); trace again to write a new one") from error
    return record


def _check(record: TraceRecord) -> None:
    """Every index must point at something, so that a report never fails on a record that was loaded."""
    places, entries, events = len(record.places), len(record.entries), len(record.events)
    indices: list[tuple[int | None, int]] = []
    for entry in record.entries:
        indices += [(entry.place, places), (entry.undoes, entries), (entry.culprit, len(entry.inputs))]
        indices += [(operand.origin, entries) for operand in entry.inputs]
    for event in record.events:
        indices += [(event.place, places), (event.entry, entries)]
    if record.scaler is not None:
        indices += [(record.scaler.place, places), *((cause.event, events) for cause in record.scaler.causes)]
        indices += [(skip.event, events) for skip in record.scaler.skips]
    indices += [(unseen.place, places) for unseen in record.unseen]
    indices += [(weight.place, places) for weight in record.weights]
    indices += [(error.place, places) for error in record.errors]
    indices += [(operand.origin, entries) for error in record.errors for operand in error.operands]
    for index, size in indices:
        if index is not None and not 0 <= index < size:
            raise KeyError(f"index {index} of {size}")


SPECIAL = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
"""How the floats that JSON lacks are written."""


def _encode(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return [_encode(item) for item in value] if isinstance(value, list) else value


def _decode(kind: Any, value: Any) -> Any:
    """`value` as JSON gave it, as the type `kind`; TypeError or KeyError where it does not fit."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        inner = [option for option in get_args(kind) if option is not NoneType]
        return None if value is None else _decode(inner[0], value)
    if origin is list:
        _expect(value, list)
        return [_decode(get_args(kind)[0], item) for item in value]
    if origin is dict:
        _expect(value, dict)
        return {key: _decode(get_args(kind)[1], item) for key, item in value.items()}
    if is_dataclass(kind):
        _expect(value, dict)
        hints = get_type_hints(kind)
        made: Any = kind
        return made(**{f.name: _decode(hints[f.name], value[f.name]) for f in fields(kind) if _given(f, value)})
    if kind is float and not isinstance(value, bool):
        if isinstance(value, str):
            return SPECIAL[value]
        _expect(value, (int, float))
        return float(value)
    _expect(value, kind)
    if kind is int and isinstance(value, bool):
        raise TypeError("a truth value where a number belongs")
    return value


def _given(f: Field[Any], value: dict[str, Any]) -> bool:
    """Is it there? A field that has a default may be missing: an older dtlint did not know it."""
    return f.name in value or (f.default is MISSING and f.default_factory is MISSING)


def _expect(value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} found where another type belongs")
