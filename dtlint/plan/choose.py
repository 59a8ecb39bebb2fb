"""The smallest set of modules to keep in a wider dtype, and the loss scale, so that a run in float16 holds.

No module of the set can be left out; that no other set is smaller is not proved.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dtlint import __version__
from dtlint.plan.error import Errors
from dtlint.plan.flow import LOW, Flow
from dtlint.plan.problems import in_backward, in_forward, in_output
from dtlint.trace.octaves import OCTAVES
from dtlint.trace.precision_plan import PLAN_SCHEMA, Kept, Plan
from dtlint.trace.schema import CALLS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from dtlint.plan.problems import Problem
    from dtlint.trace.precision_plan import Reason
    from dtlint.trace.record import TraceRecord

__all__ = ["HEADROOM", "PlanError", "choose", "natural", "ran_by"]

HEADROOM = 2.0
"""How many times the largest values that were seen must fit: other batches bring larger ones."""

NO_ERRORS = (
    "the errors of its operators were not measured; trace it again: dtlint trace --assume float16 --shadow float32 -o"
    " run.json SCRIPT"
)

MOST_REASONS = 3
"""Reasons that are kept of a module."""


class PlanError(ValueError):
    """No plan can be made of this record; the message is one line that says what to do."""


def choose(
    record: TraceRecord,
    how: str = "autocast",
    keep_in: str = "float32",
    headroom: float = HEADROOM,
    max_error: float = 0.0,
) -> Plan:
    """A plan for the model of a run that was traced with `--assume float16`.

    With `max_error` the relative error of its output is to stay below that: see `dtlint.plan.error`.

    Raises:
        PlanError: the record does not tell what float16 would do.
    """
    _refuse(record)
    if max_error and not record.shadow:
        raise PlanError(NO_ERRORS)
    if max_error and keep_in != "float32":
        raise PlanError(f"an error is bounded by what is kept in float32: leave out --keep-in {keep_in}")
    search = _Search(record, how, headroom, max_error)
    scale = search.best_scale()
    keep = search.least(scale)
    low = search.flow.low(keep)
    entries = record.entries
    total = sum(entry.flops * entry.count for entry in entries)
    narrow = sum(e.flops * e.count for n, e in enumerate(entries) if e.flops and search.flow.computes_low(low, n))
    if keep_in == "bfloat16":
        narrow = total
    return Plan(
        plan=PLAN_SCHEMA,
        dtlint=__version__,
        argv=record.argv,
        how=how,
        keep_in=keep_in,
        device=search.flow.device,
        simulated=bool(record.simulated),
        scale=0.0 if record.scaler is not None else 2.0**scale,
        headroom=headroom,
        keep=[Kept(module, search.reasons(module, keep, scale), ran_by(record, module)) for module in keep],
        modules=len({node.module for node in search.flow.nodes if node.module}),
        share=narrow / total if total else -1.0,
        activations=_activations(search.flow, low),
        parameters=_parameters(search.flow, low, record),
        matter={weight.name: weight.share_matter for weight in record.weights if weight.looked},
        max_error=max_error,
        error=search.error(low) if keep_in == "float32" else -1.0,
    )


def _refuse(record: TraceRecord) -> None:
    if record.assume != "float16":
        raise PlanError(
            "the run was not traced with --assume float16; trace it again: dtlint trace --assume float16 -o run.json SCRIPT"
        )
    if not record.operators:
        raise PlanError("no operator was traced, so there is nothing to plan; see dtlint report")
    if record.exit_code and not any(record.places[entry.place].module for entry in record.entries):
        raise PlanError(
            f"the program ended with exit code {record.exit_code} before a model ran; let it run, and trace it again"
        )
    if not any(operand.maker is not None for entry in record.entries for operand in entry.inputs):
        raise PlanError("the record was written by an older dtlint, which did not keep what a plan needs; trace again")
    spoilt = next((event for event in record.events if event.hurts and event.kind != "came-in"), None)
    if spoilt is not None:
        raise PlanError(
            f"the run itself has inf or NaN, from {record.what(spoilt)}{record.when(spoilt)}: mend that first, see dtlint report"
        )


class _Search:
    """Sets of modules and loss scales, tried on one record."""

    def __init__(self, record: TraceRecord, how: str, headroom: float, max_error: float) -> None:
        self.flow, self.headroom, self.max_error = Flow(record, how), headroom, max_error
        self.errors = Errors(record) if record.shadow else None
        self.trains = record.scaler is None and any(entry.phase == "backward" for entry in record.entries)
        """Are gradients to be judged? A GradScaler of the program's finds their scale by itself."""

    def problems(self, keep: Collection[str], scale: int | None) -> list[Problem]:
        """All that is wrong with a set, at a loss scale of 2**scale; None leaves gradients out."""
        low = self.flow.low(keep)
        found = list(in_forward(self.flow, low, keep, self.headroom))
        if self.trains and scale is not None:
            found += in_backward(self.flow, low, keep, self.headroom, scale)
        if self.max_error and self.errors is not None:
            found += in_output(self.flow, self.errors, low, self.max_error)
        return found

    def error(self, low: list[bool]) -> float:
        """The estimate of the error of the output; -1 where nothing was measured."""
        return -1.0 if self.errors is None else self.errors.output(self.errors.in_float16(low))

    def best_scale(self) -> int:
        """The exponent of the loss scale at which the fewest modules are to be kept; the middle one of several."""
        if not self.trains:
            return 0
        keep = self._grown((), None)
        low = self.flow.low(keep)
        kept = [
            len({p.module for p in in_backward(self.flow, low, keep, self.headroom, scale)}) for scale in range(OCTAVES)
        ]
        best = [scale for scale, count in enumerate(kept) if count == min(kept)]
        return best[len(best) // 2]

    def least(self, scale: int) -> list[str]:
        """A set without problems of which no module can be left out."""
        keep = self._grown((), scale)
        for module in reversed(keep):
            fewer = [other for other in keep if other != module]
            if not self.problems(fewer, scale):
                keep = fewer
        return sorted(keep, key=natural)

    def _grown(self, keep: Iterable[str], scale: int | None) -> list[str]:
        """A set without problems: the first of them is solved in all modules where it stands, then the next.

        What is upstream comes first: with that in float32, much of what follows is float32 by promotion.
        """
        grown = dict.fromkeys(keep)
        while True:
            found = self.problems(grown, scale)
            if not found:
                return list(grown)
            grown |= dict.fromkeys(p.module for p in found if p.where == found[0].where)

    def reasons(self, module: str, keep: Collection[str], scale: int) -> list[Reason]:
        """What goes wrong without this module, the gravest first."""
        without = [other for other in keep if other != module]
        found = {p.reason.expression: p.reason for p in reversed(self.problems(without, scale)) if p.module == module}
        return list(reversed(found.values()))[:MOST_REASONS]


def _activations(flow: Flow, low: list[bool]) -> list[int]:
    """Bytes kept for the backward, as they were and as they would be; empty where no backward ran."""
    held = [(entry.held, low[number] and entry.output == "float32") for number, entry in enumerate(flow.record.entries)]
    was = sum(nbytes for nbytes, _ in held)
    return [was, sum(nbytes // 2 if halved else nbytes for nbytes, halved in held)] if was else []


def _parameters(flow: Flow, low: list[bool], record: TraceRecord) -> list[int]:
    """Bytes of the parameters, and of the copies that are made of those of modules which compute in float16."""
    was = sum(held.nbytes for held in record.memory if held.what == "parameters")
    computing = {flow.module(n) for n, one in enumerate(low) if one and flow.nodes[n].rule == LOW}
    sizes: Counter[str] = Counter()
    for weight in record.weights:
        size = 1
        for length in weight.shape:
            size *= length
        sizes[weight.name.rpartition(".")[0]] += size
    return [was, 2 * sum(size for module, size in sizes.items() if module in computing)] if was else []


def ran_by(record: TraceRecord, module: str) -> int:
    """The step, from 0, by which a module first ran an operator of its own."""
    series = record.series
    first = [_first(row.runs) for row in series.rows if row.module == module] if series is not None else []
    if series is None or not first:
        return 0
    column = min(first)
    after = series.starts[column + 1] if column + 1 < len(series.starts) else record.steps
    return max(after - 1, series.starts[column])


def _first(runs: list[list[int]]) -> int:
    """The first column with a call."""
    column = 0
    for columns, *rest in runs:
        if any(rest[CALLS - 1 :]):
            break
        column += columns
    return column


def natural(path: str) -> tuple[tuple[bool, int, str], ...]:
    """`layers.2` comes before `layers.10`."""
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in path.split("."))
