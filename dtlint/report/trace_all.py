"""All that a trace record holds, in sections: what `dtlint report --all` shows below the screen.

Each section is one function that says nothing where the record has nothing to say.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.report.legible import legible
from dtlint.report.shadow_text import every_local_error
from dtlint.trace.balance import kept_wide, used_autocast, wide_work
from dtlint.trace.schema import NO_FILE
from dtlint.trace.words import in_package, shorten, times

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dtlint.report.frame import Style
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

__all__ = ["sections"]

MOST = 40
"""Lines per section; the record itself has no such end."""

FAR = 1e-3
"""A share of a dtype's limit below which a range is of no interest."""

LOWER = {"float64": "float32", "float32": "bfloat16"}
"""The dtype that a step down would give, at half the bytes."""

REMOTE = ("c10d::", "_c10d_functional::", "_c10d_functional_autograd::", "fsdp::")
"""How the names of collectives begin."""


def sections(record: TraceRecord) -> Iterator[tuple[str, Style]]:
    """The lines, each with its style."""
    for title, section in SECTIONS.items():
        lines = list(section(record))
        if lines:
            yield "", "plain"
            yield title, "strong"
            for line in lines[:MOST]:
                yield f"  {legible(line)}", "plain"
            if len(lines) > MOST:
                yield f"  and {len(lines) - MOST:,} more", "plain"


def _at(record: TraceRecord, place: int | None) -> str:
    if place is None:
        return ""
    at = record.places[place]
    return "a place in autograd" if at.file == NO_FILE else f"{in_package(at.file)}:{at.line}"


def _events(record: TraceRecord) -> Iterator[str]:
    for event in sorted(record.events, key=lambda event: event.step):
        where = f" at {_at(record, event.place)}" if event.place is not None else ""
        operands = record.operands(event)
        inputs = f", {operands}" if operands else ""
        expected = ", as the GradScaler expects" if event.by_scaler else ""
        yield (
            f"{event.kind}{record.when(event)}: {record.what(event)}{where}, {event.dtype}{inputs};"
            f" {event.times:,} in all; {event.fate}{expected}"
        )


def _skips(record: TraceRecord) -> Iterator[str]:
    scaler = record.scaler
    if scaler is None:
        return
    if scaler.scale is not None and scaler.lowest is not None:
        yield f"scale at the end {scaler.scale:g}, lowest {scaler.lowest:g}; {scaler.skipped:,} of {scaler.updates:,} skipped"
    for skip in scaler.skips:
        if skip.event is None:
            yield f"step {skip.step + 1} was skipped; what made its gradients non-finite was not seen"
        else:
            event = record.events[skip.event]
            at = _at(record, event.place)
            yield f"step {skip.step + 1} was skipped because of {record.what(event)}{' at ' * bool(at)}{at}"


def _weights(record: TraceRecord) -> Iterator[str]:
    kinds: Counter[tuple[str, str, tuple[str, ...]]] = Counter(
        (weight.dtype, weight.gradient, tuple(weight.states)) for weight in record.weights
    )
    for (dtype, gradient, states), count in kinds.most_common():
        with_states = f", optimizer states in {' and '.join(states)}" if states else ", no optimizer states"
        with_gradient = f"gradients in {gradient}" if gradient else "no gradient"
        yield f"{count:,} weights in {dtype}, {with_gradient}{with_states}"
    for weight in sorted(record.weights, key=lambda weight: -weight.share_stuck):
        if weight.stuck:
            yield f"{weight.share_stuck:.0%} of {weight.name} kept still ({weight.dtype}, {weight.checked:,} values looked at)"


def _memory(record: TraceRecord) -> Iterator[str]:
    for held in record.memory:
        lower = LOWER.get(held.dtype)
        saves = f"; {held.nbytes / 2e6:.3g} MB less in {lower}" if lower else ""
        yield f"{held.nbytes / 1e6:8.3g} MB {held.what} in {held.dtype}{saves}"


def _wide(record: TraceRecord) -> Iterator[str]:
    wide = wide_work(record) if used_autocast(record) else []
    total = sum(entry.flops * entry.count for entry in record.entries)
    for one in wide:
        at = _at(record, one.entry.place)
        yield f"{one.flops / total:4.0%} {one.entry.op} in {one.entry.output} at {at}: {one.why}"


def _kept(record: TraceRecord) -> Iterator[str]:
    for kept in kept_wide(record):
        yield f"{kept.op.lstrip('_')}, {kept.count:,} calls, as at {_at(record, kept.entry.place)}: it is on autocast's float32 list"


def _casts(record: TraceRecord) -> Iterator[str]:
    for group in record.by_line([entry for entry in record.entries if entry.author]):
        entry = group[0]
        sampled, lost = sum(e.sampled for e in group), sum(e.lost for e in group)
        parts = [
            f"{entry.inputs[-1].dtype} to {entry.output} at {_at(record, entry.place)}{record.modules(group)}",
            f"{entry.author}, {record.calls(group)}, {sum(e.nbytes for e in group) / 1e6:.3g} MB",
        ]
        if lost:
            parts.append(f"{lost / sampled:.2%} of the values became 0")
        trips = sum(e.round_trips for e in group)
        if trips:
            parts.append(f"undoes a cast {trips:,} times")
        yield "; ".join(parts)


def _findings(*kinds: str) -> Callable[[TraceRecord], Iterator[str]]:
    def section(record: TraceRecord) -> Iterator[str]:
        for group in record.by_line([entry for entry in record.entries if entry.finding in kinds]):
            entry = group[0]
            inputs = " and ".join(dict.fromkeys(operand.dtype for operand in entry.inputs))
            culprit = entry.inputs[entry.culprit] if entry.culprit is not None else None
            known = culprit is not None and (culprit.name or culprit.origin is not None or "int" not in culprit.dtype)
            blame = f"; by {record.origin(culprit)}" if culprit is not None and known else ""
            phase = " (backward)" if entry.phase == "backward" else ""
            at = f"{_at(record, entry.place)}{record.modules(group)}"
            yield f"{inputs} to {entry.output} in {entry.op}{phase} at {at}, {record.calls(group)}{blame}"

    return section


def _ranges(record: TraceRecord) -> Iterator[str]:
    near: list[tuple[float, Entry]] = []
    for entry in record.entries:
        info = DTYPES.get(record.assume or entry.output or "")
        if info is not None and info.max > 1 and entry.reach > FAR * info.max:
            near.append((entry.reach / info.max, entry))
    for share, entry in sorted(near, key=lambda pair: -pair[0]):
        at = record.places[entry.place]
        phase = " (backward)" if entry.phase == "backward" else ""
        of = f" of {record.assume}'s limit" if record.assume else ""
        yield (
            f"{share:6.1%}{of} {entry.op}{phase} in {entry.output}, {entry.low:.4g} to {entry.high:.4g},"
            f" {shorten(at.expression)} at {in_package(at.file)}:{at.line}"
        )


def _vanishes(record: TraceRecord) -> Iterator[str]:
    lost = [entry for entry in record.entries if entry.lost and not entry.author]
    for entry in sorted(lost, key=lambda entry: -entry.share_lost):
        phase = " (backward)" if entry.phase == "backward" else ""
        yield f"{entry.share_lost:6.1%} of {entry.op}{phase} in {entry.output} at {_at(record, entry.place)}"


def _communication(record: TraceRecord) -> Iterator[str]:
    steps = max(record.steps, 1)
    for group in record.by_line([entry for entry in record.entries if entry.op.startswith(REMOTE)]):
        entry = group[0]
        dtypes = " and ".join(dict.fromkeys(operand.dtype for operand in entry.inputs)) or "no tensors"
        moved = sum(e.nbytes for e in group) / steps / 1e6
        yield f"{entry.op} of {dtypes} at {_at(record, entry.place)}, {record.calls(group)}, {moved:.3g} MB a step"


def _errors(record: TraceRecord) -> Iterator[str]:
    for error in record.errors:
        end = "the program ended by it" if error.fatal else f"caught, {times(error.count)}"
        yield f"{error.op} at {_at(record, error.place)}: {error.message} ({end})"
        for name, operand in zip(error.arguments, error.operands, strict=False):
            yield f"    {name} is {operand.dtype}, from {record.origin(operand)}"


def _unseen(record: TraceRecord) -> Iterator[str]:
    for unseen in record.unseen:
        first = f", first at {_at(record, unseen.place)}" if unseen.place is not None else ""
        yield f"{unseen.what} ({unseen.count:,}){first}"


SECTIONS: dict[str, Callable[[TraceRecord], Sequence[str] | Iterator[str]]] = {
    "dtype errors": _errors,
    "Non-finite values": _events,
    "GradScaler": _skips,
    "Weights": _weights,
    "Memory, at its most": _memory,
    "Matrix work in float32 and wider": _wide,
    "Kept in float32 by autocast": _kept,
    "Casts": _casts,
    "Promotions": _findings("promoted"),
    "float64": _findings("float64", "float64-data"),
    "Integers that became floats": _findings("int-to-float"),
    "Nearest to the limit": _ranges,
    "Local errors": every_local_error,
    "Would be 0 in the assumed dtype": _vanishes,
    "Communication": _communication,
    "Not seen": _unseen,
}
