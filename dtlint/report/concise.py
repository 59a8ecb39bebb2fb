"""The format for grep and editors: one line for each diagnostic, `path:line:column: CODE [*] message`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Applicability, Diagnostic
from dtlint.report.leads_to import leads_to
from dtlint.report.legible import legible, place

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule

__all__ = ["write"]


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one line for each diagnostic. `[*]` says that --fix mends it; of a call that leads to where something happens the
    place of that follows, and at the end stands what a run says of it."""
    for diagnostic in diagnostics:
        mark = "[*] " if diagnostic.fix and diagnostic.fix.applicability is Applicability.SAFE else ""
        run = diagnostic.in_run
        told = "" if run is None else f" [run: {run.verdict.value}: {legible(run.saw)}]"
        stream.write(
            f"{place(diagnostic.location)}: {diagnostic.code} {mark}{legible(diagnostic.message)}{leads_to(diagnostic)}{told}\n"
        )
