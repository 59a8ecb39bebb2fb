"""A trace record as one screen of text: what went wrong first, then what it cost, then what was not seen.

The order is that of the questions a person comes with; everything else is in the record.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import DTYPES
from dtlint.report.colour import write_lines
from dtlint.report.frame import STYLES
from dtlint.report.legible import legible
from dtlint.report.shadow_text import local_errors
from dtlint.trace.balance import work
from dtlint.trace.record import CALLED
from dtlint.trace.words import in_package, listed, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.diagnostic import Diagnostic
    from dtlint.report.frame import Style
    from dtlint.trace.record import TraceRecord

__all__ = ["AUTHORS", "answers", "write_trace"]

MOST = 4
"""Findings per section; the rest is counted."""

MOST_INFO = 2
"""Those of them that are mere information."""

NEAR = 0.01
"""A share of float16's limit from which a value is worth a line."""

LIMIT = DTYPES["float16"].max

BORN = {"overflow": "DT901", "invalid": "DT902", "pole": "DT903", "masked-row": "DT904", "came-in": "DT909"}
"""The rule that speaks of each kind of event."""

LAST = (sys.maxsize, 0)
"""In place of a step and a number in it: after all others."""

FLOATS = frozenset(("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"))
"""A cast between these costs precision or memory; one from integers is how data becomes floats."""

Line = tuple[str, "Style"]
"""A line has one style here."""


def write_trace(
    record: TraceRecord, diagnostics: Sequence[Diagnostic], stream: TextIO, everything: bool = False
) -> None:
    """Write the screen, and below it all that the record holds if asked. Coloured on a terminal that wants it."""
    write_lines(([line] for line in _screen(record, diagnostics)), stream)
    if everything:
        from dtlint.report.trace_all import sections

        write_lines(([line] for line in sections(record)), stream)


def answers(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[tuple[Line, list[Line]]]:
    """The lines of the screen, each with those that stand below it."""
    told: list[tuple[Line, list[Line]]] = []
    for line in _screen(record, diagnostics):
        if line[0].startswith("  ") and told:
            told[-1][1].append(line)
        else:
            told.append((line, []))
    yield from told


def _screen(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[Line]:
    """The lines of the screen."""
    if not record.torch and not record.unseen:
        yield "dtlint trace: torch was not imported, so there was nothing to trace", "strong"
        return
    if not record.torch:
        yield "dtlint trace: nothing was traced", "strong"
        yield from _unseen(record)
        return
    places = {(record.places[entry.place].file, record.places[entry.place].line) for entry in record.entries}
    ranks = f"{_count(len(record.ranks), 'rank')} of {record.world}, " if record.ranks else ""
    by_hand = not record.steps and any(entry.phase == "backward" for entry in record.entries)
    how = " (no optimizer stepped; dtlint.step() marks steps)" if by_hand else ""
    ran = f"{ranks}{_count(record.steps, 'optimizer step')}{how}, {_count(record.operators, 'operator')}"
    yield f"dtlint trace: {ran} at {_count(len(places), 'line')} of source", "strong"
    if record.covers and not record.operators and not record.left_out:
        near = f"; those that ran are {listed(record.ran)}" if record.ran else ""
        yield f"No module that ran is called {' or '.join(record.covers)}{near}", "strong"
    if record.plan is not None:
        from dtlint.plan.verdict import verdict
        from dtlint.report.plan_text import verdict_lines

        yield from verdict_lines(record, verdict(record))
    fatal = [d for d in diagnostics if d.severity is Severity.ERROR]
    yield from _section(fatal, ("DT914",), "The program ended by a dtype error")
    yield from _nonfinite(record, diagnostics)
    yield from _scaler(record, diagnostics)
    yield from _section(diagnostics, ("DT918",), "Gradients clipped with their scale")
    yield from _section(diagnostics, ("DT912", "DT917"), "Weights and totals that do not move")
    yield from _section(diagnostics, ("DT916",), "Integers that do not hold their values")
    yield from _work(record)
    yield from _section(diagnostics, ("DT913",), "Work that autocast missed")
    if record.timing is not None:
        from dtlint.report.time_text import time_lines

        yield from time_lines(record)
    yield from _casts(record, diagnostics)
    yield from _section(diagnostics, ("DT905", "DT906"), "Promotions")
    yield from _nearest(record, diagnostics)
    yield from _section(diagnostics, ("DT910",), "Lost to zero")
    yield from local_errors(record)
    caught = [d for d in diagnostics if d.severity is not Severity.ERROR]
    yield from _section(caught, ("DT914",), "Dtype errors that the program caught")
    yield from _unseen(record)
    yield from _summary(record, diagnostics)


def _count(number: int, noun: str) -> str:
    """`3 casts`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _nonfinite(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[Line]:
    found = [d for d in diagnostics if d.code in BORN.values()]
    if not found:
        yield f"Non-finite values: {_none_found(record)}", "plain"
        return
    first: dict[tuple[str, str, int], tuple[int, int]] = {}
    for number, event in enumerate(record.events):
        if event.place is not None:
            at = record.places[event.place]
            key = (BORN.get(event.kind, ""), at.file, at.line)
            first[key] = min(first.get(key, LAST), (event.step, number))
    order = list(Severity)
    found.sort(
        key=lambda d: (
            order.index(d.severity),
            first.get((d.code, d.location.path, d.location.span.line), LAST),
        )
    )
    yield from _section(found, list(BORN.values()), "Non-finite values, where they began")


def _none_found(record: TraceRecord) -> str:
    if not record.operators:
        options = f"{record.left_out}{' --module' * bool(record.covers)}".split()
        see = [word for word in options if word.startswith("--")]
        return f"not looked for, as no operator was traced{': see ' * bool(see)}{listed(see) if see else ''}"
    if record.watched == []:
        return "not looked for, as only dtypes were traced"
    among = f" in {' or '.join(record.watched)}" if record.watched else ""
    within = " in what was traced" if record.covers else " in the steps that were traced" if record.left_out else ""
    beside = " outside compiled code" if any(unseen.in_graphs for unseen in record.unseen) else ""
    return f"none{among}{within}{beside} that the program did not mean"


def _section(diagnostics: Sequence[Diagnostic], codes: Sequence[str], title: str) -> Iterator[Line]:
    """The findings of some rules, the gravest first."""
    found = list({_told(d): d for d in diagnostics if d.code in codes}.values())
    if not found:
        return
    yield title + ":", "strong"
    grave = sum(d.severity is not Severity.INFO for d in found)
    told = min(grave or len(found), MOST if grave else MOST_INFO)
    for d in found[:told]:
        yield from _told(d)
        if d.severity is Severity.ERROR and d.help:
            yield f"    help: {legible(d.help)}", "plain"
    if len(found) > told:
        yield f"  and {len(found) - told} more: `--output-format concise` lists all", "plain"


def _told(d: Diagnostic) -> tuple[Line, Line]:
    """Two of one line that say the same are told once."""
    calls = (note.location for note in d.notes if note.message == CALLED)
    caller = next((f", called from {at.path}:{at.span.line}" for at in calls), "")
    place: Line = (
        f"  {d.severity.value}[{d.code}] {in_package(d.location.path)}:{d.location.span.line}{caller}",
        STYLES[d.severity],
    )
    return place, (f"    {legible(d.message)}", "plain")


def _scaler(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[Line]:
    scaler = record.scaler
    if scaler is None:
        return
    scale = f"the scale ended at {scaler.scale:g}" if scaler.scale is not None else ""
    if scaler.skipped == 0:
        yield f"GradScaler: {scaler.updates:,} steps, none skipped; {scale}", "plain"
        return
    found = [d for d in diagnostics if d.code == "DT907"]
    good = scaler.skipped < scaler.updates
    leading = f", {scaler.leading:,} of them before the first good one" if good else ""
    yield f"GradScaler: {scaler.skipped:,} of {scaler.updates:,} steps skipped{leading}; {scale}", "plain"
    for d in found:
        yield from _told(d)
    if not found and scaler.causes:
        yield f"  as usual while the scale finds its level; most from {_where(record, scaler.causes[0].event)}", "plain"


def _where(record: TraceRecord, event: int) -> str:
    born = record.events[event]
    if born.place is None:
        return legible(record.what(born))
    at = record.places[born.place]
    return f"{legible(record.what(born))} at {in_package(at.file)}:{at.line}"


def _work(record: TraceRecord) -> Iterator[Line]:
    flops = work(record)
    total = flops.total()
    if total:
        shares = ", ".join(f"{share / total:.0%} in {dtype}" for dtype, share in flops.most_common())
        yield f"Matrix products and convolutions: {shares} (share of {total:.3g} operations)", "plain"


def _casts(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[Line]:
    casts = [e for e in record.entries if e.author and e.output in FLOATS and e.inputs[-1].dtype in FLOATS]
    if not casts:
        return
    steps = record.looked_at
    by: Counter[str] = Counter()
    for entry in casts:
        by[entry.author] += entry.count
    authors = ", ".join(f"{count / steps:.3g} {AUTHORS[author]}" for author, count in by.most_common())
    per = "a step" if record.steps else "in all"
    if record.left_out and record.steps:  # a validation counts to the step after it, and few steps share it
        per = "for each step traced and what ran before it"
    each = " per step" if record.steps else ""
    moved = sum(entry.nbytes for entry in casts) / steps
    size = f", moving {_amount(moved)}{each}" if round(moved) else ""
    yield f"Casts: {sum(by.values()) / steps:.3g} {per}{size}: {authors}", "plain"
    yield from _section(diagnostics, ("DT908",), "Casts that undo a cast")


def _amount(nbytes: float) -> str:
    """`0.25 MB`; small ones in bytes."""
    return f"{nbytes / 1e6:.3g} MB" if nbytes >= 1e4 else _count(round(nbytes), "byte")


AUTHORS = {
    "asked": "asked for by the program",
    "autocast": "by autocast",
    "implicit": "inside operators",
    "backward": "in the backward",
}


def _nearest(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[Line]:
    if record.assume:
        reach: dict[tuple[str, int], float] = {}
        for entry in record.entries:
            at = record.places[entry.place]
            reach[at.file, at.line] = max(reach.get((at.file, at.line), 0.0), entry.reach)
        farthest = sorted(diagnostics, key=lambda d: -reach.get((d.location.path, d.location.span.line), 0.0))
        yield from _section(farthest, ("DT911",), f"Would not fit {record.assume}")
        return
    near = [entry for entry in record.entries if entry.output == "float16" and entry.reach > NEAR * LIMIT]
    if not near:
        return
    yield "Nearest to float16's limit of 65504:", "strong"
    seen: set[tuple[str, int]] = set()
    for entry in sorted(near, key=lambda entry: -entry.reach):
        at = record.places[entry.place]
        if (at.file, at.line) not in seen and len(seen) < MOST - 1:
            seen.add((at.file, at.line))
            module = within(at.module)
            scaled = "backward, scaled" if record.scaler is not None else "backward"
            phase = f" ({scaled})" if entry.phase == "backward" else ""
            op = {"_to_copy": "cast"}.get(entry.op, entry.op.lstrip("_").removesuffix("_backward"))
            yield f"  {entry.reach / LIMIT:4.0%} {op}{phase} {in_package(at.file)}:{at.line}{module}", "plain"


def _unseen(record: TraceRecord) -> Iterator[Line]:
    unseen = [u for u in record.unseen if not u.made_up_for]
    if unseen:
        more = [f"and {len(unseen) - MOST} more"] if len(unseen) > MOST else []
        told = [f"{legible(u.what)} ({u.count:,})" for u in unseen[:MOST]]
        yield f"Not seen: {'; '.join(told + more)}", "plain"


def _summary(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Iterator[Line]:
    # what was not seen has a line of its own, which tells no findings
    counts = Counter(d.severity.value for d in diagnostics if d.code != "DT915")
    words = [f"{counts[s]} {PLURAL[s] if counts[s] != 1 else s}" for s in ("error", "warning", "info") if counts[s]]
    steps = f" by `{record.left_out}`: the run had {_count(record.steps, 'step') if record.steps else 'no steps'}"
    nothing = "Nothing to report." if record.operators else f"Nothing was traced{steps * bool(record.left_out)}."
    ended = f" The program ended with exit code {record.exit_code}." if record.exit_code else ""
    yield (f"Found {', '.join(words)}." if words else nothing) + ended, "strong"


PLURAL = {"error": "errors", "warning": "warnings", "info": "info"}
