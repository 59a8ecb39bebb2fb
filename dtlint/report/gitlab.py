"""GitLab's Code Quality report: the subset of Code Climate's issues that a merge request shows.

Fields are those of docs.gitlab.com/ci/testing/code_quality. Paths are relative to the repository, in which dtlint runs;
what has a fingerprint that is there already is not shown. A notebook's findings lie on lines of the .ipynb file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.report.filename import relative
from dtlint.report.fingerprint import Fingerprints
from dtlint.report.leads_to import leads_to
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Location

__all__ = ["write"]

SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one array of issues, an empty one where there are no diagnostics."""
    seen = Fingerprints()
    json.dump([_issue(diagnostic, seen) for diagnostic in diagnostics], stream, indent=2)
    stream.write("\n")


def _issue(diagnostic: Diagnostic, seen: Fingerprints) -> dict[str, object]:
    path = legible(relative(diagnostic.location.path))
    help = f". {diagnostic.help}" if diagnostic.help else ""
    return {
        "description": f"{diagnostic.code}: {legible(diagnostic.message)}{leads_to(diagnostic)}{legible(help)}",
        "check_name": diagnostic.name,
        "fingerprint": seen.of(diagnostic, path),
        "severity": SEVERITIES[diagnostic.severity],
        "location": {"path": path, **_position(diagnostic.location)},
    }


def _position(location: Location) -> dict[str, object]:
    if location.file_line is not None:
        return {"lines": {"begin": location.file_line}}
    span = location.span
    return {
        "positions": {
            "begin": {"line": span.line, "column": span.column + 1},
            "end": {"line": span.end_line, "column": span.end_column + 1},
        }
    }
