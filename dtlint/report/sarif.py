"""SARIF 2.1.0 (OASIS), for code scanning. Rules carry their documentation; files are named relative to where dtlint ran.

Columns count code points. A notebook's results lie on the lines of the .ipynb file and come without fixes, because
SARIF knows files and not cells.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TextIO

from dtlint import __version__
from dtlint.diagnostic import Diagnostic, Edit, Location, Note, Severity, Span
from dtlint.report.filename import uri
from dtlint.report.fingerprint import Fingerprints

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule

__all__ = ["write"]

Json = dict[str, object]

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

ROOT = "SRCROOT"
"""The base of all relative names. It has no address in the report: the reader knows where its checkout lies."""


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one log with one run; its rules are those that the results name."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    first = {diagnostic.code: diagnostic for diagnostic in reversed(diagnostics)}
    seen = Fingerprints()
    run: Json = {
        "tool": {
            "driver": {
                "name": "dtlint",
                "version": __version__,
                "rules": [_rule(first[code], rules.get(code)) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The directory in which dtlint ran."}}},
        "results": [_result(diagnostic, codes.index(diagnostic.code), seen) for diagnostic in diagnostics],
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    json.dump(log, stream, indent=2)
    stream.write("\n")


def _rule(diagnostic: Diagnostic, rule: AnyRule | None) -> Json:
    """The descriptor of a rule. A code that no rule at hand has is described by what its diagnostic says."""
    if rule is None:
        return {"id": diagnostic.code, "name": diagnostic.name}
    from dtlint.document import document

    text = document(rule.load())
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": text.summary},
        "fullDescription": {"text": text.sections.get("What it does", text.summary)},
        "help": {"text": text.markdown(), "markdown": text.markdown()},
        "defaultConfiguration": {"level": LEVELS[rule.severity], "enabled": rule.default},
    }


def _result(diagnostic: Diagnostic, index: int, seen: Fingerprints) -> Json:
    result: Json = {
        "ruleId": diagnostic.code,
        "ruleIndex": index,
        "level": LEVELS[diagnostic.severity],
        "message": {"text": f"{diagnostic.message}. {diagnostic.help}" if diagnostic.help else diagnostic.message},
        "locations": [{"physicalLocation": _physical(diagnostic.location)}],
        "partialFingerprints": {"dtlint/v1": seen.of(diagnostic, uri(diagnostic.location.path)[0])},
    }
    if any(note.step is None for note in diagnostic.notes):
        result["relatedLocations"] = [
            {"id": number, "message": {"text": note.message}, "physicalLocation": _physical(note.location)}
            for number, note in enumerate((one for one in diagnostic.notes if one.step is None), 1)
        ]
    steps = [note for note in diagnostic.notes if note.step is not None]
    if steps:
        steps.append(Note(diagnostic.location, diagnostic.message))
        flow = [
            {"location": {"message": {"text": one.message}, "physicalLocation": _physical(one.location)}}
            for one in steps
        ]
        result["codeFlows"] = [{"threadFlows": [{"locations": flow}]}]
    if diagnostic.fix and diagnostic.location.cell is None:
        change = {
            "artifactLocation": _artifact(diagnostic.location.path),
            "replacements": [_replacement(edit) for edit in diagnostic.fix.edits],
        }
        description = f"{diagnostic.fix.message} ({diagnostic.fix.applicability.value})"
        result["fixes"] = [{"description": {"text": description}, "artifactChanges": [change]}]
    if diagnostic.location.cell is not None:
        result["properties"] = {"cell": diagnostic.location.cell, "rowInCell": diagnostic.location.span.line}
    return result


def _physical(location: Location) -> Json:
    region = {"startLine": location.file_line} if location.file_line is not None else _region(location.span)
    return {"artifactLocation": _artifact(location.path), "region": region}


def _artifact(path: str) -> Json:
    """Relative to the working directory where the file lies below it; absolute elsewhere."""
    name, below = uri(path)
    return {"uri": name, "uriBaseId": ROOT} if below else {"uri": name}


def _region(span: Span) -> Json:
    return {
        "startLine": span.line,
        "startColumn": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _replacement(edit: Edit) -> Json:
    deleted: Json = {"deletedRegion": _region(edit.span)}
    return {**deleted, "insertedContent": {"text": edit.text}} if edit.text else deleted
