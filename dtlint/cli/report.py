"""`dtlint report`: what a trace record says, without running anything. It needs no torch."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from dtlint.cli.outputs import Output, outputs_of, refuse_overwriting, refuse_twice, shown, writable
from dtlint.report import FORMATS
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.rule import RuntimeRule
    from dtlint.trace.judge import FailOn
    from dtlint.trace.record import TraceRecord

__all__ = ["Reporter", "command", "loaded_record", "report_options", "with_page"]

SCREEN = "screen"

FOR_PEOPLE = (SCREEN, "full", "concise")
"""The formats that people read."""


class Reporter:
    """Judges a record and writes the report that the options ask for.

    Raises:
        click.UsageError: `--fail-on` names no rule, or the report's directory is missing.
    """

    def __init__(
        self,
        format: str,
        file: Path | None,
        fail_on: str,
        quiet: bool,
        everything: bool = False,
        heading: str = "",
        outputs: Sequence[Output] = (),
    ) -> None:
        from dtlint.trace.judge import FailOn, SelectionError, runtime_rules

        self.format, self.file, self.quiet, self.everything = format, writable(file), quiet, everything
        self.outputs = [Output(output.format, writable(output.file) or output.file) for output in outputs]
        """Further reports, each into a file."""
        refuse_twice([self.file, *(output.file for output in self.outputs)])
        if everything and format not in (SCREEN, "full"):
            click.echo(f"dtlint: --all adds to the screen; --output-format {format} has all findings already", err=True)
        self.talks = not quiet and (file is not None or format in FOR_PEOPLE)
        """Is there to be a word of what was written, beside the report? Not beside one that is read by a machine."""
        self.heading = heading
        """A line above the report on the screen, where several processes write there."""
        self.here = Path.cwd()  # a program may leave it
        self.rules: dict[str, type[RuntimeRule]] = runtime_rules()
        try:
            self.fail_on: FailOn = FailOn([word.strip() for word in fail_on.split(",") if word.strip()], self.rules)
        except SelectionError as error:
            raise click.UsageError(f"--fail-on: {error}") from None

    def report(self, record: TraceRecord, stream: TextIO) -> int:
        """Write the report to the file, or else to the stream, and the others to theirs.

        1 if a finding fails the run, 2 if a rule crashed or a file could not be written, which is said then.
        """
        from dtlint.trace.judge import judge

        crashed = []

        def on_crash(rule: type[RuntimeRule], error: Exception) -> None:
            crashed.append(rule.code)
            what = in_one_line(error)
            click.echo(f"dtlint: internal error in rule {rule.code} ({rule.name}): {what}; please report it", err=True)

        diagnostics = judge(record, self.rules.values(), on_crash, self.here)
        if self.file is None and self.heading and not self.quiet:
            self._write_in_one(record, diagnostics, stream)
        elif self.file is None and not self.quiet:
            self._write(self.format, record, diagnostics, stream)
        main = [Output(self.format, self.file)] if self.file is not None else []
        written = [self._write_file(output, record, diagnostics) for output in (*main, *self.outputs)]
        if self.fail_on.asked and not record.torch and record.unseen:
            click.echo("dtlint: nothing was traced, so that --fail-on could not be judged", err=True)
            return 2
        return 2 if crashed or not all(written) else int(any(map(self.fail_on.matches, diagnostics)))

    def _write_in_one(self, record: TraceRecord, diagnostics: Sequence[Any], stream: TextIO) -> None:
        """So that the reports of several processes do not mix line by line."""
        text = StringIO()
        self._write(self.format, record, diagnostics, text)
        stream.write(f"{self.heading}\n{text.getvalue()}")
        stream.flush()

    def _write_file(self, output: Output, record: TraceRecord, diagnostics: Sequence[Any]) -> bool:
        """Could it be written? The others are, all the same."""
        from dtlint.atomic import write_text

        text = StringIO()
        self._write(output.format, record, diagnostics, text)
        try:
            write_text(output.file, text.getvalue())
        except OSError as error:
            click.echo(f"dtlint: the report {output.file} could not be written: {error.strerror or error}", err=True)
            return False
        if self.talks:
            click.echo(f"dtlint: wrote the report {shown(output.file, self.here)}", err=True)
        return True

    def _write(self, format: str, record: TraceRecord, diagnostics: Sequence[Any], stream: TextIO) -> None:
        from dtlint.report import write
        from dtlint.report.trace_text import write_trace
        from dtlint.trace.judge import as_rules

        if format in (SCREEN, "full"):
            write_trace(record, diagnostics, stream, self.everything)
        if format == "full" and diagnostics:
            stream.write("\n")
        if format == "html":
            from dtlint.report.html import write_run

            write_run(record, diagnostics, stream, as_rules(self.rules))
        elif format != SCREEN:
            write(diagnostics, format, stream, as_rules(self.rules))
        stream.flush()


def with_page(reports: tuple[Output, ...], html: Path | None) -> tuple[Output, ...]:
    """The reports, and that of `--html`."""
    return reports if html is None else (*reports, Output("html", html))


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `trace` and `report` share."""
    for option in reversed(
        (
            click.option(
                "--output-format",
                type=click.Choice((SCREEN, *FORMATS)),
                default=SCREEN,
                show_default=True,
                help="One screen of answers; with code frames (full); or the findings alone.",
            ),
            click.option(
                "--report-file",
                "--output-file",
                type=click.Path(path_type=Path),
                help="Write the report into this file.",
            ),
            click.option(
                "--report",
                "reports",
                callback=outputs_of((SCREEN, *FORMATS)),
                multiple=True,
                metavar="FORMAT:FILE",
                help="Write a report of this format into a file, beside the main one; may be repeated.",
            ),
            click.option(
                "--html",
                type=click.Path(path_type=Path),
                help="Write a page for the browser, which is wholly in this file: the same as --report html:FILE.",
            ),
            click.option(
                "--fail-on",
                default="",
                metavar="RULES",
                help="Exit with 1 if these rules find something: names, codes or prefixes, by commas; or `any`,"
                " which leaves out mere information.",
            ),
            click.option("--quiet", "-q", is_flag=True, help="Show no report."),
        )
    ):
        function = option(function)
    return function


EPILOG = """\b
Examples:
  dtlint report trace.json                         the screen that the trace ended with
  dtlint report trace.json --all                   and below it every cast, promotion, range, weight, byte
  dtlint report trace.json --output-format full    every finding with its lines of source
  dtlint report trace.json --html trace.html       a page with all of it, for the browser
  dtlint report trace.json --report sarif:trace.sarif --report gitlab:quality.json
  dtlint report trace.json --fail-on overflow,DT905
  dtlint report traces/                            the records of all ranks, merged

\b
Exit codes: 0, or 1 if --fail-on found something; 2 wrong usage or internal error.
"""


@click.command("report", epilog=EPILOG)
@click.argument("record", type=click.Path(path_type=Path))
@report_options
@click.option("--all", "everything", is_flag=True, help="Below the screen, all that the record holds, in sections.")
def command(
    record: Path,
    output_format: str,
    report_file: Path | None,
    reports: tuple[Output, ...],
    html: Path | None,
    fail_on: str,
    quiet: bool,
    everything: bool,
) -> None:
    """Show RECORD, a file that `dtlint trace --output` wrote. torch need not be installed.

    Of a directory, the records of all ranks of a distributed run are merged, and each event names the rank it was born on.
    """
    from dtlint.trace.store import RecordError

    refuse_overwriting("--report-file", report_file, [record], "the record")
    reports = with_page(reports, html)
    for output in reports:
        refuse_overwriting("--report", output.file, [record], "the record")
    reporter = Reporter(output_format, report_file, fail_on, quiet, everything, outputs=reports)
    try:
        loaded = loaded_record(record)
    except RecordError as error:
        raise click.UsageError(str(error)) from None
    try:
        code = reporter.report(loaded, sys.stdout)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.UsageError(f"cannot write the report: {error}") from None
    click.get_current_context().exit(code)


def loaded_record(path: Path) -> TraceRecord:
    """The record in a file, or those of all ranks in a directory, merged; what is passed over is said on stderr.

    Raises:
        RecordError: there is none that can be read, or those of several runs are.
    """
    from dtlint.trace.folder import load_record

    return load_record(path, lambda note: click.echo(f"dtlint: {note}", err=True))
