"""`dtlint plan`: which modules must stay in float32 if the rest runs in float16. It reads a record and needs no torch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dtlint.cli.outputs import refuse_overwriting, writable

if TYPE_CHECKING:
    from dtlint.trace.precision_plan import Plan
    from dtlint.trace.record import TraceRecord

__all__ = ["command"]

EPILOG = """\b
Examples:
  dtlint trace --assume float16 -o run.json train.py   the run that a plan is made from: float32 or bfloat16
  dtlint plan run.json -o plan.json                    the plan, on the screen and as data
  dtlint trace --plan plan.json -o try.json train.py   does it hold? exit code 1 if it does not
  dtlint plan try.json -o plan.json                    then: the plan with what that run showed to be missing
  dtlint plan run.json --code autocast > precision.py  code to paste
  dtlint trace --assume float16 --shadow float32 -o run.json train.py
  dtlint plan run.json --max-error 0.01 -o plan.json   with a bound on the error of the output

\b
Exit codes: 0, or 2 for wrong usage, a record that no plan can be made from, or an internal error.
"""


@click.command("plan", epilog=EPILOG)
@click.argument("record", type=click.Path(path_type=Path))
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write the plan into this file.")
@click.option(
    "--how",
    type=click.Choice(("autocast", "cast")),
    help="How float16 is brought about: by autocast (the default), or by casting weights and inputs, as FSDP2 does.",
)
@click.option(
    "--keep-in",
    type=click.Choice(("float32", "bfloat16")),
    help="The dtype of what is kept; float32 by default.",
)
@click.option(
    "--headroom",
    type=click.FloatRange(min=1),
    metavar="N",
    help="The largest values that were seen must fit N times over; 2 by default.",
)
@click.option(
    "--max-error",
    type=click.FloatRange(min=0, min_open=True),
    metavar="X",
    help="Keep the relative error of the output below X, as 0.01: of a run that was traced with --shadow float32 as well.",
)
@click.option(
    "--code",
    "kind",
    type=click.Choice(("autocast", "fsdp2", "names")),
    help="Print code to paste instead: autocast regions, FSDP2 policies, or the names of the kept modules.",
)
def command(
    record: Path,
    output: Path | None,
    how: str | None,
    keep_in: str | None,
    headroom: float | None,
    max_error: float | None,
    kind: str | None,
) -> None:
    """Plan from RECORD which modules stay in float32 while the others run in float16, so that nothing overflows or vanishes.

    RECORD is of a float32 or bfloat16 run that was traced with --assume float16. Of a run that tried a plan, what it
    showed to be missing is added to that plan. With --max-error, the error of what the model gives is bounded as well.
    """
    from dtlint.cli.report import loaded_record
    from dtlint.plan.choose import PlanError
    from dtlint.trace.store import RecordError

    refuse_overwriting("--output", output, [record], "the record")
    target = writable(output)
    try:
        loaded = loaded_record(record)
        plan = _plan(loaded, how, keep_in, headroom, max_error)
    except RecordError as error:
        raise click.UsageError(str(error)) from None
    except PlanError as error:
        raise click.UsageError(f"{record}: {error}") from None
    text = _code(plan, kind) if kind is not None else None
    if target is not None:
        from dtlint.plan.file import save

        try:
            save(plan, target)
        except OSError as error:
            raise click.UsageError(f"cannot write {output}: {error.strerror or error}") from None
    if text is not None:
        click.echo(text, nl=False)
    else:
        from dtlint.report.plan_text import write_plan

        write_plan(plan, str(output or "plan.json"), sys.stdout, verified=_holds(loaded, plan))


def _plan(
    record: TraceRecord, how: str | None, keep_in: str | None, headroom: float | None, max_error: float | None
) -> Plan:
    from dtlint.plan.choose import HEADROOM, choose
    from dtlint.plan.verdict import extended

    if record.plan is None:
        return choose(record, how or "autocast", keep_in or "float32", headroom or HEADROOM, max_error or 0.0)
    if how or keep_in or headroom:
        raise click.UsageError(
            "--how, --keep-in and --headroom are for a new plan, and this record tried one: leave them out"
        )
    return extended(record, max_error)


def _holds(record: TraceRecord, plan: Plan) -> bool:
    """Is it the record of a run in which this plan held?"""
    from dtlint.plan.verdict import verdict

    return record.plan is not None and record.plan.names == plan.names and verdict(record, plan.max_error).holds


def _code(plan: Plan, kind: str) -> str:
    from dtlint.plan.code import code

    try:
        return code(plan, kind)
    except ValueError as error:
        raise click.UsageError(f"--code {kind}: {error}") from None
