"""The source of a program as `dtlint infer` shows it: each line followed by the dtypes of what it computes.

Where a value is bound or returned, its dtype is told; elsewhere the widest tensor expressions go by their text. A notebook
is shown by cell, as its author wrote it.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.diagnostic import Span
    from dtlint.infer.program.claims import Reading
    from dtlint.infer.values import Dtypes

__all__ = ["annotate"]

CROWDED = 3
"""More expressions than this on one line say nothing to a person."""
LONGEST = 40
"""Characters of an expression that a note names, beyond which there is no note."""
COLOURS = {"float16": "red", "bfloat16": "magenta", "float64": "bright_red", "float32": "green"}
"""What is narrow, or wider than it should be, stands out."""

_BINDING = (ast.Assign, ast.AnnAssign, ast.Return)
"""What binds or returns the very value that stands there; `x += y` makes another of it."""


def annotate(reading: Reading) -> None:
    """Print the main file of a reading with its dtypes."""
    from dtlint.report.colour import coloured

    colour = coloured(sys.stdout)
    notes = _notes(reading)
    for number, line in _lines(reading):
        note, dtypes = notes.get(number, ("", None))
        note = f"  # {note}" if note else ""
        if note and colour:
            note = click.style(note, fg=_colour(dtypes))
        click.echo(line + note, color=colour)


def _lines(reading: Reading) -> Iterator[tuple[int, str]]:
    """The lines as their author wrote them, each with its number in the text; 0 where it has none."""
    source = reading.main
    if source.notebook is None:
        yield from enumerate(source.lines, 1)
        return
    from dtlint.source.magics import unmask

    for cell in source.notebook.cells:
        yield 0, f"# %% cell {cell.number}"
        yield from ((0, line) for line in cell.head.splitlines())
        last = cell.first + cell.text.rstrip("\n").count("\n")
        yield from ((number, unmask(source.lines[number - 1])) for number in range(cell.first, last + 1))


def _notes(reading: Reading) -> dict[int, tuple[str, Dtypes]]:
    """For each line, what to say of the tensor expressions that end on it, and the dtypes that give it its colour."""
    from dtlint.infer.program.why import shown, text

    statements = [node for node in ast.walk(reading.tree) if isinstance(node, (*_BINDING, ast.Expr))]
    whole = {id(node.value) for node in statements}
    bound = {node.end_lineno for node in statements if isinstance(node, _BINDING)}
    notes: dict[int, tuple[str, Dtypes]] = {
        reading.main.span(node).end_line: (decided.text, None)
        for node, decided in reading.decided.items()
        if id(node) in whole and not reading.knows(node)
    }
    for line, nodes in _widest(reading).items():
        values = [node for node in nodes if id(node) in whole]
        dtypes = reading.tensors[values[-1] if values else nodes[-1]][1].dtypes
        written = {text(reading, node): shown(reading.tensors[node][1].dtypes) for node in nodes}
        told = [f"{expression}: {has}" for expression, has in written.items() if len(expression) <= LONGEST]
        if values:
            notes[line] = shown(dtypes), dtypes
        elif line not in bound and 0 < len(told) <= CROWDED:
            notes[line] = "; ".join(told), dtypes
    return notes


def _widest(reading: Reading) -> dict[int, list[ast.expr]]:
    """For each line of the main file, the expressions ending there of whose dtype something is known, but for those that
    are part of another; in order of place."""
    known = [
        (reading.span(node), node)
        for node in reading.tensors
        if reading.knows(node) and reading.file(node) == reading.path
    ]
    widest: dict[int, list[tuple[Span, ast.expr]]] = {}
    for span, node in sorted(known, key=lambda spanned: _outermost_first(spanned[0])):
        others = widest.setdefault(span.end_line, [])
        if not any(other.contains(span) for other, _ in others):
            others.append((span, node))
    return {line: [node for _, node in others] for line, others in widest.items()}


def _outermost_first(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, -span.end_line, -span.end_column


def _colour(dtypes: Dtypes) -> str:
    if dtypes is None:
        return "bright_black"
    return COLOURS.get("".join(dtypes), "cyan") if len(dtypes) == 1 else "yellow"
