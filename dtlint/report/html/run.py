"""A trace record as the page has it: answers, modules over the steps, magnitudes, casts, the scaler, memory."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.report.html.findings import frame_of
from dtlint.report.legible import legible
from dtlint.report.trace_text import AUTHORS, answers
from dtlint.trace.schema import NO_FILE
from dtlint.trace.series import fewer
from dtlint.trace.words import in_package, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Event, Scaler

__all__ = ["run_of"]

Json = dict[str, object]

MOST_RUNS = 150_000
"""Of the series: what makes 3 MB or less. Columns are merged until there are no more."""

MOST_ROWS = 2000
"""Of a table; those that are left out are the least, and counted."""

MOST_HISTOGRAMS = 6000

FINDING = re.compile(r"  (?:error|warning|info)\[(?P<code>\w+)\] (?P<place>.*)")
"""How the screen tells of a finding."""

NONFINITE = "Non-finite values:"

MORE = re.compile(r"  and (?P<count>[\d,]+) more: ")
"""How it tells of those that it leaves out, which the page has."""

KINDS = {
    "promoted": "promotion",
    "float64": "became float64",
    "float64-data": "came in as float64",
    "int-to-float": "integer to float",
}

FORMATS = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16")
"""Whose ranges magnitudes are held against."""


def run_of(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> Json:
    """All of the page's data but for the findings, to which answers refer by their numbers."""
    lines, fewer_lines = _most(_lines(record))
    casts, fewer_casts = _most(_casts(record))
    return {
        "title": legible(" ".join(record.argv)) or "A run",
        "facts": _facts(record),
        "steps": record.steps,
        "verdict": _verdict(record, diagnostics),
        "answers": _answers(record, diagnostics),
        "events": [_event(record, event) for event in sorted(record.events, key=lambda event: event.step)],
        "series": _series(record),
        "lines": lines,
        "histograms": [
            [one.what, one.module, one.dtype, one.zeros, one.first, one.counts]
            for one in record.histograms[:MOST_HISTOGRAMS]
        ],
        "ranges": [_range(name) for name in FORMATS],
        "casts": casts,
        "left_out": [fewer_lines, fewer_casts],
        "scaler": _scaler(record.scaler) if record.scaler is not None else None,
        "memory": [[held.what, held.dtype, held.nbytes] for held in record.memory],
        "unseen": [[legible(one.what), one.count, _at(record, one.place)] for one in record.unseen],
    }


def _facts(record: TraceRecord) -> list[list[object]]:
    facts: list[tuple[str, object]] = [
        ("steps", record.steps),
        ("steps traced", record.traced if record.traced != record.steps else None),
        ("operators", record.operators),
        ("ranks", f"{len(record.ranks)} of {record.world}" if record.ranks else None),
        ("with", ", ".join(record.narrowed) or None),
        ("simulated", record.simulated or None),
        ("torch", record.torch.partition("+")[0] or "not imported"),
        ("Python", record.python),
        ("exit code", record.exit_code or None),
    ]
    return [[name, value] for name, value in facts if value is not None]


def _verdict(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> list[str]:
    """What stands first where there is no error and no warning: its tone, what it is, and a sentence."""
    titles = [title for (title, _), _ in answers(record, diagnostics)]
    if not record.operators:
        return ["plain", "Nothing was traced", titles[0].removeprefix("dtlint trace: ")]
    if record.exit_code:
        return ["plain", f"The program ended with exit code {record.exit_code}", "Its dtypes are not known to be why"]
    told = next((title for title in titles if title.startswith(NONFINITE)), titles[0])
    if told.startswith(f"{NONFINITE} none"):
        return ["ok", "Nothing went wrong", told]
    return ["plain", "No error and no warning", told]


def _answers(record: TraceRecord, diagnostics: Sequence[Diagnostic]) -> list[Json]:
    """The screen: each answer with its tone, and what stands below it, with the finding that it tells of."""
    numbers: dict[tuple[str, str], int] = {}
    for number, d in enumerate(diagnostics):
        numbers.setdefault((d.code, f"{in_package(d.location.path)}:{d.location.span.line}"), number)
    told: list[Json] = []
    body = list(answers(record, diagnostics))[1:-1]  # the first tells facts, the last counts findings
    for (title, _), below in body:
        details: list[list[object]] = []
        tones = set()
        for text, style in below:
            found = FINDING.fullmatch(text)
            if found is not None:
                where = found["place"].partition(", called from ")[0]
                details.append([found["code"], found["place"], numbers.get((found["code"], where)), style])
                tones.add(style)
            elif (more := MORE.match(text)) is not None:
                details.append([f"and {more['count']} more", "more"])
            else:
                details.append([text.strip()])
        tone = next((tone for tone in ("error", "warning", "info") if tone in tones), "plain")
        told.append({"title": title, "tone": tone, "details": details})
    return told


def _event(record: TraceRecord, event: Event) -> Json:
    at = None if event.place is None else record.places[event.place]
    entry = None if event.entry is None else record.entries[event.entry]
    module = at.module if at is not None else ""
    if entry is None and event.subject and not module:
        module = event.subject.rpartition(".")[0]
    return {
        "step": event.step,
        "module": module,
        "phase": "backward" if entry is not None and entry.phase == "backward" else "forward",
        "kind": "as the GradScaler expects" if event.by_scaler else event.kind,
        "what": legible(record.what(event)),
        "place": _at(record, event.place),
        "dtype": event.dtype,
        "inputs": record.operands(event),
        "times": event.times,
        "fate": event.fate,
        "expected": event.by_scaler or record.harmless(event),
        "rank": event.rank,
        "frame": frame_of(record.sources, at),
    }


def _series(record: TraceRecord) -> Json | None:
    if record.series is None:
        return None
    series = fewer(record.series, MOST_RUNS)
    return {
        "starts": series.starts,
        "rows": [[row.module, int(row.phase == "backward"), row.dtypes, row.runs] for row in series.rows],
    }


def _most(rows: Iterable[tuple[float, Json]]) -> tuple[list[Json], int]:
    """The rows of the largest numbers, and how many others there are."""
    ordered = [row for _, row in sorted(rows, key=lambda pair: -pair[0])]
    return ordered[:MOST_ROWS], max(len(ordered) - MOST_ROWS, 0)


def _lines(record: TraceRecord) -> Iterator[tuple[float, Json]]:
    """The largest magnitudes, by operator and line of source."""
    judged = [entry for entry in record.entries if entry.output and _floating(entry.output) and entry.reach > 0]
    for group in record.by_line(judged):
        reach = max(entry.reach for entry in group)
        if math.isfinite(reach):
            yield reach, {**_operator(record, group), "to": group[0].output, "reach": reach}


def _casts(record: TraceRecord) -> Iterator[tuple[float, Json]]:
    """Casts and promotions, by line of source, with their calls."""
    for group in record.by_line([entry for entry in record.entries if entry.author or entry.finding]):
        entry = group[0]
        operands = entry.inputs[-1:] if entry.author else entry.inputs
        wider = entry.inputs[entry.culprit] if entry.culprit is not None and not entry.author else None
        sampled, calls = sum(e.sampled for e in group), sum(e.count for e in group)
        row = {
            **_operator(record, group),
            "kind": f"cast {AUTHORS[entry.author]}" if entry.author else KINDS[entry.finding],
            "from": " and ".join(dict.fromkeys(operand.dtype for operand in operands)),
            "to": entry.output,
            "bytes": sum(e.nbytes for e in group),
            "lost": sum(e.lost for e in group) / sampled if sampled else None,
            "undone": sum(e.round_trips for e in group),
            "by": legible(record.origin(wider)) if wider is not None else "",
        }
        yield calls, row


def _operator(record: TraceRecord, group: Sequence[Entry]) -> Json:
    """Of entries on one line: what ran, where, in which modules, how often."""
    entry = group[0]
    at = record.places[entry.place]
    modules = list(dict.fromkeys(record.places[e.place].module for e in group))
    return {
        "op": entry.op.lstrip("_"),
        "phase": entry.phase,
        "text": legible(shorten(at.expression, 60).strip("`")),
        "place": _at(record, entry.place),
        "modules": modules[:3],
        "more": max(len(modules) - 3, 0),
        "calls": sum(e.count for e in group),
        "bad": sum(e.nonfinite - e.meant for e in group),
        "frame": frame_of(record.sources, at),
    }


def _at(record: TraceRecord, place: int | None) -> str:
    if place is None:
        return ""
    at = record.places[place]
    return "autograd" if at.file == NO_FILE else f"{legible(in_package(at.file))}:{at.line}"


def _scaler(scaler: Scaler) -> Json:
    return {
        "updates": scaler.updates,
        "skipped": scaler.skipped,
        "scale": _finite(scaler.scale),
        "lowest": _finite(scaler.lowest),
        "changes": [[change.update, change.scale] for change in scaler.changes if math.isfinite(change.scale)],
        "skips": [skip.step for skip in scaler.skips],
    }


def _finite(number: float | None) -> float | None:
    """JSON has no other numbers."""
    return number if number is not None and math.isfinite(number) else None


def _range(name: str) -> Json:
    """The exponents of a dtype: of its smallest subnormal, its smallest normal and its largest number."""
    info = DTYPES[name]
    return {
        "name": name.removesuffix("fn"),
        "smallest": math.log2(info.smallest),
        "normal": math.log2(info.tiny),
        "top": math.log2(info.max),
        "max": info.max,
    }


def _floating(dtype: str) -> bool:
    info = DTYPES.get(dtype)
    return info is not None and info.category is Category.FLOAT
