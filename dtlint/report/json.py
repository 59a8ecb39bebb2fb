"""JSON in Ruff's shape, so that what reads Ruff reads dtlint. `help`, `notes` and `run` are ours; rows and columns are from 1.

In a notebook rows are those of the cell, and `cell` counts all cells from 1.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from dtlint.report.filename import absolute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Diagnostic, Edit, Fix, InRun, Location, Note, Span

__all__ = ["write"]


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one array of objects, an empty one where there are no diagnostics."""
    json.dump([_diagnostic(diagnostic) for diagnostic in diagnostics], stream, indent=2)
    stream.write("\n")


def _diagnostic(diagnostic: Diagnostic) -> dict[str, object]:
    return {
        **_location(diagnostic.location),
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "help": diagnostic.help or None,
        "notes": [_note(note) for note in diagnostic.notes],
        "fix": diagnostic.fix and _fix(diagnostic.fix),
        "noqa_row": diagnostic.noqa_line,
        "url": None,
        **({} if diagnostic.in_run is None else {"run": _run(diagnostic.in_run)}),
    }


def _run(run: InRun) -> dict[str, object]:
    return {
        "verdict": run.verdict.value,
        "saw": run.saw,
        "dtypes": list(run.dtypes),
        "largest": run.largest,
        "births": run.births,
    }


def _location(location: Location) -> dict[str, object]:
    return {"filename": absolute(location.path), "cell": location.cell, **_span(location.span)}


def _span(span: Span) -> dict[str, object]:
    return {
        "location": {"row": span.line, "column": span.column + 1},
        "end_location": {"row": span.end_line, "column": span.end_column + 1},
    }


def _note(note: Note) -> dict[str, object]:
    step = {} if note.step is None else {"step": note.step}
    return {"message": note.message, **_location(note.location), **step}


def _fix(fix: Fix) -> dict[str, object]:
    return {
        "applicability": fix.applicability.value,
        "message": fix.message,
        "edits": [_edit(edit) for edit in fix.edits],
    }


def _edit(edit: Edit) -> dict[str, object]:
    return {"content": edit.text, **_span(edit.span)}
