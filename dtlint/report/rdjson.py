"""rdjson, the Reviewdog Diagnostic Format (reviewdog, proto/rdf): comments on pull requests wherever reviewdog runs.

Its columns count bytes of UTF-8, so they are given where the line's text is at hand. A suggestion is one edit that a
reader may take alone: a fix of several has none. A notebook's findings lie on lines of the .ipynb file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.report.filename import relative
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Location, Span

__all__ = ["write"]

Json = dict[str, object]

SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one DiagnosticResult."""
    found = [_diagnostic(diagnostic) for diagnostic in diagnostics]
    json.dump({"source": {"name": "dtlint"}, "diagnostics": found}, stream, indent=2)
    stream.write("\n")


def _diagnostic(diagnostic: Diagnostic) -> Json:
    lines = dict(diagnostic.lines)
    help = f"\n{diagnostic.help}" if diagnostic.help else ""
    found: Json = {
        "message": diagnostic.message + help,
        "severity": SEVERITIES[diagnostic.severity],
        "code": {"value": diagnostic.code},
        "location": _location(diagnostic.location, lines),
    }
    if diagnostic.notes:
        found["relatedLocations"] = [
            {"message": note.message, "location": _location(note.location, _lines_of(note.location, diagnostic))}
            for note in diagnostic.notes
        ]
    suggestion = _suggestion(diagnostic, lines)
    return {**found, "suggestions": [suggestion]} if suggestion else found


def _lines_of(location: Location, diagnostic: Diagnostic) -> dict[int, str]:
    """The lines that are at hand of a second place."""
    here = diagnostic.location
    return dict(diagnostic.lines) if (location.path, location.cell) == (here.path, here.cell) else {}


def _location(location: Location, lines: Mapping[int, str]) -> Json:
    path = legible(relative(location.path))
    if location.file_line is not None:
        return {"path": path, "range": {"start": {"line": location.file_line}}}
    return {"path": path, "range": _range(location.span, lines)}


def _range(span: Span, lines: Mapping[int, str]) -> Json:
    ends = (span.line, span.column), (span.end_line, span.end_column)
    if not all(line in lines for line, _ in ends):
        return {"start": {"line": span.line}, "end": {"line": span.end_line}}
    start, end = ({"line": line, "column": _byte(lines[line], column)} for line, column in ends)
    return {"start": start, "end": end}


def _byte(text: str, column: int) -> int:
    """The column from 1, in bytes of UTF-8."""
    return len(text[:column].encode(errors="surrogatepass")) + 1


def _suggestion(diagnostic: Diagnostic, lines: Mapping[int, str]) -> Json | None:
    fix = diagnostic.fix
    if fix is None or len(fix.edits) != 1 or diagnostic.location.cell is not None:
        return None
    (edit,) = fix.edits
    if edit.span.line not in lines or edit.span.end_line not in lines:
        return None
    return {"range": _range(edit.span, lines), "text": edit.text}
