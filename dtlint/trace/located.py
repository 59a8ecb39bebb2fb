"""Where the places of a record are in the files as they are now.

The record keeps the lines of each place, with two around. A place is found where these lines still stand, all of them: at
their numbers, or elsewhere if that is at one place alone. It is also found at its numbers where its own lines are as they
were, and stand nowhere else in the file. Any other place is stale: it is not looked for by what resembles it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint.diagnostic import Span
from dtlint.source.file import Source, UnreadableSource
from dtlint.trace.record import AROUND
from dtlint.trace.schema import NO_FILE
from dtlint.trace.store import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Place

__all__ = ["InFile", "Located"]

_NAMED = 3
"""Files that a message names."""


@dataclass
class InFile:
    """What a run saw in one file.

    Attributes:
        places: where each place is now, by its number in the record.
        stale: are there places whose lines have changed?
    """

    places: dict[int, Span] = field(default_factory=dict)
    stale: bool = False


class Located:
    """The places of a record in the files that are there.

    Args:
        record: a run.
        path: the file that it was read from.
        files: the files that are asked about. Paths in the record are relative to where the trace ran: the working
            directory, or a folder that the record lies in or above, the first below which one of these is found.

    Raises:
        RecordError: the run was of other files.
    """

    def __init__(self, record: TraceRecord, path: Path, files: Iterable[Path]) -> None:
        self.record = record
        asked = {Path(os.path.abspath(file)) for file in files}
        of_run = list(dict.fromkeys(place.file for place in record.places if place.file != NO_FILE))
        here, beside = Path.cwd(), Path(os.path.abspath(path))
        roots = dict.fromkeys([here, *(beside, *beside.parents)[not beside.is_dir() :], *here.parents])
        root = next((root for root in roots if any(_below(root, name) in asked for name in of_run)), None)
        if root is None:
            raise RecordError(
                f"{path} is of other files ({_listed(of_run)}): name one of these, or trace the program that is to be checked"
                if of_run
                else f"{path} holds no operators: trace the program again, with the steps that run them"
            )
        self._files = {_below(root, name): name for name in of_run}
        self._known: dict[Path, InFile | None] = {}

    def of(self, file: Path | str) -> InFile | None:
        """What the run saw in a file; None where it ran no operator there."""
        absolute = Path(os.path.abspath(file))
        if absolute not in self._known:
            name = self._files.get(absolute)
            self._known[absolute] = None if name is None else self._located(absolute, name)
        return self._known[absolute]

    def _located(self, file: Path, name: str) -> InFile:
        found = InFile()
        try:
            now = [line.rstrip() for line in Source.read(file).lines]
        except (OSError, UnreadableSource):
            found.stale = True
            return found
        kept = {int(number): text.rstrip() for number, text in self.record.sources.get(name, {}).items()}
        for number, place in enumerate(self.record.places):
            if place.file != name:
                continue
            line = _line_now(place, kept, now)
            if line is None:
                found.stale = True
            else:
                moved = line - place.line
                found.places[number] = Span(line, place.column, place.end_line + moved, place.end_column)
        return found

    def results(self, file: Path | str) -> dict[Span, frozenset[str]]:
        """The dtypes of what expressions gave, where the operators of one gave one dtype each time or a few, by its
        place. What autocast or an operator cast on the way is no result."""
        inside = self.of(file)
        found: dict[Span, set[str]] = {}
        for entry in self.record.entries if inside is not None else ():
            assert inside is not None
            span = inside.places.get(entry.place)
            if span is not None and _is_result(entry):
                found.setdefault(span, set()).add(entry.output or "")
        refused = {error.place for error in self.record.errors}
        gone = {span for number, span in inside.places.items() if number in refused} if inside is not None else set()
        return {span: frozenset(dtypes) for span, dtypes in found.items() if "" not in dtypes and span not in gone}


def _is_result(entry: Entry) -> bool:
    return entry.phase == "forward" and entry.author in ("", "asked")


def _line_now(place: Place, kept: dict[int, str], now: Sequence[str]) -> int | None:
    """The line, from 1, at which a place begins now; None where that is not certain."""
    own = [kept.get(number) for number in range(place.line, place.end_line + 1)]
    if None in own or not any(own):
        return None
    numbers = [number for number in range(place.line - AROUND, place.end_line + AROUND + 1) if number in kept]
    before = place.line - numbers[0]
    around = [kept[number] for number in numbers]
    exact = [at + before + 1 for at in _found(around, now)]
    if place.line in exact or len(exact) == 1:
        return place.line if place.line in exact else exact[0]
    return place.line if [at + 1 for at in _found(own, now)] == [place.line] else None


def _found(lines: Sequence[str | None], now: Sequence[str]) -> list[int]:
    """The indices at which lines stand in a file, all in a row."""
    first = lines[0]
    return [at for at, line in enumerate(now) if line == first and list(now[at : at + len(lines)]) == list(lines)]


def _below(root: Path, name: str) -> Path:
    return Path(os.path.abspath(root / name))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
