"""Static findings beside what a run saw on their lines: confirmed, not seen, refuted, or stale.

Evidence of a finding are the operators that ran on its lines; where it says that a call leads to an operator elsewhere, on
the lines of that. What counts as what, by what a rule is about:

- *Operands that torch refuses* (DT207, DT211, DT3xx, where the finding says that it raises): confirmed if an operator there
  raised for its dtypes.
- *Dtypes that meet* (other DT3xx): confirmed if an operator there was given tensors of different floating dtypes, or was
  promoted, or float64 appeared.
- *Range and precision* (DT4xx): confirmed by what went wrong there in the run: an overflow, a NaN, a pole, a fully masked
  row, values that wrapped around, a total that stalled, an epsilon that was 0 in the dtype of the result; a loss that is said
  to be computed in half (DT407), by an operator that computed in it.
- *Casts* (DT1xx): confirmed if a cast that the program asks for gave one of the dtypes that the finding names.
- *Autocast* (other DT2xx): confirmed is none of them; what the lines ran is told.
- Deprecated names, settings of frameworks, comments (DT5xx, DT6xx, DT8xx) are nothing that operators show.

A finding is refuted if operators ran there, none raised for its dtypes, and their dtypes exclude what it says: all dtypes
that it names are known, and none of these was among the operands and results; or it says that different floating dtypes
meet, and each operator with two tensors or more was given one floating dtype alone. What holds under an assumption, or for
an input that nothing in view gives, is never refuted: the run had other inputs. Nor is anything refuted by a record that
leaves out steps or modules, or that names parts of the program which the trace did not see. That nothing went wrong in one run refutes
nothing: then the finding is not seen.

A finding is stale if the file has changed since the run, and none of the lines that ran is certainly one of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.diagnostic import InRun, RunVerdict
from dtlint.dtypes.dtype import FLOATING
from dtlint.trace.schema import VANISHES
from dtlint.trace.words import times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.diagnostic import Diagnostic, Location
    from dtlint.trace.located import InFile, Located
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import DtypeError, Entry, Event

__all__ = ["counted", "with_verdicts"]

_RAISING = frozenset({"DT207", "DT211"})
_GONE_WRONG = {
    "overflow": frozenset({"DT401", "DT402", "DT406", "DT407", "DT408", "DT409", "DT417"}),
    "invalid": frozenset({"DT403", "DT404", "DT405", "DT406", "DT407", "DT408", "DT409", "DT417"}),
    "pole": frozenset({"DT403", "DT404"}),
    "masked-row": frozenset({"DT401", "DT405"}),
}
"""The findings that each kind of event confirms."""
_BORN = {
    "overflow": "overflow",
    "invalid": "NaN",
    "pole": "pole",
    "masked-row": "fully masked row",
    "came-in": "NaN or inf that came in",
}
_DTYPE = re.compile(r"\b(?:bfloat16|float(?:16|32|64)|u?int(?:8|16|32|64)|bool|complex(?:64|128)|float8_e\w+)\b")
_HALF = re.compile(r"\bhalf\b")
_OPS = {"_to_copy": "to", "copy_": "copy_"}
_MOST_TOLD = 2
"""Groups of operators of one line that are told."""


def with_verdicts(diagnostics: Iterable[Diagnostic], located: Located) -> list[Diagnostic]:
    """The diagnostics, each with what the run says of it."""
    return [replace(one, in_run=_of(one, located)) for one in diagnostics]


def counted(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 confirmed, 1 refuted`, of those that have a verdict."""
    counts = Counter(one.in_run.verdict for one in diagnostics if one.in_run is not None)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in RunVerdict if counts[verdict])


class _Seen:
    """What ran on some lines."""

    def __init__(self, record: TraceRecord, places: set[int]) -> None:
        self.entries: list[Entry] = [one for one in record.entries if one.place in places and one.count]
        self.events: list[Event] = [one for one in record.events if one.place in places]
        self.errors: list[DtypeError] = [one for one in record.errors if one.place in places]

    @property
    def operands(self) -> Iterator[list[str]]:
        """The dtypes of the tensors that each operator of the forward was given, numbers in tensors aside."""
        for entry in self.entries:
            if entry.phase == "forward":
                yield [one.dtype for one in entry.inputs if not one.zero_dim]

    @property
    def dtypes(self) -> frozenset[str]:
        """All dtypes of operands and results."""
        found = {operand.dtype for entry in self.entries for operand in entry.inputs}
        found |= {operand.dtype for error in self.errors for operand in error.operands}
        return frozenset(found | {entry.output for entry in self.entries if entry.output})

    @property
    def largest(self) -> float | None:
        """The largest finite magnitude of the results, if any was judged."""
        return max((entry.reach for entry in self.entries if entry.reach), default=None)

    def text(self) -> str:
        """What ran, in words."""
        parts = []
        groups: Counter[tuple[str, tuple[str, ...], str]] = Counter()
        for entry in self.entries:
            if entry.phase == "forward":
                given = tuple(dict.fromkeys(one.dtype for one in entry.inputs))
                groups[_OPS.get(entry.op, entry.op.strip("_")), given, entry.output or ""] += entry.count
        for (op, given, output), count in groups.most_common(_MOST_TOLD):
            dtypes = " and ".join(given)
            parts.append(f"`{op}` {f'of {dtypes} ' * bool(dtypes)}gave {output or 'no tensor'} {times(count)}")
        if len(groups) > _MOST_TOLD:
            more = len(groups) - _MOST_TOLD
            parts.append(f"{more} other operator{'s' * (more > 1)}")
        if self.largest is not None:
            parts.append(f"up to {self.largest:.3g}")
        for kind, births in Counter(one.kind for one in self.events).items():
            parts.append(f"{_BORN.get(kind, kind)} born {times(births)}")
        parts += [f"it raised: {error.message}" for error in self.errors[:1]]
        return "; ".join(parts)


def _of(diagnostic: Diagnostic, located: Located) -> InRun:
    here = _where(diagnostic)
    file = located.of(here.path) if here.cell is None else None
    if file is None:
        return InRun(RunVerdict.NOT_SEEN, "the run had no operator in this file")
    seen = _Seen(located.record, _places(file, here))
    if not seen.entries and not seen.errors:
        if file.stale:
            return InRun(RunVerdict.STALE, "the file has changed since the run; trace it again")
        return InRun(RunVerdict.NOT_SEEN, "the run had no operator on this line")
    elsewhere = "" if here is diagnostic.location else f"at {here.path}:{here.span.line} "
    births = len(seen.events)
    is_whole = not _is_partial(located.record)
    return InRun(
        _verdict(diagnostic, seen, is_whole), elsewhere + seen.text(), tuple(sorted(seen.dtypes)), seen.largest, births
    )


def _where(diagnostic: Diagnostic) -> Location:
    """Where the operator is that a finding is about: at the end of a call that leads to it, or where it stands."""
    message = diagnostic.message.lower()
    if message.startswith("this call leads to"):
        for note in diagnostic.notes:
            if note.step is None and message.endswith(note.message.lower()):
                return note.location
    return diagnostic.location


def _places(file: InFile, here: Location) -> set[int]:
    """The places on a finding's lines: the very expression, or those within it or around it, if there are such, or else
    all of them."""
    span = here.span
    exact = {number for number, where in file.places.items() if where == span}
    if exact:
        return exact
    on_lines = {
        number: where
        for number, where in file.places.items()
        if where.line <= span.end_line and span.line <= where.end_line
    }
    near = {number for number, where in on_lines.items() if span.contains(where) or where.contains(span)}
    return near or set(on_lines)


def _verdict(diagnostic: Diagnostic, seen: _Seen, is_whole: bool) -> RunVerdict:
    if _confirms(diagnostic, seen):
        return RunVerdict.CONFIRMED
    return RunVerdict.REFUTED if is_whole and _refutes(diagnostic, seen) else RunVerdict.NOT_SEEN


def _is_partial(record: TraceRecord) -> bool:
    """May a line have run with other dtypes than the record shows?"""
    unseen = any(not (one.made_up_for or one.by_design) for one in record.unseen)
    return bool(record.left_out or record.covers) or unseen


def _confirms(diagnostic: Diagnostic, seen: _Seen) -> bool:
    code, family = diagnostic.code, diagnostic.code[:3]
    named = _named(diagnostic.message)
    if code in _RAISING or (family == "DT3" and "raises" in diagnostic.message):
        return any(not error.too_large for error in seen.errors)
    if family == "DT3":
        float64 = "float64" in named and any(entry.finding.startswith("float64") for entry in seen.entries)
        return float64 or any(entry.finding == "promoted" for entry in seen.entries) or _meet(seen)
    if family == "DT4":
        vanished = code == "DT403" and any(_vanishes(entry) for entry in seen.entries)
        too_large = code == "DT402" and any(error.too_large for error in seen.errors)
        wrapped = code == "DT416" and any(entry.wrapped for entry in seen.entries)
        stalled = code in ("DT412", "DT413") and any(entry.stalled for entry in seen.entries)
        computed = code == "DT407" and any(_computes(entry, named) for entry in seen.entries)
        return (
            vanished
            or too_large
            or wrapped
            or stalled
            or computed
            or any(code in _GONE_WRONG.get(event.kind, ()) for event in seen.events)
        )
    if family == "DT1":
        return any(entry.author == "asked" and entry.output in named and _casts(entry, code) for entry in seen.entries)
    return False


def _casts(entry: Entry, code: str) -> bool:
    """Did a cast change the dtype, and where a rule is about floating tensors, of one?"""
    given = {one.dtype for one in entry.inputs}
    return not given <= {entry.output} and (code != "DT103" or not given.isdisjoint(FLOATING))


def _vanishes(entry: Entry) -> bool:
    """Was a number among the operands that is 0 in the float16 of the result?"""
    return entry.output == "float16" and entry.number is not None and 0 < abs(entry.number) <= VANISHES


def _computes(entry: Entry, dtypes: frozenset[str]) -> bool:
    """Did an operator of the forward take and give one of these dtypes?"""
    return entry.phase == "forward" and entry.output in dtypes and any(one.dtype in dtypes for one in entry.inputs)


def _meet(seen: _Seen) -> bool:
    """Was an operator given tensors of different floating dtypes?"""
    return any(len(FLOATING.intersection(given)) > 1 for given in seen.operands)


def _refutes(diagnostic: Diagnostic, seen: _Seen) -> bool:
    """Do the dtypes of what ran exclude what the finding says?"""
    if diagnostic.code[:3] not in ("DT1", "DT3", "DT4") or diagnostic.conditional or seen.errors:
        return False
    if diagnostic.message.startswith("Under ") or not seen.dtypes:
        return False
    named = _named(diagnostic.message)
    if named and named.isdisjoint(seen.dtypes):
        return True
    given = [one for one in seen.operands if len(one) > 1]
    mismatch = diagnostic.code in _MISMATCHES and len(FLOATING & named) > 1
    return mismatch and bool(given) and all(len(FLOATING.intersection(one)) == 1 for one in given)


_MISMATCHES = frozenset({"DT301", "DT302", "DT303"})
"""Findings that different floating dtypes meet in one operator."""


def _named(message: str) -> frozenset[str]:
    """The dtypes that a message names; `half` is either of two."""
    half = ("float16", "bfloat16") if _HALF.search(message) else ()
    return frozenset((*_DTYPE.findall(message), *half))
