"""A precision plan as a screen of text: what is kept and why, what it saves, and whether a run has shown that it holds."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TextIO

from dtlint.report.colour import write_lines
from dtlint.report.legible import legible
from dtlint.trace.words import in_package, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.plan.verdict import Verdict
    from dtlint.report.frame import Style
    from dtlint.trace.precision_plan import Kept, Plan
    from dtlint.trace.record import TraceRecord

    Line = tuple[str, Style]

__all__ = ["verdict_lines", "write_plan"]

MOST = 20
"""Modules that the screen shows; the file has all."""

HOW = {"autocast": "under autocast", "cast": "with weights cast for the forward"}


def write_plan(plan: Plan, file: str, stream: TextIO, verified: bool = False) -> None:
    """Write the screen of a plan that is kept in `file`, or that would be. Has a run shown that it holds?"""
    write_lines(([line] for line in _plan(plan, file, verified)), stream)


def _plan(plan: Plan, file: str, verified: bool) -> Iterator[Line]:
    kept = f"{len(plan.keep):,} of {plan.modules:,} modules kept in {plan.keep_in}"
    yield f"dtlint plan: float16 {HOW[plan.how]} on {plan.device}, {kept}", "strong"
    for one in plan.keep[:MOST]:
        yield from _kept(one)
    if len(plan.keep) > MOST:
        yield f"  and {len(plan.keep) - MOST:,} more, in {file}", "plain"
    if not plan.keep:
        yield (
            f"  Nothing that the run showed needs {plan.keep_in}: all values fit {plan.headroom:g} times over.",
            "plain",
        )
    if plan.scale == 0:
        yield "Loss scale: that of the program's GradScaler", "plain"
    elif plan.scale == 1:
        yield "Loss scale: none is needed", "plain"
    else:
        yield f"Loss scale: {plan.scale:.0f}", "plain"
    if plan.share >= 0:
        yield f"Matrix work in 16 bits: {plan.share:.0%}", "plain"
    if plan.error >= 0:
        bound = f", below the {_share(plan.max_error)} that is asked for" if plan.max_error else ""
        yield f"Relative error of the output: {_share(plan.error)} at most, by estimate{bound}", "plain"
        if plan.max_error and plan.share == 0:
            yield "  nothing is left in float16: its rounding alone is more than the bound", "warning"
    yield from _memory(plan)
    if verified:
        yield "Verified: it held in the run that was recorded", "strong"
        return
    yield "Not verified: no run of it was seen. To verify it:", "warning"
    yield f"  {verifying(plan, file)}", "plain"


def _share(error: float) -> str:
    """`0.15%`; what is more than all of it is said so."""
    return f"{100 * error:.2g}%" if error < 1 else "more than 100%"


def verifying(plan: Plan, file: str) -> str:
    """The command that verifies a plan."""
    simulate = ["--simulate", plan.device] if plan.simulated else []
    return shlex.join(["dtlint", "trace", "--plan", file, *simulate, *plan.argv])


def _kept(kept: Kept) -> Iterator[Line]:
    yield f"  {legible(kept.module)}", "strong"
    for reason in kept.reasons:
        at = f" at {in_package(reason.file)}:{reason.line}" if reason.file else ""
        of = "the gradient of " if reason.backward and reason.file else ""
        yield f"    {of}{legible(shorten(reason.expression)) or reason.op}{at}: {reason.words}", "plain"


def _memory(plan: Plan) -> Iterator[Line]:
    parts = []
    if plan.activations:
        was, would = plan.activations
        parts.append(f"activations {was / 1e6:.3g} MB, about {would / 1e6:.3g} MB under the plan")
    if plan.parameters:
        was, copies = plan.parameters
        parts.append(
            f"parameters {was / 1e6:.3g} MB as before, and {copies / 1e6:.3g} MB of copies in float16 in the forward"
        )
    if parts:
        yield f"Memory: {'; '.join(parts)}", "plain"


def verdict_lines(record: TraceRecord, verdict: Verdict) -> Iterator[Line]:
    """What a run of a plan showed of it."""
    plan = record.plan
    assert plan is not None
    kept = f"{len(plan.keep):,} of {plan.modules:,} modules in {plan.keep_in}"
    if verdict.holds:
        bound = f" (asked for: {_share(plan.max_error)})" if plan.max_error else ""
        error = f", relative error of the output {_share(verdict.error)} at most{bound}" if verdict.error >= 0 else ""
        yield f"The plan holds in this run: no overflow, no lost gradient{error}, with {kept}", "strong"
        yield from _measured(record, plan)
        return
    yield f"The plan does not hold, with {kept}:", "error"
    for failure in verdict.failures[:MOST]:
        yield f"  {legible(failure)}", "plain"
    if verdict.add:
        yield f"  add {', '.join(legible(kept.module) for kept in verdict.add)}", "plain"
    if verdict.scale is not None:
        yield f"  take a loss scale of {verdict.scale:g}", "plain"
    if verdict.add or verdict.scale is not None:
        yield "  `dtlint plan RUN.json` on the record of this run makes the plan that has it", "plain"


def _measured(record: TraceRecord, plan: Plan) -> Iterator[Line]:
    held = sum(m.nbytes for m in record.memory if m.what == "activations")
    if held and plan.activations:
        yield f"  activations {held / 1e6:.3g} MB, {plan.activations[0] / 1e6:.3g} MB without the plan", "plain"
