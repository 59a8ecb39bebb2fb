"""`dtlint infer`: the dtype of every expression of a file, as inferred from the source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import ast

    from dtlint.diagnostic import Span
    from dtlint.infer.claims import Claim, Reading
    from dtlint.infer.values import Dtypes

__all__ = ["command"]

DEEPEST = 12_000
"""Python's recursion limit while a program is read: calls are followed as calls, some tens of frames each."""
MANY = 3
"""More dtypes than this at one place say nothing to a person."""
LONGEST = 40
"""Characters of an expression that a note names, beyond which there is no note."""


@click.command(name="infer")
@click.argument("path", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--at", metavar="FILE:LINE:COL", help="One expression only: its dtype and why. Lines and columns from 1.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: the source with its dtypes; json: a list of claims, one for each expression that is a tensor.",
)
def command(path: Path | None, at: str | None, output_format: str) -> None:
    """Show the dtype of every tensor expression in PATH, without running it.

    Imports are followed, so a program is read as a whole: what its functions are given decides what they return. What
    cannot be known is left out.

    With --at the innermost tensor expression at that place is told, and the steps from its origin. Where FILE is a module
    of a program, name the program as PATH, so that its calls are known.

    \b
    Examples:
      dtlint infer model.py
      dtlint infer train.py --output-format json
      dtlint infer --at train.py:31:12
      dtlint infer train.py --at model.py:80:9
    """
    if at is not None:
        _tell(path, at, output_format)
        return
    if path is None:
        raise click.UsageError("name a file, or a place with --at FILE:LINE:COL")
    reading = _read(path)
    if output_format == "json":
        _print_json([_as_json(file, claim) for file, given in reading.claims().items() for claim in given])
    else:
        _annotate(reading)


def _read(path: Path) -> Reading:
    from dtlint.infer.claims import read

    sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST))
    try:
        return read(path.absolute(), [path.absolute().parent, *_installed()])
    except (SyntaxError, ValueError, OSError, RecursionError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}. Check that it is Python source.") from None


def _installed() -> list[Path]:
    """The folders that Python imports installed packages from."""
    return [Path(entry) for entry in sys.path if entry]


def _as_json(path: Path, claim: Claim) -> dict[str, object]:
    return {
        "path": str(path),
        "line": claim.span.line,
        "column": claim.span.column,
        "end_line": claim.span.end_line,
        "end_column": claim.span.end_column,
        "dtypes": None if claim.dtypes is None else sorted(claim.dtypes),
        "symbolic": claim.symbolic,
    }


def _print_json(value: object) -> None:
    import json

    json.dump(value, sys.stdout)
    click.echo()


# -- one place ---------------------------------------------------------------------------------------------------------


def _tell(program: Path | None, at: str, output_format: str) -> None:
    """The dtype at one place, and the steps that led there."""
    from dtlint.infer.why import why

    file, line, column = _place(at)
    reading = _read(program or file)
    node = reading.at(file.absolute(), line, column - 1)
    if node is None:
        raise click.UsageError(f"nothing at {at} is known to be a tensor; point at an expression that `dtlint infer` shows")
    steps = why(reading, node)
    if output_format == "json":
        _print_json(
            [
                {
                    "path": str(step.path),
                    "line": step.span.line,
                    "column": step.span.column,
                    "expression": step.expression,
                    "dtypes": None if step.dtypes is None else sorted(step.dtypes),
                    "symbolic": step.symbolic,
                    "reason": step.reason,
                }
                for step in steps
            ]
        )
        return
    from dtlint.infer.why import shown
    from dtlint.source.file import shown_path

    click.echo(f"{steps[0].expression}: {steps[0].symbolic or shown(steps[0].dtypes)}")
    for step in steps:
        where = f"{shown_path(step.path)}:{step.span.line}:{step.span.column + 1}"
        has = f"is {shown(step.dtypes)}" if step.dtypes is not None else f"has {step.symbolic or 'a dtype that is not known'}"
        click.echo(f"  {where}: `{step.expression}` {has}: {step.reason}")


def _place(at: str) -> tuple[Path, int, int]:
    """The file, line and column of FILE:LINE:COL; the file's own name may hold colons."""
    name, line, column = [*at.rsplit(":", 2), "", ""][:3]
    if not (line.isdecimal() and column.isdecimal() and int(line) and int(column)):
        raise click.BadParameter(f"{at!r} is no place; write it like model.py:31:12", param_hint="--at")
    file = Path(name)
    if not file.is_file():
        raise click.BadParameter(f"there is no file {name}", param_hint="--at")
    return file, int(line), int(column)


# -- the whole file ----------------------------------------------------------------------------------------------------


def _annotate(reading: Reading) -> None:
    """The source, each line followed by the dtype of what it computes."""
    from dtlint.report.colour import coloured

    colour = coloured(sys.stdout)
    notes = _notes(reading)
    for number, line in enumerate(reading.main.lines, 1):
        note, dtypes = notes.get(number, ("", None))
        note = f"  # {note}" if note else ""
        if note and colour:
            note = click.style(note, fg=_colour(dtypes))
        click.echo(line + note, color=colour)


def _notes(reading: Reading) -> dict[int, tuple[str, Dtypes]]:
    """For each line, what to say of the widest tensor expression that ends on it, and its dtypes.

    Where a value is bound or returned, that is told or nothing; elsewhere the expression goes by its text.
    """
    import ast

    from dtlint.infer.why import shown, text

    binding = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)
    statements = [node for node in ast.walk(reading.tree) if isinstance(node, (*binding, ast.Expr))]
    whole = {id(node.value) for node in statements}
    bound = {node.end_lineno for node in statements if isinstance(node, binding)}
    notes: dict[int, tuple[str, Dtypes]] = {
        reading.main.span(node).end_line: (symbol, None) for node, symbol in reading.symbols.items() if id(node) in whole
    }
    for line, node in _widest(reading).items():
        dtypes = reading.tensors[node][1].dtypes
        what = "" if id(node) in whole else f"{text(reading, node)}: "
        if not what or (line not in bound and len(what) <= LONGEST):
            notes[line] = f"{what}{shown(dtypes)}", dtypes
    return notes


def _widest(reading: Reading) -> dict[int, ast.expr]:
    """For each line of the main file, the widest expression ending there of whose dtype something is known."""
    widest: dict[int, tuple[Span, ast.expr]] = {}
    for node, (path, value) in reading.tensors.items():
        if path == reading.path and value.dtypes is not None and len(value.dtypes) <= MANY:
            span = reading.span(node)
            known = widest.get(span.end_line)
            if known is None or span.contains(known[0]):
                widest[span.end_line] = (span, node)
    return {line: node for line, (_, node) in widest.items()}


def _colour(dtypes: Dtypes) -> str:
    if dtypes is None:
        return "bright_black"
    return COLOURS.get("".join(dtypes), "cyan") if len(dtypes) == 1 else "yellow"


COLOURS = {"float16": "red", "bfloat16": "magenta", "float64": "bright_red", "float32": "green"}
"""What is narrow, or wider than it should be, stands out."""
