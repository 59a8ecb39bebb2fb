"""pylint's `parseable` format, which Jenkins and older editors read: `path:line: [CODE(name)] message`.

A notebook is located by the line of its .ipynb file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from dtlint.report.filename import relative
from dtlint.report.leads_to import leads_to
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Diagnostic

__all__ = ["write"]


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write one line for each diagnostic."""
    for diagnostic in diagnostics:
        path, line = legible(relative(diagnostic.location.path)), diagnostic.location.line_in_file
        stream.write(
            f"{path}:{line}: [{diagnostic.code}({diagnostic.name})] {legible(diagnostic.message)}{leads_to(diagnostic)}\n"
        )
