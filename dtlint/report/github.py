"""Workflow commands of GitHub Actions: an annotation on the line of the pull request.

The escapes are those of github.com/actions/toolkit, packages/core/src/command.ts: `%`, CR and LF in a message, and
also `:` and `,` in a property. A notebook is annotated at the line of the .ipynb file, which is what GitHub shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.report.filename import absolute
from dtlint.report.legible import legible, place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule

__all__ = ["write"]

COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one command for each diagnostic."""
    for diagnostic in diagnostics:
        properties = ",".join(f"{key}={_property(value)}" for key, value in _properties(diagnostic).items())
        stream.write(f"::{COMMANDS[diagnostic.severity]} {properties}::{_message(_text(diagnostic))}\n")


def _properties(diagnostic: Diagnostic) -> dict[str, object]:
    location = diagnostic.location
    span = location.span
    properties: dict[str, object] = {
        "title": f"dtlint ({diagnostic.code})",
        "file": legible(absolute(location.path)),
        "line": location.line_in_file,
    }
    if location.file_line is not None:
        return properties
    if span.line == span.end_line:
        # GitHub ignores columns, and older runners refuse them, where the lines differ.
        properties["col"], properties["endColumn"] = span.column + 1, span.end_column + 1
    return {**properties, "endLine": span.end_line}


def _text(diagnostic: Diagnostic) -> str:
    text = f"{place(diagnostic.location)}: {diagnostic.code} {legible(diagnostic.message)}"
    return f"{text}\n  help: {legible(diagnostic.help)}" if diagnostic.help else text


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: object) -> str:
    return _message(str(value)).replace(":", "%3A").replace(",", "%2C")
