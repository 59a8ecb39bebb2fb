"""The source of a program as `dtlint infer` shows it: each line followed by the dtypes of what it computes.

What is said beside a line the reading has told (notes.py). A notebook is shown by cell, as its author wrote it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.diagnostic import Span
    from dtlint.infer.claims.account import Account, Note
    from dtlint.infer.domain.values import Dtypes
    from dtlint.source.file import Source

__all__ = ["annotate"]

COLOURS = {"float16": "red", "bfloat16": "magenta", "float64": "bright_red", "float32": "green"}
"""What is narrow, or wider than it should be, stands out."""
LONGEST = 40
"""Characters of an expression that is named beside its line."""


def annotate(account: Account, seen: Mapping[Span, frozenset[str]]) -> None:
    """Print the main file of a program with its dtypes.

    Args:
        seen: the dtypes that expressions had in a run: said where the source alone does not decide.
    """
    from dtlint.report.colour import coloured

    colour = coloured(sys.stdout)
    notes = account.notes()
    if seen:
        notes |= _of_run(account, seen, notes)
    for number, line in _lines(account.main):
        note = notes.get(number)
        said = f"  # {note.text}" if note is not None else ""
        if note is not None and colour:
            said = click.style(said, fg=_colour(note.dtypes))
        click.echo(line + said, color=colour)


def _of_run(account: Account, seen: Mapping[Span, frozenset[str]], notes: Mapping[int, Note]) -> dict[int, Note]:
    """What a run says beside the lines on which the source decides of nothing: the dtypes of the widest expression that
    ends there."""
    from dtlint.infer.claims.account import Note, shown, text

    widest: dict[int, Span] = {}
    for span in seen:
        known = widest.get(span.end_line)
        if known is None or span.contains(known):
            widest[span.end_line] = span
    found = {}
    for line, span in widest.items():
        if line not in notes or notes[line].dtypes is None:
            written = text(account.main, span)
            told = f"{written}: {shown(seen[span])}" if len(written) <= LONGEST else shown(seen[span])
            found[line] = Note(f"{told} (from the run)", seen[span])
    return found


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines as their author wrote them, each with its number in the text; 0 where it has none."""
    if source.notebook is None:
        yield from enumerate(source.lines, 1)
        return
    from dtlint.source.magics import unmask

    for cell in source.notebook.cells:
        yield 0, f"# %% cell {cell.number}"
        yield from ((0, line) for line in cell.head.splitlines())
        last = cell.first + cell.text.rstrip("\n").count("\n")
        yield from ((number, unmask(source.lines[number - 1])) for number in range(cell.first, last + 1))


def _colour(dtypes: Dtypes) -> str:
    if dtypes is None:
        return "bright_black"
    return COLOURS.get("".join(dtypes), "cyan") if len(dtypes) == 1 else "yellow"
