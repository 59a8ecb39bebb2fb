"""Findings as the page has them: each with its lines of source, cut into pieces where something is marked."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from dtlint.diagnostic import Span
from dtlint.report.frame import LEAD, LONGEST
from dtlint.report.full import TRUST
from dtlint.report.legible import legible, place, width
from dtlint.trace.record import AROUND
from dtlint.trace.words import in_package

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.schema import Place

__all__ = ["excerpt", "finding", "frame_of", "rules_of"]

Row = list[object]
"""A line of source: its number, its pieces with what each is marked as, and the labels below it."""

Mark = tuple[Span, str, str]
"""What is marked, as `main` or `note`, and its label."""


def finding(diagnostic: Diagnostic) -> dict[str, object]:
    """One finding."""
    here = diagnostic.location
    shown = {line for line, _ in diagnostic.lines}
    inside = [
        note
        for note in diagnostic.notes
        if (note.location.path, note.location.cell) == (here.path, here.cell) and note.location.span.line in shown
    ]
    marks: list[Mark] = [(here.span, "main", "")]
    marks += [(note.location.span, "note", legible(note.message)) for note in inside]
    fix = diagnostic.fix
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": legible(diagnostic.message),
        "help": legible(diagnostic.help) if not (fix and fix.message == diagnostic.help) else "",
        "fix": legible(fix.message) if fix else "",
        "trust": TRUST.get(fix.applicability, "") if fix else "",
        "path": in_package(legible(here.path)),
        "place": in_package(place(here)),
        "line": here.span.line,
        "frame": excerpt(diagnostic.lines, marks),
        "notes": [
            [in_package(place(note.location)), legible(note.message)] for note in diagnostic.notes if note not in inside
        ],
    }


def excerpt(lines: Sequence[tuple[int, str]], marks: Sequence[Mark]) -> list[Row]:
    """Lines of source, less empty ones at the edges; the first of the marks says which part of long ones is shown."""
    lines = list(lines)
    while lines and not lines[0][1].strip():
        lines.pop(0)
    while lines and not lines[-1][1].strip():
        lines.pop()
    span = marks[0][0]
    end = span.end_column if span.line == span.end_line else span.column
    start = 0 if end <= LONGEST else max(0, span.column - LEAD)
    return [[number, *_row(number, text.rstrip("\r\n"), marks, start)] for number, text in lines]


def frame_of(sources: Mapping[str, Mapping[str, str]], at: Place | None) -> list[Row]:
    """The lines around a place of a trace record, which is marked; none where they are not known.

    `sources` are the lines of files, by their numbers.
    """
    if at is None:
        return []
    known = sources.get(at.file, {})
    numbers = range(at.line - AROUND, at.end_line + AROUND + 1)
    lines = [(number, known[str(number)]) for number in numbers if str(number) in known]
    return excerpt(lines, [(Span(at.line, at.column, at.end_line, at.end_column), "main", "")])


def _row(number: int, text: str, marks: Iterable[Mark], start: int) -> tuple[list[list[str]], list[list[object]]]:
    stop = start + LONGEST
    parts: list[tuple[int, int, str]] = []
    labels: list[list[object]] = []
    for span, kind, label in marks:
        if not span.line <= number <= span.end_line:
            continue
        first = span.column if number == span.line else len(text) - len(text.lstrip())
        last = span.end_column if number == span.end_line else len(text)
        parts.append((max(first, start), min(max(last, first), stop), kind))
        if label and number == span.line:
            labels.append([width(legible(text[start:first])), label])
    cuts = sorted({start, min(stop, len(text)), *(at for first, last, _ in parts for at in (first, last))})
    pieces: list[list[str]] = []
    for one, other in pairwise(cuts):
        kind = _kind(one, parts)
        if pieces and pieces[-1][1] == kind:
            pieces[-1][0] += legible(text[one:other])
        else:
            pieces.append([legible(text[one:other]), kind])
    return pieces, labels


def _kind(at: int, parts: Iterable[tuple[int, int, str]]) -> str:
    kinds = {kind for first, last, kind in parts if first <= at < last}
    return "main" if "main" in kinds else "note" if kinds else ""


def rules_of(diagnostics: Iterable[Diagnostic], rules: Mapping[str, AnyRule]) -> dict[str, dict[str, str]]:
    """What the rules that found something are about, by code."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    return {code: dict(_rule(rules[code])) for code in codes if code in rules}


def _rule(rule: AnyRule) -> Iterator[tuple[str, str]]:
    from dtlint.document import document

    text = document(rule.load())
    yield "summary", text.summary
    for key, section in (("what", "What it does"), ("why", "Why it matters")):
        if section in text.sections:
            yield key, text.sections[section].strip()
