"""What a reading of a program tells: claims, notes and steps as plain data, without the syntax trees that they are of.

So it can be kept, and told again without the reading. Every output is made from this, whether it was kept or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.diagnostic import Span
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Dtypes
    from dtlint.infer.interproc.disk import Disk

__all__ = ["Account", "Claim", "Note", "Step", "shown", "text"]

LONGEST = 12
"""Steps; a chain beyond that helps nobody."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The dtypes that the tensor at `span` can have; None for a tensor of which nothing is known."""

    span: Span
    dtypes: Dtypes
    symbolic: str | None = None
    """What decides the dtype where there is not one alone: "the dtype of `x`"."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is said beside a line of the main file, and the dtypes that give it its colour."""

    text: str
    dtypes: Dtypes


@dataclass(frozen=True, slots=True)
class Step:
    """One expression on the way to a dtype."""

    path: Path
    span: Span
    expression: str
    dtypes: Dtypes
    reason: str
    """What happens there, as the end of a sentence that begins with the expression."""
    symbolic: str | None = None
    """What decides the dtype where it is not known."""


class Account:
    """What a reading of the program at `path` tells.

    Args:
        disk: what the files were read from.
        data: tables of numbers and strings, as JSON has them; what is long or stands there often is told by its number.
            paths: the files.
            dtypes, texts: sets of dtypes, and words.
            claims: for each the number of its path, the four of its span, of its dtypes, of its symbolic text.
            expressions: for each the number of the claim at its place, of its own dtypes, of what decides them and of
                the reason for them, of the expression that they come from; and whether it only passes them on.
            notes: for each its line, its text and the number of its dtypes.
            broken off: what was not followed to its end.
    """

    def __init__(self, path: Path, disk: Disk, data: dict[str, Any]) -> None:
        self.path, self.disk, self.data = path, disk, data
        self._sources: dict[Path, Source] = {}
        self.files = [Path(name) for name in data["paths"]]
        """Those that something is told of, and the main one."""
        self._dtypes = [frozenset(names) for names in data["dtypes"]]
        self._texts: list[str] = data["texts"]
        self._claims: list[list[Any]] = data["claims"]
        self._expressions: list[list[Any]] = data["expressions"]
        self._notes: list[list[Any]] = data["notes"]
        self.broken_off: str = data["broken off"]
        """What was not followed to its end, in a sentence; empty where everything was."""

    @property
    def main(self) -> Source:
        """The source of the main file."""
        return self.source(self.path)

    def source(self, path: Path) -> Source:
        """The source of a file that was read, as it was then."""
        known = self._sources.get(path)
        if known is None:
            known = self._sources[path] = Source.from_bytes(self.disk.read(path), shown_path(path))
        return known

    def claims(self) -> dict[Path, list[Claim]]:
        """The claims for each file, in order of place."""
        found: dict[Path, list[Claim]] = {path: [] for path in self.files}
        for path, *span, dtypes, symbolic in self._claims:
            found[self.files[path]].append(Claim(Span(*span), self._set(dtypes), self._text(symbolic)))
        return found

    def notes(self) -> dict[int, Note]:
        """What is said beside each line of the main file."""
        return {line: Note(said, self._set(dtypes)) for line, said, dtypes in self._notes}

    def at(self, path: Path, line: int, column: int) -> int | None:
        """The number of the innermost tensor expression at a place of a file; line from 1, column from 0."""
        here = Span(line, column, line, column)
        around = [(span, number) for span, number in self._places(path) if span.contains(here)]
        innermost = max(around, key=lambda found: _closeness(found[0]), default=None)
        return None if innermost is None else innermost[1]

    def exactly(self, path: Path, span: Span) -> int | None:
        """The number of the tensor expression that has this extent."""
        return dict(self._places(path)).get(span)

    def why(self, number: int) -> list[Step]:
        """The steps that gave a tensor expression its dtype, the expression first and its origin last."""
        steps: list[Step] = []
        seen: set[int] = set()
        current: int | None = number
        while current is not None and current not in seen and len(steps) < LONGEST:
            seen.add(current)
            claim, dtypes, symbolic, reason, cause, passes = self._expressions[current]
            if not (steps and passes):
                path, *place = self._claims[claim][:5]
                where, span = self.files[path], Span(*place)
                named = self._text(symbolic)
                steps.append(
                    Step(where, span, text(self.source(where), span), self._set(dtypes), self._texts[reason], named)
                )
            current = cause
        return steps

    def _places(self, path: Path) -> Iterator[tuple[Span, int]]:
        """Where each tensor expression of a file stands, with its number."""
        if path not in self.files:
            return
        wanted = self.files.index(path)
        spans = {number: Span(*claim[1:5]) for number, claim in enumerate(self._claims) if claim[0] == wanted}
        for number, (claim, *_) in enumerate(self._expressions):
            if claim in spans:
                yield spans[claim], number

    def _set(self, number: int | None) -> Dtypes:
        return None if number is None else self._dtypes[number]

    def _text(self, number: int | None) -> str | None:
        return None if number is None else self._texts[number]


def _closeness(span: Span) -> tuple[int, int, int, int]:
    """Of spans around one place the innermost has the most."""
    return span.line, span.column, -span.end_line, -span.end_column


def shown(dtypes: Dtypes) -> str:
    """Dtypes as a person reads them: `float16`, `float16 | float32`."""
    return "an unknown dtype" if dtypes is None else " | ".join(sorted(dtypes))


def text(source: Source, span: Span) -> str:
    """The source of an expression on one line."""
    lines = list(source.lines[span.line - 1 : span.end_line])
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return " ".join(" ".join(lines).split())
