"""One page for a browser: no network, no other file, and nothing in it runs but its own script.

`write` makes that of a check, `write_run` that of a trace, `write_comparison` that of two traces which are compared.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Severity
from dtlint.report.html.compare import comparison_of
from dtlint.report.html.findings import finding, rules_of
from dtlint.report.html.page import render
from dtlint.report.html.run import run_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.compare import Comparison
    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.record import TraceRecord

PLURAL = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "information"}

__all__ = ["write", "write_comparison", "write_run"]


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write the page of a check: the findings in their files."""
    files = len({diagnostic.location.path for diagnostic in diagnostics})
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    told = f"{len(diagnostics):,} finding{'s' * (len(diagnostics) != 1)} in {files:,} file{'s' * (files != 1)}"
    data: dict[str, object] = {
        "kind": "check",
        "title": told if diagnostics else "No findings",
        "facts": [[PLURAL[severity], counts[severity]] for severity in Severity if counts[severity]],
        "findings": [finding(diagnostic) for diagnostic in diagnostics],
        "rules": rules_of(diagnostics, rules),
    }
    stream.write(render(f"{data['title']}, dtlint check", data))


def write_run(
    record: TraceRecord, diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]
) -> None:
    """Write the page of a trace: the answers of its screen, then all that the record holds."""
    data = run_of(record, diagnostics)
    data |= {
        "kind": "trace",
        "findings": [finding(diagnostic) for diagnostic in diagnostics],
        "rules": rules_of(diagnostics, rules),
    }
    stream.write(render(f"{data['title']}, dtlint trace", data))


def write_comparison(
    comparison: Comparison, first: Sequence[TraceRecord], second: Sequence[TraceRecord], stream: TextIO
) -> None:
    """Write the page of a comparison, with the lines of source that the records of both runs hold."""
    data = comparison_of(comparison, first, second) | {"kind": "compare"}
    stream.write(render(f"{data['title']}, dtlint compare", data))
