"""The format for people: each diagnostic with its code frame, its help and its fix. Coloured where that is wanted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from dtlint.diagnostic import Applicability, Diagnostic, Fix
from dtlint.report.frame import STYLES, Line, Style, frame
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dtlint.rule import Rule

__all__ = ["write"]

LOOKS: dict[Style, str] = {
    "plain": "",
    "strong": "bold",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "gutter": "bold blue",
    "note": "blue",
}
"""What each style looks like, in the words of rich. Colours of the terminal's own palette, so that its theme holds."""

TRUST = {
    Applicability.SAFE: "safe, applied by --fix",
    Applicability.UNSAFE: "unsafe, applied by --fix --unsafe-fixes",
    Applicability.DISPLAY: "only shown, never applied",
}


def write(diagnostics: Sequence[Diagnostic], stream: TextIO, rules: Mapping[str, type[Rule]]) -> None:
    """Write the diagnostics, each followed by an empty line."""
    lines = (line for diagnostic in diagnostics for line in _lines(diagnostic))
    (_write_coloured if diagnostics and coloured(stream) else _write_plain)(lines, stream)


def coloured(stream: TextIO) -> bool:
    """Is colour wanted? NO_COLOR (no-color.org) wins over FORCE_COLOR; else a terminal that knows colour gets it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


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
    yield []


def _promise(fix: Fix) -> str:
    trust = TRUST.get(fix.applicability)
    return legible(fix.message) + (f" ({trust})" if trust else "")


def _write_plain(lines: Iterable[Line], stream: TextIO) -> None:
    for line in lines:
        stream.write("".join(text for text, _ in line) + "\n")


def _write_coloured(lines: Iterable[Line], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, color_system="standard", highlight=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*((text, LOOKS[style]) for text, style in line)), soft_wrap=True)
