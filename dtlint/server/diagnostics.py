"""Diagnostics in the words of the protocol, and on their way from one text to the next."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.diagnostic import Severity
from dtlint.server.buffers import uri_of
from dtlint.server.positions import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dtlint.diagnostic import Diagnostic, Location, Note, Span

__all__ = ["Places", "carried", "in_protocol"]

_SEVERITIES = {Severity.ERROR: 1, Severity.WARNING: 2, Severity.INFO: 3}
_UNNECESSARY = frozenset({"unused", "redundant", "useless"})
"""Words in the names of rules that find what can go: editors show it faded."""
_DEPRECATED = frozenset({"deprecated", "legacy", "removed"})
"""Words in the names of rules that find what was replaced: editors strike it through."""


class Places:
    """Finds the text that a location is in.

    Args:
        shown: how messages name the file that is open.
        texts: its texts by cell, each with its URI.
        others: the other files that are open, by path, each with its URI and text.
    """

    def __init__(
        self,
        shown: str,
        texts: Mapping[int | None, tuple[str, Text]],
        others: Callable[[Path], tuple[str, str] | None],
        encoding: str,
    ) -> None:
        self._shown, self._texts, self._others, self._encoding = shown, texts, others, encoding
        self._read: dict[str, tuple[str, Text]] = {}

    def of(self, location: Location) -> tuple[str, Text] | None:
        """The URI and the text of a place; None where there is none any more."""
        if location.path == self._shown:
            return self._texts.get(location.cell)
        if location.path not in self._read:
            path = Path(os.path.abspath(location.path))
            uri, text = self._others(path) or (uri_of(path), _content(path))
            self._read[location.path] = uri, Text(text, self._encoding)
        return self._read[location.path]

    def in_protocol(self, location: Location) -> dict[str, Any] | None:
        """A place as a `Location` of the protocol."""
        found = self.of(location)
        return None if found is None else {"uri": found[0], "range": found[1].range(location.span)}


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def in_protocol(
    diagnostic: Diagnostic, places: Places, page: Callable[[str], str | None]
) -> tuple[str, dict[str, Any]] | None:
    """The URI of the text that a diagnostic is of, and the diagnostic; None where its place is gone.

    Args:
        page: the URI of the documentation of a rule.
    """
    found = places.of(diagnostic.location)
    if found is None:
        return None
    uri, text = found
    shown: dict[str, Any] = {
        "range": text.range(diagnostic.location.span),
        "severity": _SEVERITIES[diagnostic.severity],
        "code": diagnostic.code,
        "source": "dtlint",
        "message": diagnostic.message + (f"\nhelp: {diagnostic.help}" if diagnostic.help else ""),
    }
    documentation = page(diagnostic.code)
    if documentation is not None:
        shown["codeDescription"] = {"href": documentation}
    words = set(diagnostic.name.split("-"))
    tags = [tag for tag, names in ((1, _UNNECESSARY), (2, _DEPRECATED)) if words & names]
    if tags:
        shown["tags"] = tags
    related = [_related(note, places) for note in diagnostic.notes]
    if any(related):
        shown["relatedInformation"] = [one for one in related if one is not None]
    return uri, shown


def _related(note: Note, places: Places) -> dict[str, Any] | None:
    where = places.in_protocol(note.location)
    step = "" if note.step is None else f"{note.step}. "
    return None if where is None else {"location": where, "message": step + note.message}


def carried(diagnostics: Sequence[Diagnostic], before: str, after: str) -> list[Diagnostic]:
    """What was found in a text, as far as the lines that it stands on are in another one, too. Its fixes and the frames of
    its lines are left behind.

    Two texts are compared from both ends: the lines between are what was edited.
    """
    old, new = before.split("\n"), after.split("\n")
    most = min(len(old), len(new))
    same = next((number for number in range(most) if old[number] != new[number]), most)
    behind = next((number for number in range(most - same) if old[-1 - number] != new[-1 - number]), most - same)
    moved = len(new) - len(old)
    last = len(old) - behind

    def place(span: Span) -> Span | None:
        if span.end_line <= same:
            return span
        if span.line > last:
            return span._replace(line=span.line + moved, end_line=span.end_line + moved)
        return None

    found = []
    for one in diagnostics:
        span = place(one.location.span)
        if span is None or one.location.cell is not None:
            continue
        notes = []
        for note in one.notes:
            inside = note.location.path == one.location.path
            where = place(note.location.span) if inside else note.location.span
            if where is not None:
                notes.append(note._replace(location=note.location._replace(span=where)))
        location = one.location._replace(span=span)
        found.append(replace(one, location=location, notes=tuple(notes), fix=None, lines=(), noqa_line=span.end_line))
    return found
