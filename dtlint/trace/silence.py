"""Comments of the traced source that silence a rule, `# noqa: DT901` and its kin: a trace obeys what a check obeys.

The file is read from disk if it still says what ran; else only the lines that the record keeps can speak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.source.file import Source, UnreadableSource
from dtlint.source.suppression import Suppressions

if TYPE_CHECKING:
    from pathlib import Path

    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.record import TraceRecord

__all__ = ["Silence"]


class Silence:
    """The suppression comments of a record's files, each file read once."""

    def __init__(self, record: TraceRecord, root: Path) -> None:
        self.record, self.root = record, root
        self._of: dict[str, Suppressions | None] = {}

    def covers(self, diagnostic: Diagnostic) -> bool:
        """Does a comment on the diagnostic's lines, or one for the whole file, silence it?"""
        path, span = diagnostic.location.path, diagnostic.location.span
        if path not in self._of:
            self._of[path] = self._read(path)
        comments = self._of[path]
        if comments is not None:
            return comments.covers(diagnostic.code, span.line, span.end_line, diagnostic.name)
        kept = self.record.sources.get(path, {})
        lines = [kept.get(str(number), "") for number in range(span.line, span.end_line + 1)]
        return any(_line(text).covers(diagnostic.code, 1, 1, diagnostic.name) for text in lines)

    def _read(self, path: str) -> Suppressions | None:
        """The comments of the file on disk; None if it has changed since the run, or is gone."""
        try:
            source = Source.read(self.root / path, path)
        except (OSError, UnreadableSource, ValueError):
            return None
        now = dict(enumerate(source.lines, 1))
        for number, text in self.record.sources.get(path, {}).items():
            if now.get(int(number), "").rstrip() != text.rstrip():
                return None
        return Suppressions.of(source)


def _line(text: str) -> Suppressions:
    return Suppressions.of(Source.from_bytes(text.strip().encode(errors="replace"), "line.py"))
