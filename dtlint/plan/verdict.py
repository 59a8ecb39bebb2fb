"""Does a plan hold? Judged by the record of a run under it; and what to add to the plan where it does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint.plan.choose import PlanError, natural, ran_by
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

    @property
    def holds(self) -> bool:
        """Did nothing overflow, and was no gradient lost?"""
        return not self.failures


def verdict(record: TraceRecord) -> Verdict:
    """Judge a run under a plan.

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
    return found


def extended(record: TraceRecord) -> Plan:
    """The plan of a run that showed that it does not hold, with what is missing added; the same plan if it holds.

    Raises:
        PlanError: nothing that can be added would help.
    """
    judged, plan = verdict(record), record.plan
    assert plan is not None
    if judged.failures and not judged.add and judged.scale is None:
        raise PlanError(f"no module can be added that would help: {judged.failures[0]}")
    added = [replace(kept, step=ran_by(record, kept.module)) for kept in judged.add]
    keep = sorted(plan.keep + added, key=lambda kept: natural(kept.module))
    changed = replace(plan, keep=keep, scale=plan.scale if judged.scale is None else judged.scale)
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


def _add(found: Verdict, module: str, reason: Reason) -> None:
    for kept in found.add:
        if kept.module == module:
            return
    found.add.append(Kept(module, [reason]))


def _at(record: TraceRecord, place: int) -> str:
    at = record.places[place]
    return f" at {in_package(at.file)}:{at.line}"
