"""`dtlint infer`: the dtype of every expression of a file, as inferred from the source."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dtlint.infer.claims import Claim

__all__ = ["command"]

DEEPEST = 12_000
"""Python's recursion limit while a program is read: calls are followed as calls, some tens of frames each."""


@click.command(name="infer")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="text: the source with its dtypes; json: a list of claims, one for each expression that is a tensor.",
)
def command(path: Path, output_format: str) -> None:
    """Show the dtype of every tensor expression in PATH, without running it.

    Imports are followed, so a program is read as a whole: what its functions are given decides what they return. What
    cannot be known is left out.

    \b
    Examples:
      dtlint infer model.py
      dtlint infer train.py --output-format json
    """
    from dtlint.infer.claims import claims

    sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEPEST))
    try:
        found = claims(path.absolute(), [path.absolute().parent, *_installed()])
    except (SyntaxError, ValueError, RecursionError) as error:
        raise click.UsageError(f"{path} cannot be read: {error}. Check that it is Python source.") from None
    if output_format == "json":
        import json

        json.dump([_as_json(file, claim) for file, given in found.items() for claim in given], sys.stdout)
        click.echo()
    else:
        _annotate(path, found[path.absolute()])


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
        "symbolic": None,
    }


def _annotate(path: Path, given: list[Claim]) -> None:
    """The source, each line followed by the dtype of its widest expression."""
    from rich.console import Console
    from rich.text import Text

    from dtlint.source.file import Source

    by_line: dict[int, Claim] = {}
    for claim in given:
        if claim.dtypes is not None:
            line = claim.span.end_line
            known = by_line.get(line)
            if known is None or claim.span.contains(known.span):
                by_line[line] = claim
    console = Console(highlight=False, soft_wrap=True)
    for number, text in enumerate(Source.read(path).lines, 1):
        shown = Text(text)
        claim_here = by_line.get(number)
        if claim_here is not None and claim_here.dtypes is not None:
            dtypes = sorted(claim_here.dtypes)
            shown.append("  # " + " | ".join(dtypes), style=COLOURS.get(dtypes[0], "cyan") if len(dtypes) == 1 else "yellow")
        console.print(shown)


COLOURS = {"float16": "red", "bfloat16": "magenta", "float64": "bold red", "float32": "green"}
"""What is narrow, or wider than it should be, stands out."""
