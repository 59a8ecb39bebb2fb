"""The one currency of both halves: what was found, where, how bad it is, and what would mend it.

Lines count from 1, columns from 0 in characters, and an end is exclusive: the units of `str` slices, and of libcst.
A report that counts columns from 1 adds the one itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

__all__ = ["Applicability", "Diagnostic", "Edit", "Fix", "InRun", "Location", "Note", "RunVerdict", "Severity", "Span"]


class Severity(Enum):
    """How bad it is if the diagnostic is right. Information alone does not fail a run."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Applicability(Enum):
    """How far a fix can be trusted; the words are Ruff's."""

    NONE = "none"
    DISPLAY = "display-only"
    """Shown, never applied: it sketches the way and needs a person."""
    UNSAFE = "unsafe"
    """Applied with --unsafe-fixes: right as a rule, but it may change what the program does."""
    SAFE = "safe"
    """Applied with --fix: the program behaves as before, or does what it was plainly meant to."""


class Span(NamedTuple):
    """A stretch of source text, from (line, column) up to but without (end_line, end_column)."""

    line: int
    column: int
    end_line: int
    end_column: int

    def contains(self, other: Span) -> bool:
        """Does `other` lie wholly within this span?"""
        return (self.line, self.column) <= (other.line, other.column) and (other.end_line, other.end_column) <= (
            self.end_line,
            self.end_column,
        )


class Location(NamedTuple):
    """A span in a file, as its reader sees it."""

    path: str
    span: Span
    cell: int | None = None
    """In a notebook: the cell, counted from 1 over all cells; the span's lines are then lines of that cell."""
    file_line: int | None = None
    """In a notebook: the line of the .ipynb file itself, for tools that know only files."""

    @property
    def line_in_file(self) -> int:
        """The line of the file on disk at which the span starts."""
        return self.span.line if self.file_line is None else self.file_line


class Note(NamedTuple):
    """A second place that explains the first: `cast to float32 here`."""

    location: Location
    message: str
    step: int | None = None
    """Its place, from 1, among the steps that lead from what a function is given to the first place; None: it is none."""


class Edit(NamedTuple):
    """Replace the text of `span` by `text`. An empty span inserts, an empty text deletes."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all of them are applied, or none."""

    message: str
    """What the fix does, in the imperative: `Use torch.amp.autocast("cuda")`."""
    edits: tuple[Edit, ...]
    applicability: Applicability
    orphans: tuple[str, ...] = ()
    """Names that the edits no longer use; an import that only served them is removed with the fix."""


class RunVerdict(Enum):
    """What a run says of a static finding; `trace.verdicts` defines when."""

    CONFIRMED = "confirmed"
    NOT_SEEN = "not seen"
    REFUTED = "refuted"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class InRun:
    """A static finding beside what a run saw on its lines."""

    verdict: RunVerdict
    saw: str
    """What ran there, in words, or why nothing is known."""
    dtypes: tuple[str, ...] = ()
    """Of the operands and results there."""
    largest: float | None = None
    """The largest finite magnitude of the results."""
    births: int = 0
    """Places in the run at which values first were not finite there."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of one rule, complete: a report needs neither the source nor the rule to print it."""

    code: str
    name: str
    severity: Severity
    message: str
    """One sentence, without a full stop, that says what happens."""
    location: Location
    help: str = ""
    """What to do about it, in one line."""
    notes: tuple[Note, ...] = ()
    """Second places; under an assumption the witness is among them: the steps to the place, in their order."""
    fix: Fix | None = None
    lines: tuple[tuple[int, str], ...] = ()
    """The source lines that a code frame shows, each with its number; lines of the cell in a notebook."""
    noqa_line: int | None = None
    """The line on which a suppression comment for this diagnostic belongs."""
    conditional: bool = False
    """Does it rest on what nothing in view says, such as a half input? Only `--preview` reports it then."""
    in_run: InRun | None = None
    """What a run says of it, where one is named."""
    under: tuple[str, ...] = ()
    """The assumptions about inputs and weights that it rests on, by name."""

    @property
    def sort_key(self) -> tuple[str, int, Span, str, str]:
        """Diagnostics print by file, then place, then code."""
        return (self.location.path, self.location.cell or 0, self.location.span, self.code, self.message)
