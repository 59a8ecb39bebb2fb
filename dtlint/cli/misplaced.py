"""Options of dtlint that stand after the script, where they are the script's: said only where that did not do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Misplaced"]

REFUSED = 2
"""The exit code of argparse, click and their kin for an option that they do not know."""


class Misplaced:
    """Words among a script's arguments that are options of a command of dtlint's as well."""

    def __init__(self, command: click.Command, args: Sequence[str]) -> None:
        """Of the arguments of a script that is to run in the current directory."""
        options = {
            name: option for option in command.params for name in option.opts if isinstance(option, click.Option)
        }
        self.words: list[str] = []
        self.files: list[tuple[str, Path]] = []
        """Those that name a file for dtlint to write, with the file."""
        for option, name, value in _given(options, args):
            self.words.append(name)
            if isinstance(option.type, click.Path) and option.name in WRITTEN and value:
                self.files.append((name, Path(value).absolute()))

    def hint(self, status: int) -> str:
        """One line, after the script has ended with this exit code; "" where nothing tells that dtlint was meant."""
        if status == REFUSED and self.words:
            return (
                f"dtlint: {self.words[0]} stands after the script, so that the script got it, and ended with exit code"
                f" {status}; options of dtlint stand before the script"
            )
        missing = next((name for name, file in self.files if not file.exists()), "")
        if status == 0 and missing:
            return (
                f"dtlint: {missing} stands after the script, so that the script got it, and wrote no such file;"
                " options of dtlint stand before the script"
            )
        return ""


WRITTEN = frozenset(("output", "report_file", "html"))
"""Options, by the names of their parameters, that name a file to write."""


def _given(options: dict[str, click.Option], args: Sequence[str]) -> Iterator[tuple[click.Option, str, str]]:
    """The options among the arguments, as they were written, with what follows each."""
    for number, word in enumerate(args):
        name, equals, value = word.partition("=")
        if name in options:
            following = args[number + 1] if number + 1 < len(args) else ""
            yield options[name], name, value if equals else following
