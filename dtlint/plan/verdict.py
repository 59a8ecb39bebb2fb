"""Does a plan hold? Judged by the record of a run under it; and what to add to the plan where it does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint.plan.choose import PlanError, natural, ran_by
from dtlint.plan.error import Errors
from dtlint.plan.problems import FEWEST
from dtlint.trace.balance import work
from dtlint.trace.precision_plan import Kept, Reason
from dtlint.trace.words import in_package

if TYPE_CHECKING:
    from dtlint.trace.precision_plan import Plan
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Event

__all__ = ["Verdict", "extended", "verdict"]

LOST = 0.05
"""A share of a gradient's values that may be missing beside the run without the plan: two runs are not alike to the last
unit of a ReLU."""

BACK = 16
"""By how much the loss scale is lowered where gradients overflowed."""

NO_ERRORS_UNDER_PLAN = (
    "the errors of its operators were not measured; trace it again: dtlint trace --plan plan.json --shadow float32 -o"
    " try.json SCRIPT"
)

BORN = frozenset(("overflow", "invalid", "pole", "masked-row"))


@dataclass(slots=True)
class Verdict:
    """What a run under a plan showed."""

    failures: list[str] = field(default_factory=list)
    """What went wrong, one line each; none where the plan holds."""
    add: list[Kept] = field(default_factory=list)
    """Modules to keep as well."""
    scale: float | None = None
    """Another loss scale to take."""
    error: float = -1.0
    """The relative error of the output, estimated from what a shadow measured; -1 without one."""

    @property
    def holds(self) -> bool:
        """Did nothing overflow, and was no gradient lost?"""
        return not self.failures


def verdict(record: TraceRecord, max_error: float | None = None) -> Verdict:
    """Judge a run under a plan; with a `max_error` other than the plan's, by that.

    Raises:
        PlanError: it ran under none.
    """
    plan = record.plan
    if plan is None:
        raise PlanError("the run was not one of a plan; dtlint trace --plan plan.json SCRIPT makes one")
    found = Verdict()
    fatal = next((error for error in record.errors if error.fatal), None)
    if fatal is not None:
        at = "" if fatal.place is None else _at(record, fatal.place)
        found.failures.append(f"the program ended by a dtype error{at}: {fatal.message}")
    elif record.exit_code:
        found.failures.append(f"the program ended with exit code {record.exit_code}")
    if not work(record)["float16"] and plan.share > 0 and not found.failures:
        found.failures.append(f"no matrix work ran in float16: the plan is for {plan.device}")
    for event in record.events:
        if _counts(event):
            _blame(record, plan, event, found)
    if record.scaler is not None and record.scaler.updates == record.scaler.skipped:
        found.failures.append("the GradScaler skipped every step")
    if not found.failures:
        _gradients(record, plan, found)
    if not found.failures:
        _error(record, plan, plan.max_error if max_error is None else max_error, found)
    return found


def extended(record: TraceRecord, max_error: float | None = None) -> Plan:
    """The plan of a run that showed that it does not hold, with what is missing added; the same plan if it holds.

    With a `max_error` it is the plan for that bound.

    Raises:
        PlanError: nothing that can be added would help, or the error was not measured.
    """
    if max_error and not record.shadow:
        raise PlanError(NO_ERRORS_UNDER_PLAN)
    judged, plan = verdict(record, max_error), record.plan
    assert plan is not None
    if max_error is not None:
        plan = replace(plan, max_error=max_error)
    if judged.failures and not judged.add and judged.scale is None:
        raise PlanError(f"no module can be added that would help: {judged.failures[0]}")
    added = [replace(kept, step=ran_by(record, kept.module)) for kept in judged.add]
    keep = sorted(plan.keep + added, key=lambda kept: natural(kept.module))
    scale = plan.scale if judged.scale is None else judged.scale
    changed = replace(plan, argv=record.argv, keep=keep, scale=scale, error=judged.error)
    return _measured(record, changed)


def _measured(record: TraceRecord, plan: Plan) -> Plan:
    """The plan with the share of work and the memory that its run had, as far as the modules added since leave them."""
    total = narrow = widened = 0
    for entry in record.entries:
        kept = plan.keeps(record.places[entry.place].module)
        low = plan.keep_in == "bfloat16" if kept else entry.output in ("float16", "bfloat16")
        total += entry.flops * entry.count
        narrow += entry.flops * entry.count * low
        widened += entry.held * (kept and entry.output == "float16")
    held = sum(m.nbytes for m in record.memory if m.what == "activations")
    return replace(
        plan,
        share=narrow / total if total else plan.share,
        activations=[plan.activations[0], held + widened] if held and plan.activations else plan.activations,
    )


def _counts(event: Event) -> bool:
    """Is it float16's doing, or does it spoil the run?"""
    if event.by_scaler or event.kind not in BORN:
        return event.kind == "came-in" and event.hurts
    return event.hurts or (event.kind == "overflow" and event.dtype == "float16")


def _blame(record: TraceRecord, plan: Plan, event: Event, found: Verdict) -> None:
    at = "" if event.place is None else _at(record, event.place)
    backward = event.entry is not None and record.entries[event.entry].phase == "backward"
    what = f"{record.what(event)}{at} gave {'NaN' if event.low != event.low else 'inf'} in {event.dtype}{record.when(event)}"
    found.failures.append(what)
    module = record.places[event.place].module if event.place is not None else ""
    if backward and event.kind == "overflow" and plan.scale > 1:
        found.scale = max(plan.scale / BACK, 1.0)
    elif module and not plan.keeps(module) and event.dtype == "float16" and event.place is not None:
        place = record.places[event.place]
        op = record.entries[event.entry].op if event.entry is not None else ""
        value = event.high if event.high == event.high else event.low
        reason = Reason("non-finite", value, place.file, place.line, " ".join(place.expression.split()), op, backward)
        _add(found, module, reason)


def _gradients(record: TraceRecord, plan: Plan, found: Verdict) -> None:
    for weight in record.weights:
        before = plan.matter.get(weight.name, 0.0)
        if weight.looked < FEWEST or not before:
            continue
        lost = (before - weight.share_matter) / before
        if lost > LOST:
            module = weight.name.rpartition(".")[0]
            found.failures.append(
                f"{lost:.0%} of the gradient of {weight.name} was lost: it is 0, and was not in float32"
            )
            if not plan.keeps(module):
                _add(found, module, Reason("gradient-lost-in-run", lost, "", 0, weight.name, "", True))


def _error(record: TraceRecord, plan: Plan, most: float, found: Verdict) -> None:
    """Is the error of the output below the bound? What would bring it there is added, what adds most first."""
    if not record.shadow:
        if most:
            found.failures.append("the error of the output was not measured: trace with --shadow float32")
        return
    errors = Errors(record)
    found.error = errors.output(errors.as_it_ran)
    if not most or found.error <= most:
        return
    found.failures.append(f"the error of the output is up to {found.error:.3g}, and {most:g} is asked for")
    kept = set(plan.names)

    def own(number: int) -> float:
        at = record.places[record.entries[number].place]
        return 0.0 if at.module in kept else errors.as_it_ran(number)

    while errors.output(own) > most:
        rest = errors.added(own)
        if not rest:
            found.add.clear()
            return
        entry, module = record.entries[rest[0].entry], rest[0].module
        at = record.places[entry.place]
        expression = " ".join(at.expression.split())
        _add(found, module, Reason("error", rest[0].error, at.file, at.line, expression, entry.op))
        kept.add(module)
    found.error = errors.output(own)


def _add(found: Verdict, module: str, reason: Reason) -> None:
    for kept in found.add:
        if kept.module == module:
            return
    found.add.append(Kept(module, [reason]))


def _at(record: TraceRecord, place: int) -> str:
    at = record.places[place]
    return f" at {in_package(at.file)}:{at.line}"
