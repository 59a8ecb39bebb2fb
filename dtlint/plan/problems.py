"""What would go wrong with the values of a run if it were float16 but for some modules: operators that overflow or vanish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING
from dtlint.plan.flow import LOW
from dtlint.trace.octaves import lost_at
from dtlint.trace.precision_plan import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dtlint.plan.error import Errors
    from dtlint.plan.flow import Flow

__all__ = ["FEWEST", "Problem", "in_backward", "in_forward", "in_output"]

LIMIT = DTYPES["float16"].max

FEWEST = 64
"""Sampled values below which a share says nothing."""

VANISHED = 0.9
"""A share of the values of a result, other than 0, from which it is as good as gone. Small ones are always lost: attention
weights near 0 mean nothing."""

HALF = 0.5
"""The same share of a gradient inside the model."""

LOST = 0.01
"""The same share of the gradient of a weight, where nothing comes after it."""


FORETOLD = 1.25
"""By so much the error of a run under a plan may be larger than what was foretold of it."""

SUMS = "sum"
"""The operator of a backward that makes the gradient of a bias: it is judged as a weight's, since it may be 0 but for
rounding."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One operator, or the gradient of one weight, that float16 does not hold."""

    module: str
    """The module that would have to be kept."""
    where: tuple[object, ...]
    """The same for the same expression in other modules."""
    reason: Reason


def in_forward(flow: Flow, low: list[bool], keep: Collection[str], headroom: float) -> Iterator[Problem]:
    """Results that overflow or vanish, and operands that do not fit, in the order of the run."""
    for number, entry in enumerate(flow.record.entries):
        module = flow.module(number)
        if entry.phase != "forward" or not module or entry.output not in FLOATING:
            continue
        for maker, by in flow.between(number, keep):
            if flow.reach[maker] * headroom > LIMIT:
                yield _problem(flow, maker, by, "overflow", flow.reach[maker])
        if module in keep:
            continue
        if low[number] and flow.reach[number] * headroom > LIMIT:
            yield _problem(flow, number, module, "overflow", flow.reach[number])
            continue
        operand = max((flow.reach[maker] for maker in flow.narrowed(number, low, keep)), default=0.0)
        if operand * headroom > LIMIT:
            yield _problem(flow, number, module, "operand", operand)
        elif low[number] and entry.sampled >= FEWEST and entry.share_lost >= VANISHED:
            yield _problem(flow, number, module, "lost", entry.share_lost)


def in_backward(flow: Flow, low: list[bool], keep: Collection[str], headroom: float, scale: int) -> Iterator[Problem]:
    """Gradients that overflow or vanish at a loss scale of 2**scale."""
    for number, entry in enumerate(flow.record.entries):
        if entry.phase != "backward" or entry.output not in FLOATING:
            continue
        modules = flow.rounds(number, low, keep)
        if not modules:
            continue
        octaves = scale if number in flow.scaled else 0
        share = lost_at(octaves, entry.tiny) / entry.matter if entry.matter >= FEWEST else 0.0
        if entry.reach * 2.0**octaves * headroom > LIMIT:
            yield from (_problem(flow, number, module, "gradient-overflow", entry.reach) for module in modules)
        elif share >= HALF and entry.op != SUMS:
            yield from (_problem(flow, number, module, "gradient-lost", share) for module in modules)
    computing = {flow.module(n) for n, one in enumerate(low) if one and flow.nodes[n].rule == LOW}
    for weight in flow.record.weights:
        module, _, name = weight.name.rpartition(".")
        if module in computing and weight.matter >= FEWEST:
            share = lost_at(scale, weight.tiny) / weight.matter
            if share > LOST:
                reason = Reason("gradient-lost", share, "", 0, weight.name, "", True)
                yield Problem(module, ("weight", name), reason)


def in_output(flow: Flow, errors: Errors, low: list[bool], most: float) -> Iterator[Problem]:
    """The modules that make the error of the output larger than `most`: what adds most comes first."""
    own = errors.in_float16(low)
    if errors.output(own) <= most / FORETOLD:
        return
    for added in errors.added(own):
        one = _problem(flow, added.entry, added.module, "error", added.error)
        yield Problem(added.module, ("error", added.module), one.reason)


def _problem(flow: Flow, number: int, module: str, kind: str, value: float) -> Problem:
    entry = flow.record.entries[number]
    at = flow.record.places[entry.place]
    backward = entry.phase == "backward"
    reason = Reason(kind, value, at.file, at.line, " ".join(at.expression.split()), entry.op, backward)
    return Problem(module, (at.file, at.line, at.column, entry.op, backward), reason)
