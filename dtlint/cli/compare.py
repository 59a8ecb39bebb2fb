"""`dtlint compare`: two traces of one program, operator by operator. It runs nothing, and needs no torch."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dtlint.cli.outputs import refuse_overwriting, refuse_twice, writable, write_file

if TYPE_CHECKING:
    from typing import TextIO

    from dtlint.compare import Comparison
    from dtlint.trace.folder import Folder
    from dtlint.trace.record import TraceRecord

__all__ = ["command"]

FORMATS = ("text", "json")

FAIL_ON = ("beyond", "unmatched", "difference")
"""What may fail a comparison: more than rounding, results that only one run has, any difference at all."""

EPILOG = """\b
Examples:
  dtlint trace --sketch -o a.json train.py          one run, in float32
  dtlint trace --sketch -o b.json train.py --bf16   the same seed and batches, in another precision
  dtlint compare a.json b.json                      where they differ by more than rounding
  dtlint compare a.json b.json --html compared.html  a page with both beside the source
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
    "--html",
    type=click.Path(path_type=Path),
    help="Write a page for the browser, with the lines of source of both records; it is wholly in this file.",
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
def command(
    first: Path,
    second: Path,
    output_format: str,
    report_file: Path | None,
    html: Path | None,
    fail_on: str,
    quiet: bool,
) -> None:
    """Compare two records of one program that `dtlint trace --sketch` wrote, as of float32 and bfloat16.

    Two directories, which the ranks of distributed runs wrote, are compared rank by rank.

    Reports the first operator whose results differ by more than rounding explains, with its line; which modules add most;
    and what is honest rounding. Both runs need the same weights, batches and random numbers.
    """
    from dtlint.compare import CannotCompare
    from dtlint.trace.store import RecordError

    words = _fail_on(fail_on)
    for option, file in (("--report-file", report_file), ("--html", html)):
        refuse_overwriting(option, file, [first, second], "a record")
    refuse_twice((report_file, html))
    report_file, html = writable(report_file), writable(html)
    try:
        comparison, records = _compared(first, second)
    except (RecordError, CannotCompare) as error:
        raise click.UsageError(str(error)) from None
    if html is not None:
        from dtlint.report.html import write_comparison

        page = StringIO()
        write_comparison(comparison, *records, page)
        write_file("--html", html, page.getvalue())
    if report_file is not None:
        text = StringIO()
        _write(comparison, output_format, text)
        write_file("--report-file", report_file, text.getvalue())
    elif not quiet:
        _write(comparison, output_format, sys.stdout)
    click.get_current_context().exit(int(_fails(comparison, words)))


def _compared(first: Path, second: Path) -> tuple[Comparison, tuple[list[TraceRecord], list[TraceRecord]]]:
    """Of two files, of two directories, or of a file and the same rank in a directory; with the records of both runs.

    Raises:
        RecordError: there is none that can be read.
        CannotCompare: they cannot be compared.
    """
    from dtlint.compare import compare, compare_ranks
    from dtlint.trace.folder import load_folder
    from dtlint.trace.store import load

    folders = [load_folder(path) if path.is_dir() else None for path in (first, second)]
    for folder in filter(None, folders):
        for note in folder.notes():
            click.echo(f"dtlint: {note}", err=True)
    mine, its = folders
    if mine is not None and its is not None:
        for rank in sorted(mine.records.keys() ^ its.records.keys()):
            has, lacks = (first, second) if rank in mine.records else (second, first)
            click.echo(f"dtlint: rank {rank} of {has} is not in {lacks}, and is not compared", err=True)
        compared = compare_ranks(mine.records, its.records, (str(first), str(second)))
        return compared, ([*mine.records.values()], [*its.records.values()])
    one, name = (load(first), first) if mine is None else (None, first)
    other, its_name = (load(second), second) if its is None else (None, second)
    if mine is not None and other is not None:
        one, name = _same_rank(mine, other)
    if its is not None and one is not None:
        other, its_name = _same_rank(its, one)
    assert one is not None
    assert other is not None
    return compare(one, other, (str(name), str(its_name))), ([one], [other])


def _same_rank(folder: Folder, record: TraceRecord) -> tuple[TraceRecord, Path]:
    """The record of a directory that is of the same rank as this one, and its file.

    Raises:
        CannotCompare: there is none.
    """
    from dtlint.compare import CannotCompare

    if record.rank not in folder.records:
        raise CannotCompare(
            f"{folder.path} holds no record of rank {record.rank}, which the other is; give another file"
        )
    return folder.records[record.rank], folder.files[record.rank]


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
