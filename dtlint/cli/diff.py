"""`dtlint diff`: what changed in the dtypes of a program between two runs. It runs nothing and needs no torch."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from dtlint.cli.outputs import refuse_overwriting, writable, write_file

if TYPE_CHECKING:
    from dtlint.diff.changes import Change
    from dtlint.diff.facts import Facts
    from dtlint.trace.record import TraceRecord

__all__ = ["FACTOR", "Baseline", "check_factor", "command"]

FACTOR = 8.0
"""How many times larger a magnitude must be to count."""

EPILOG = """\b
Examples:
  dtlint trace --output old.json train.py        before the change
  dtlint trace --output new.json train.py        after it
  dtlint diff old.json new.json                  what changed in its dtypes, and why
  dtlint diff dtypes.json new.json               against a baseline, see: dtlint trace --baseline

\b
Exit codes: 0 no regression, 1 a regression (with --strict: any change), 2 wrong usage or internal error.
To compare what two runs computed, and not in which dtypes: dtlint compare.
"""


class Baseline:
    """The facts in a file that the runs of a program are held to, or that one of them makes anew."""

    def __init__(self, file: Path, update: bool, factor: float, quiet: bool) -> None:
        """Read it, before the program runs.

        Raises:
            click.UsageError: it cannot be read, or is to be made anew and cannot be written.
        """
        from dtlint.diff.baseline import is_baseline, load_facts
        from dtlint.trace.store import RecordError

        self.file, self.update, self.factor, self.quiet = file.absolute(), update, factor, quiet
        if update:
            writable(file)
            if file.exists() and file.stat().st_size and not is_baseline(file):
                raise click.UsageError(f"--baseline {file} would overwrite what is no baseline; name another file")
        elif not file.exists():
            raise click.UsageError(f"there is no baseline {file}; make it with --update-baseline")
        self.facts: Facts | None = None
        try:
            self.facts = load_facts(file, _say) if file.exists() else None
        except RecordError as error:
            if not update:
                raise click.UsageError(str(error)) from None

    def hold(self, record: TraceRecord) -> int:
        """Compare a run with it, or write it: 1 for a regression, 2 where nothing can be said. Told on stderr."""
        if not record.operators:
            click.echo(f"dtlint: nothing was traced; the baseline {self.file} is as it was", err=True)
            return 2
        if self.update:
            return self._write(record)
        from dtlint.diff.changes import changes

        assert self.facts is not None
        found = changes(self.facts, record, self.factor)
        if not self.quiet:
            _write(found, "text", self.facts, record, sys.stderr)
        return int(any(change.regression for change in found))

    def _write(self, record: TraceRecord) -> int:
        from dtlint.diff.baseline import save_facts, settled
        from dtlint.diff.facts import facts_of

        if record.exit_code:
            click.echo(f"dtlint: the program failed; the baseline {self.file} is as it was", err=True)
            return 2
        facts = facts_of(record)
        try:
            save_facts(facts if self.facts is None else settled(facts, self.facts, self.factor), self.file)
        except OSError as error:
            click.echo(f"dtlint: the baseline {self.file} could not be written: {error.strerror or error}", err=True)
            return 2
        if not self.quiet:
            click.echo(f"dtlint: wrote the baseline {self.file.name}", err=True)
        return 0


@click.command("diff", epilog=EPILOG)
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--factor",
    type=float,
    default=FACTOR,
    show_default=True,
    help="How many times larger a magnitude in float16 or float8 must be to count.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for any change, a narrower dtype included.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "--report-file", "--output-file", type=click.Path(path_type=Path), help="Write the report into this file."
)
def command(old: Path, new: Path, factor: float, strict: bool, output_format: str, report_file: Path | None) -> None:
    """What changed in the dtypes of a program from OLD, a record or a baseline, to NEW, a record of `dtlint trace --output`.

    Operators are paired by module and source text, not by line. Each cause is reported once: a promotion or a cast that was
    not there, an operator, a weight or an input with another dtype, a larger magnitude. What only followed is folded
    below it.
    """
    from dtlint.diff.baseline import is_baseline, load_facts, load_record
    from dtlint.diff.changes import changes
    from dtlint.trace.store import RecordError

    check_factor(factor)
    refuse_overwriting("--report-file", report_file, [old, new], "what it compares")
    report_file = writable(report_file)
    try:
        if is_baseline(new):
            raise click.UsageError(
                f"{new} is a baseline, which does not show why; give a record of dtlint trace --output"
            )
        facts, record = load_facts(old, _say), load_record(new, _say)
    except RecordError as error:
        raise click.UsageError(str(error)) from None
    found = changes(facts, record, factor)
    text = StringIO()
    _write(found, output_format, facts, record, text if report_file else sys.stdout)
    if report_file:
        write_file("--report-file", report_file, text.getvalue())
    failed = found if strict else [change for change in found if change.regression]
    click.get_current_context().exit(int(bool(failed)))


def _say(note: str) -> None:
    click.echo(f"dtlint: {note}", err=True)


def check_factor(factor: float) -> None:
    """Refuse one that says nothing.

    Raises:
        click.UsageError: it is less than 1, or no number.
    """
    if not factor >= 1:
        raise click.UsageError(f"--factor {factor:g} is less than 1; give how many times larger, such as 8")


def _write(found: list[Change], format: str, facts: Facts, record: TraceRecord, stream: TextIO) -> None:
    from dtlint.report.dtype_diff import write

    notes = []
    version = record.torch.partition("+")[0]
    if facts.torch != version:
        notes.append(f"the earlier run had torch {facts.torch}, this one {version}: operators may differ")
    if record.watched == []:
        notes.append("--only dtypes follows no values: what only followed from a change is reported like a cause")
    if record.exit_code:
        notes.append("the run ended by an error, and may not have come to all that the earlier one ran")
    write(found, format, stream, notes)
