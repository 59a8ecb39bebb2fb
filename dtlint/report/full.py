"""The format for people: each diagnostic with its code frame, its help and its fix. Coloured where that is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Applicability, Diagnostic, Fix
from dtlint.report.colour import write_lines
from dtlint.report.frame import STYLES, Line, frame
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dtlint.catalogue import AnyRule

__all__ = ["text", "write"]

TRUST = {
    Applicability.SAFE: "safe, applied by --fix",
    Applicability.UNSAFE: "unsafe, applied by --fix --unsafe-fixes",
    Applicability.DISPLAY: "only shown, never applied",
}


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write the diagnostics, each followed by an empty line."""
    if diagnostics:
        write_lines((line for diagnostic in diagnostics for line in _lines(diagnostic)), stream)


def text(diagnostic: Diagnostic) -> str:
    """One diagnostic with its frame, without colour."""
    return "\n".join("".join(piece for piece, _ in line) for line in _lines(diagnostic)).rstrip("\n")


def _lines(diagnostic: Diagnostic) -> Iterator[Line]:
    style = STYLES[diagnostic.severity]
    mark = "[*] " if diagnostic.fix and diagnostic.fix.applicability is Applicability.SAFE else ""
    yield [
        (f"{diagnostic.severity.value}[{diagnostic.code}]", style),
        (f" {diagnostic.name}: {mark}{legible(diagnostic.message)}", "strong"),
    ]
    yield from frame(diagnostic)
    if diagnostic.help and not (diagnostic.fix and diagnostic.fix.message == diagnostic.help):
        yield [("help", "info"), (f": {legible(diagnostic.help)}", "plain")]
    if diagnostic.fix:
        yield [("fix", "info"), (f": {_promise(diagnostic.fix)}", "plain")]
    if diagnostic.in_run:
        run = diagnostic.in_run
        yield [("run", "info"), (f": {run.verdict.value}: {legible(run.saw)}", "plain")]
    yield []


def _promise(fix: Fix) -> str:
    trust = TRUST.get(fix.applicability)
    return legible(fix.message) + (f" ({trust})" if trust else "")
