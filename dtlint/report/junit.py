"""JUnit's XML, which every CI shows as test results: a suite for each file, a case for each finding.

Information fails no run, so it is a case that has passed. A run without findings is one such case, since readers take
an empty report for a run that broke.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, TextIO
from xml.etree import ElementTree

from dtlint.diagnostic import Severity
from dtlint.report.filename import relative
from dtlint.report.full import text
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Diagnostic

__all__ = ["write"]


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one document."""
    by_file: dict[str, list[Diagnostic]] = {}
    for diagnostic in diagnostics:
        by_file.setdefault(legible(relative(diagnostic.location.path)), []).append(diagnostic)
    root = ElementTree.Element("testsuites", {"name": "dtlint", **_counts(diagnostics)})
    for path, found in by_file.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": path, **_counts(found)})
        for diagnostic in found:
            _case(suite, path, diagnostic)
    if not by_file:
        suite = ElementTree.SubElement(root, "testsuite", name="dtlint", tests="1", failures="0", errors="0")
        ElementTree.SubElement(suite, "testcase", classname="dtlint", name="Nothing was found")
        root.set("tests", "1")
    ElementTree.indent(root)
    document = io.StringIO()
    ElementTree.ElementTree(root).write(document, encoding="unicode")
    stream.write(f'<?xml version="1.0" encoding="utf-8"?>\n{document.getvalue()}\n')


def _counts(diagnostics: Sequence[Diagnostic]) -> dict[str, str]:
    failures = sum(diagnostic.severity is not Severity.INFO for diagnostic in diagnostics)
    return {"tests": str(len(diagnostics)), "failures": str(failures), "errors": "0"}


def _case(suite: ElementTree.Element, path: str, diagnostic: Diagnostic) -> None:
    location = diagnostic.location
    cell = f"cell {location.cell}, " if location.cell is not None else ""
    place = f"{cell}line {location.span.line}"
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=path,
        name=f"{diagnostic.code} {diagnostic.name}, {place}, column {location.span.column + 1}",
        file=path,
        line=str(location.line_in_file),
    )
    if diagnostic.severity is Severity.INFO:
        ElementTree.SubElement(case, "system-out").text = text(diagnostic)
    else:
        failure = ElementTree.SubElement(case, "failure", message=legible(diagnostic.message), type=diagnostic.code)
        failure.text = text(diagnostic)
