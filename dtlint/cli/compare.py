"""`dtlint compare`: two traces of one program, operator by operator. It runs nothing, and needs no torch."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dtlint.cli.outputs import refuse_overwriting, writable, write_file

if TYPE_CHECKING:
    from typing import TextIO

    from dtlint.compare import Comparison

__all__ = ["command"]

FORMATS = ("text", "json")

FAIL_ON = ("beyond", "unmatched", "difference")
"""What may fail a comparison: more than rounding, results that only one run has, any difference at all."""

EPILOG = """\b
Examples:
  dtlint trace --sketch -o a.json train.py          one run, in float32
  dtlint trace --sketch -o b.json train.py --bf16   the same seed and batches, in another precision
  dtlint compare a.json b.json                      where they differ by more than rounding
  dtlint compare a.json b.json --output-format json --report-file compared.json
  dtlint compare before.json after.json --fail-on beyond,unmatched

\b
Exit codes: 0, or 1 if something is beyond rounding (see --fail-on); 2 wrong usage, or runs that cannot be compared.
"""


@click.command("compare", epilog=EPILOG)
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option(
    "--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="One screen, or all as JSON."
)
@click.option(
    "--report-file", "--output-file", type=click.Path(path_type=Path), help="Write the report into this file."
)
@click.option(
    "--fail-on",
    default="beyond",
    show_default=True,
    metavar="WHAT",
    help="Exit with 1 where there is any of these, by commas: beyond (rounding), unmatched (results that one run has"
    " alone), difference (of any size). Nothing, if it is empty.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no report.")
def command(first: Path, second: Path, output_format: str, report_file: Path | None, fail_on: str, quiet: bool) -> None:
    """Compare two records of one program that `dtlint trace --sketch` wrote, as of float32 and bfloat16.

    Tells the first operator whose results differ by more than rounding explains, with its line; which modules add most;
    and what is honest rounding. Both runs need the same weights, batches and random numbers.
    """
    from dtlint.compare import CannotCompare, compare
    from dtlint.trace.store import RecordError, load

    words = _fail_on(fail_on)
    refuse_overwriting("--report-file", report_file, [first, second], "a record")
    report_file = writable(report_file)
    for path in (first, second):
        if path.is_dir():
            raise click.UsageError(f"{path} is a directory; ranks have values of their own: give the file of one rank")
    try:
        comparison = compare(load(first), load(second), (str(first), str(second)))
    except (RecordError, CannotCompare) as error:
        raise click.UsageError(str(error)) from None
    if report_file is not None:
        text = StringIO()
        _write(comparison, output_format, text)
        write_file("--report-file", report_file, text.getvalue())
    elif not quiet:
        _write(comparison, output_format, sys.stdout)
    click.get_current_context().exit(int(_fails(comparison, words)))


def _write(comparison: Comparison, output_format: str, stream: TextIO) -> None:
    if output_format == "json":
        from dtlint.report.compare_json import write_json

        write_json(comparison, stream)
    else:
        from dtlint.report.compare_text import write_comparison

        write_comparison(comparison, stream)


def _fail_on(text: str) -> set[str]:
    words = {word.strip() for word in text.split(",") if word.strip()}
    unknown = sorted(words - set(FAIL_ON))
    if unknown:
        raise click.UsageError(f"--fail-on {unknown[0]} is not known; use {', '.join(FAIL_ON)}")
    return words


def _fails(comparison: Comparison, words: set[str]) -> bool:
    return (
        ("beyond" in words and bool(comparison.findings))
        or ("unmatched" in words and bool(comparison.unmatched))
        or ("difference" in words and comparison.equal < comparison.compared)
    )
