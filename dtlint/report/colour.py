"""Lines of styled pieces on their way to a stream: in colour where that is wanted, else as plain text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.report.frame import Line, Style

__all__ = ["coloured", "write_lines"]

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


def write_lines(lines: Iterable[Line], stream: TextIO) -> None:
    """Write the lines, each ended."""
    (_write_coloured if coloured(stream) else _write_plain)(lines, stream)


def coloured(stream: TextIO) -> bool:
    """Is colour wanted? NO_COLOR (no-color.org) wins over FORCE_COLOR; else a terminal that knows colour gets it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _write_plain(lines: Iterable[Line], stream: TextIO) -> None:
    for line in lines:
        stream.write("".join(text for text, _ in line) + "\n")


def _write_coloured(lines: Iterable[Line], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, force_terminal=True, color_system="standard", highlight=False, emoji=False)
    for line in lines:
        console.print(Text.assemble(*((text, LOOKS[style]) for text, style in line)), soft_wrap=True)
