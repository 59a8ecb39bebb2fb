"""`dtlint trace`: run a program as Python would, and report which dtypes its tensors really had.

stdout, stdin and the exit code belong to the program; the report goes to stderr or to a file.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from dtlint.cli.outputs import refuse_overwriting
from dtlint.cli.report import Reporter, report_options, writable

__all__ = ["command"]

EPILOG = """\b
Examples:
  dtlint trace train.py --epochs 1                    arguments after the script are the script's
  dtlint trace --output trace.json train.py           keep the record, see it again: dtlint report trace.json
  dtlint trace --fail-on overflow,promotion train.py  for CI: exit code 1 if a trace finds one of these
  dtlint trace -m mypackage.train --lr 0.1            a module, as with python -m

\b
Exit codes: the program's own if that is not 0; else 1 if --fail-on found something; 2 wrong usage.
"""


@click.command("trace", epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as with python -m.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the trace record into this file, for `dtlint report`.",
)
@report_options
@click.argument("script")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    script: str,
    args: tuple[str, ...],
    module: bool,
    output: Path | None,
    output_format: str,
    report_file: Path | None,
    fail_on: str,
    quiet: bool,
) -> None:
    """Run SCRIPT with its ARGS and report what its tensors were.

    The program runs as it would without the trace, only slower: the same results, but for a few gradients that torch
    rounds differently under any tracer (the report names them). Options of dtlint stand before SCRIPT.
    """
    import importlib.util

    read = [] if module else [Path(script)]
    refuse_overwriting("--output", output, read, "the script")
    refuse_overwriting("--report-file", report_file, read, "the script")
    refuse_overwriting("--report-file", report_file, [output] if output else [], "the record of --output")
    reporter = Reporter(output_format, report_file, fail_on, quiet)
    if importlib.util.find_spec("torch") is None:
        raise click.UsageError('torch is not installed here; install it with: pip install "dtlint[trace]"')
    sys.exit(_trace(script, args, module, writable(output), reporter))


def _trace(script: str, args: tuple[str, ...], module: bool, output: Path | None, reporter: Reporter) -> int:
    from dtlint.trace.record import TraceRecord, save
    from dtlint.trace.run import Program, ProgramError, run

    code = 0

    def finish(record: TraceRecord) -> None:
        nonlocal code
        try:
            if output is not None:
                save(record, output)
            code = reporter.report(record, sys.stderr)
        except OSError as error:  # the program's own exit code still counts
            click.echo(f"dtlint: the trace could not be written: {error}", err=True)
            code = 2

    try:
        status = run(Program(script, args, module), finish)
    except ProgramError as error:
        raise click.UsageError(str(error)) from None
    return status or code
