"""A code frame: the lines around a diagnostic with the span underlined and the notes beside it, as rustc draws it.

Pure layout. The result is lines of pieces, each with a style; who prints decides what a style looks like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dtlint.diagnostic import Diagnostic, Location, Severity, Span
from dtlint.report.legible import legible, place, width

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["STYLES", "Line", "Style", "frame"]

Style = Literal["plain", "strong", "error", "warning", "info", "gutter", "note"]

STYLES: dict[Severity, Style] = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "info"}

Line = list[tuple[str, Style]]
"""One line of output: texts, each with its style."""

LONGEST = 240
"""Characters of a source line that a frame shows. A longer line is cut around the span."""

LEAD = 40
"""Characters that a cut line keeps before the span."""


def frame(diagnostic: Diagnostic) -> Iterator[Line]:
    """The frame of a diagnostic: its arrow line, its source lines with marks, and the notes that lie elsewhere."""
    number = len(str(max((line for line, _ in diagnostic.lines), default=0)))
    margin: tuple[str, Style] = (f"{' ' * number} |", "gutter")
    yield [(f"{' ' * number}--> ", "gutter"), (place(diagnostic.location), "plain")]
    if diagnostic.lines:
        yield [margin]
        yield from _source(diagnostic, number)
        yield [margin]
    for note in diagnostic.notes:
        if not _in_frame(note.location, diagnostic):
            yield [(f"{' ' * number}::: ", "gutter"), (f"{place(note.location)}: {legible(note.message)}", "plain")]


def _source(diagnostic: Diagnostic, number: int) -> Iterator[Line]:
    span, style = diagnostic.location.span, STYLES[diagnostic.severity]
    window = _window(span)
    margin: tuple[str, Style] = (f"{' ' * number} | ", "gutter")
    lines = _without_blank_edges(diagnostic)
    expected = lines[0][0]
    for line, text in lines:
        if line != expected:
            yield [("...", "gutter")]
        expected = line + 1
        yield _trimmed(
            [(f"{line:>{number}} | ", "gutter"), (_rail(span, line, text), style), (window.cut(text), "plain")]
        )
        if turn := _turn(span, line, text, window):
            yield [margin, (turn, style)]
        for mark in _marks(diagnostic, line, text):
            yield [margin, (_rail_below(span, line), style), *_underline(mark, text, window)]


def _without_blank_edges(diagnostic: Diagnostic) -> list[tuple[int, str]]:
    """The lines of the frame, less the empty ones at its edges that say nothing."""
    span, lines = diagnostic.location.span, list(diagnostic.lines)
    while len(lines) > 1 and not lines[0][1].strip() and lines[0][0] < span.line:
        lines.pop(0)
    while len(lines) > 1 and not lines[-1][1].strip() and lines[-1][0] > span.end_line:
        lines.pop()
    return lines


@dataclass(frozen=True, slots=True)
class _Window:
    """The part of the source lines that a frame shows; the same for all of them, so that they stay aligned."""

    start: int

    def cut(self, text: str) -> str:
        """The visible part of a line, with an ellipsis where something is missing."""
        text = text.rstrip("\r\n")
        before = "…" if self.start and text else ""
        after = "…" if len(text) > self.start + LONGEST else ""
        return before + legible(text[self.start : self.start + LONGEST]) + after

    def column(self, text: str, column: int) -> int:
        """The terminal column, from 0, in which a character of the line shows."""
        visible = text[self.start : max(self.start, min(column, self.start + LONGEST))]
        return width(legible(visible)) + (1 if self.start else 0)


def _window(span: Span) -> _Window:
    end = span.end_column if span.line == span.end_line else span.column
    return _Window(0 if end <= LONGEST else max(0, span.column - LEAD))


# A span of several lines has no underline but a rail on its left. Where the span begins its line, the rail opens with
# a slash; where it begins within a line, and where it ends, the rail turns and leads to the character.


def _rail(span: Span, line: int, text: str) -> str:
    if span.line == span.end_line:
        return ""
    if line == span.line:
        return "/ " if _begins_line(span, text) else "  "
    return "| " if span.line < line <= span.end_line else "  "


def _turn(span: Span, line: int, text: str, window: _Window) -> str:
    if span.line == span.end_line:
        return ""
    if line == span.line and not _begins_line(span, text):
        return f" {'_' * (window.column(text, span.column) + 1)}^"
    if line == span.end_line:
        return f"|{'_' * max(1, window.column(text, span.end_column))}^"
    return ""


def _rail_below(span: Span, line: int) -> str:
    if span.line == span.end_line:
        return ""
    return "| " if span.line <= line < span.end_line else "  "


def _begins_line(span: Span, text: str) -> bool:
    return not text[: span.column].strip()


@dataclass(frozen=True, slots=True)
class _Mark:
    """An underline beneath part of one line."""

    start: int
    stop: int
    sign: str
    style: Style
    label: str = ""


def _marks(diagnostic: Diagnostic, line: int, text: str) -> list[_Mark]:
    """The underlines below one line: carets for the span itself, dashes with a label for each note."""
    marks = []
    span = diagnostic.location.span
    if span.line == line == span.end_line:
        marks.append(_Mark(span.column, span.end_column, "^", STYLES[diagnostic.severity]))
    for note in diagnostic.notes:
        there = note.location.span
        if there.line == line and _in_frame(note.location, diagnostic):
            stop = there.end_column if there.end_line == line else len(text.rstrip())
            marks.append(_Mark(there.column, stop, "-", "note", note.message))
    return sorted(marks, key=lambda mark: (mark.start, mark.sign))


def _underline(mark: _Mark, text: str, window: _Window) -> Line:
    start = window.column(text, mark.start)
    length = max(1, window.column(text, mark.stop) - start)
    label = f" {legible(mark.label)}" if mark.label else ""
    return [(" " * start, "plain"), (mark.sign * length + label, mark.style)]


def _in_frame(location: Location, diagnostic: Diagnostic) -> bool:
    here = diagnostic.location
    same_text = (location.path, location.cell) == (here.path, here.cell)
    return same_text and any(line == location.span.line for line, _ in diagnostic.lines)


def _trimmed(line: Line) -> Line:
    """Without the blanks that an empty source line would leave at the end of the output line."""
    text = "".join(piece for piece, _ in line)
    surplus = len(text) - len(text.rstrip())
    while surplus:
        piece, style = line.pop()
        kept = piece[: max(0, len(piece) - surplus)]
        surplus -= len(piece) - len(kept)
        if kept:
            line.append((kept, style))
    return line
