"""`dtlint trace`: run a program as Python would, and report which dtypes its tensors really had.

stdout, stdin and the exit code belong to the program; the report goes to stderr or to a file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dtlint.cli.misplaced import Misplaced
from dtlint.cli.outputs import Output, made_if_directory, refuse_overwriting, shown, writable
from dtlint.cli.report import Reporter, report_options, with_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.cli.diff import Baseline
    from dtlint.cli.profile import Profiling
    from dtlint.trace.options import Options
    from dtlint.trace.precision_plan import Plan
    from dtlint.trace.program import Program
    from dtlint.trace.rank import Rank
    from dtlint.trace.record import TraceRecord

__all__ = ["command"]

EPILOG = """\b
Examples:
  dtlint trace train.py --epochs 1                    arguments after the script are the script's
  dtlint trace --output trace.json train.py           keep the record, see it again: dtlint report trace.json
  dtlint trace --fail-on overflow,promotion train.py  for CI: exit code 1 if a trace finds one of these
  dtlint trace -m mypackage.train --lr 0.1            a module, as with python -m
  dtlint trace --every 50 --only dtypes train.py      a long run, at hardly any cost
  torchrun --nproc-per-node 2 -m dtlint trace -o traces/ train.py     then: dtlint report traces/

\b
Exit codes: the program's own if that is not 0; else 1 if --fail-on found something, the --plan does not hold,
or the dtypes are worse than the --baseline; 2 wrong usage, or a report that could not be written.
"""


def look_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what to look at."""
    for option in reversed(
        (
            click.option(
                "--steps",
                metavar="A:B",
                help="Trace only the steps from A to B, counted from 1; either may be left out. A step ends with an"
                " optimizer's, or where the program calls dtlint.step().",
            ),
            click.option("--every", metavar="N", type=int, default=1, help="Trace one step in N; off in between."),
            click.option("--only", metavar="WHAT", help="`dtypes`: judge no values, which is cheaper."),
            click.option("--watch", metavar="DTYPES", default="", help="Judge values of these dtypes only, by commas."),
            click.option(
                "--module",
                "modules",
                metavar="PATTERN",
                multiple=True,
                help="Record only operators within modules of this path, such as blocks.0 or '*.attn'; may be repeated.",
            ),
            click.option(
                "--eager",
                is_flag=True,
                help="Run functions under torch.compile eagerly, with values; else they run compiled, and are known by"
                " the dtypes in their graphs. Implied by --assume, --plan and --simulate.",
            ),
            click.option(
                "--time", is_flag=True, help="Also measure each operator, and estimate what 16 bits gain or would gain."
            ),
            click.option("--assume", metavar="DTYPE", help="Also report what this dtype would have done: float16."),
            click.option(
                "--shadow",
                metavar="DTYPE",
                help="Compute each operator in low precision once more in this dtype, float32 or float64, and report its own"
                " error. A step takes several times as long: see --every.",
            ),
            click.option(
                "--sketch",
                is_flag=True,
                help="Keep sketches of the values in the record, for `dtlint compare`: of the first 4 steps traced, then"
                " of ever fewer.",
            ),
        )
    ):
        function = option(function)
    return function


@click.command("trace", epilog=EPILOG, context_settings={"allow_interspersed_args": False})
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module, as with python -m.")
@click.option(
    "--output",
    "-o",
    type=click.Path(),
    callback=made_if_directory,
    help="Write the trace record into this file or directory (DIR/ is made), for `dtlint report`; each rank its own.",
)
@click.option(
    "--simulate",
    metavar="DEVICE",
    help="Run a program that asks for this device on the CPU, as if it were there: cuda.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Run the models in float16 as this file of `dtlint plan` says, and report whether it holds: exit code 1 if not.",
)
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Compare the dtypes with those in this file: exit code 1 if a dtype got wider, or a promotion or cast is new.",
)
@click.option("--update-baseline", is_flag=True, help="Write this run's dtypes into the --baseline instead.")
@click.option(
    "--factor",
    type=float,
    help="With --baseline, as in `dtlint diff`: how many times larger is too large; 8 by default.",
)
@click.option(
    "--profile",
    metavar="DIR",
    help="Run torch.profiler beside the trace for the first steps, and write its file into DIR, with dtlint's events.",
)
@look_options
@report_options
@click.argument("script", type=click.Path(readable=False))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    script: str,
    args: tuple[str, ...],
    module: bool,
    output: Path | None,
    simulate: str | None,
    plan_file: Path | None,
    baseline: Path | None,
    update_baseline: bool,
    factor: float | None,
    profile: str | None,
    output_format: str,
    report_file: Path | None,
    reports: tuple[Output, ...],
    html: Path | None,
    fail_on: str,
    quiet: bool,
    **look: Any,
) -> None:
    """Run SCRIPT with its ARGS and report what its tensors were.

    The program runs as it would without the trace, only slower: the same results, but for a few gradients that torch
    rounds differently under any tracer (the report names them). Under --plan its models run in float16, on purpose.
    Options of dtlint stand before SCRIPT.
    """
    import importlib.util

    from dtlint.trace.program import Program
    from dtlint.trace.rank import Rank

    if not module and script.endswith(".ipynb"):
        raise click.UsageError(
            f"{script} is a notebook: convert it to a script (jupyter nbconvert --to script), and trace that"
        )
    options = _options(**{**look, "eager": look["eager"] or simulate is not None or look["assume"] is not None})
    plan = None
    if plan_file is not None:
        plan = _loaded_plan(plan_file)
        options = _for_plan(options, plan)
    rank = Rank.here()
    output, report_file = (path and rank.file(path) for path in (output, report_file))
    reports = tuple(Output(format, rank.file(file)) for format, file in with_page(reports, html))
    read = {"the script": None if module else Path(script), "the plan": plan_file, "the baseline": baseline}
    for option, file in (("--output", output), ("--report-file", report_file), *(("--report", f) for _, f in reports)):
        for what, kept in read.items():
            refuse_overwriting(option, file, [kept] if kept else [], what)
        if file is not output:
            refuse_overwriting(option, file, [output] if output else [], "the record of --output")
    heading = f"dtlint: rank {rank.number} of {rank.world}" if rank.world > 1 else ""
    reporter = Reporter(output_format, report_file, fail_on, quiet, heading=heading, outputs=reports)
    if not options.watch and reporter.fail_on.of_values:
        never = ", ".join(reporter.fail_on.of_values)
        raise click.UsageError(f"--fail-on {never} could never fail: --only dtypes judges no values; leave it out")
    if options.sketch and output is None:
        raise click.UsageError("--sketch keeps values for `dtlint compare`: name a file for the record with --output")
    if importlib.util.find_spec("torch") is None:
        from dtlint.trace.words import NO_TORCH

        raise click.UsageError(NO_TORCH)
    if simulate is not None:
        if options.time:
            raise click.UsageError("--time: a simulated device has no times; leave out --simulate or --time")
        _refuse_simulating(simulate)
    held = _baseline(baseline, update_baseline, factor, quiet, rank)
    profiling = None
    if profile is not None:
        from dtlint.cli.profile import Profiling

        profiling = Profiling(profile, script, rank.number, quiet)
    misplaced = Misplaced(command, args)
    code = _trace(Program(script, args, module), options, writable(output), reporter, simulate, plan, held, profiling)
    hint = misplaced.hint(code) if rank.number == 0 else ""
    if hint:
        click.echo(hint, err=True)
    sys.exit(code)


def _baseline(file: Path | None, update: bool, factor: float | None, quiet: bool, rank: Rank) -> Baseline | None:
    """What the run is held to, on the first rank alone."""
    from dtlint.cli.diff import FACTOR, Baseline, check_factor

    if file is None and update:
        raise click.UsageError("--update-baseline writes the file of --baseline; name one")
    if file is None and factor is not None:
        raise click.UsageError("--factor says how much larger than in the --baseline is too large; name one")
    factor = FACTOR if factor is None else factor
    check_factor(factor)
    return Baseline(file, update, factor, quiet) if file is not None and rank.number == 0 else None


def _options(
    steps: str | None,
    every: int,
    only: str | None,
    watch: str,
    modules: tuple[str, ...],
    assume: str | None,
    eager: bool,
    time: bool,
    sketch: bool,
    shadow: str | None,
) -> Options:
    from dtlint.trace.options import Options, OptionsError

    try:
        watched = [name for name in watch.split(",") if name.strip()]
        return Options.parse(steps, every, only, watched, modules, assume, eager, time, sketch=sketch, shadow=shadow)
    except OptionsError as error:
        raise click.UsageError(f"--{error}") from None


def _loaded_plan(file: Path) -> Plan:
    from dtlint.plan.file import load
    from dtlint.trace.store import RecordError

    try:
        return load(file)
    except RecordError as error:
        raise click.UsageError(f"--plan: {error}") from None


def _for_plan(options: Options, plan: Plan) -> Options:
    """What must be looked at for a plan to be judged: with a bound on the error, what a shadow measures."""
    from dataclasses import replace

    if options.assume or options.modules or "float16" not in options.watch:
        raise click.UsageError(
            "--plan looks at the values of all modules: leave out --assume, --module, --only and --watch"
        )
    shadow = options.shadow or ("float32" if plan.max_error else None)
    return replace(options, gradients=True, eager=True, shadow=shadow, gains=shadow is not None)


def _refuse_simulating(device: str) -> None:
    from dtlint.trace.simulate import why_not

    reason = why_not(device)
    if reason:
        raise click.UsageError(f"--simulate: {reason}")


def _trace(
    program: Program,
    options: Options,
    output: Path | None,
    reporter: Reporter,
    simulate: str | None,
    plan: Plan | None,
    baseline: Baseline | None,
    profiling: Profiling | None,
) -> int:
    from dtlint.trace.program import ProgramError
    from dtlint.trace.progress import Progress
    from dtlint.trace.run import run
    from dtlint.trace.store import save

    code, refused = 0, False

    def finish(record: TraceRecord) -> None:
        nonlocal code, refused
        if record.plan_problem:
            click.echo(f"dtlint trace: --plan: {record.plan_problem}", err=True)
            refused = True
            return
        saved = False
        if output is not None:
            try:
                save(record, output)
            except OSError as error:  # the program's own exit code still counts, and there is the report
                click.echo(f"dtlint: the trace could not be written: {error}", err=True)
                code = 2
            else:
                saved = True
        try:
            code = max(code, reporter.report(record, sys.stderr), int(not _holds(record)))
        except OSError as error:
            click.echo(f"dtlint: the report could not be written: {error}", err=True)
            code = 2
        if saved and output is not None and reporter.talks:
            click.echo(f"dtlint: wrote the record {shown(output, reporter.here)}", err=True)
        if baseline is not None:
            code = max(code, baseline.hold(record))
        if profiling is not None:
            code = max(code, profiling.write())

    try:
        progress = None if reporter.quiet else Progress.where_seen(sys.stderr)
        taking = profiling.take if profiling is not None else None
        status = run(program, finish, simulate, options, progress, plan, taking)
    except ProgramError as error:
        raise click.UsageError(str(error)) from None
    return 2 if refused else status or code


def _holds(record: TraceRecord) -> bool:
    """Does the plan of this run hold, if there is one?"""
    if record.plan is None:
        return True
    from dtlint.plan.verdict import verdict

    return verdict(record).holds
