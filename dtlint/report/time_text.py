"""The times of a run as text: where a step's time goes, by dtype and by line, and what 16 bits gain or would gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.report.legible import legible
from dtlint.trace.gains import by_dtype, gains
from dtlint.trace.ratios import source
from dtlint.trace.words import in_package, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.report.frame import Style
    from dtlint.trace.gains import Gain
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

    Line = tuple[str, Style]

__all__ = ["time_lines"]

MOST = 5
"""Lines of each kind."""

NEGLIGIBLE = 0.05
"""A share of what something takes below which it is no gain."""


def time_lines(record: TraceRecord) -> Iterator[Line]:
    """The lines; none where no times were taken."""
    timing = record.timing
    if timing is None:
        return
    steps = timing.steps or 1
    per = "a step" if timing.steps else "in all"
    if timing.wall:
        yield (
            f"Time: {_time(timing.wall / steps)} {per}, of which operators {timing.operators / timing.wall:.0%} and the optimizer"
            f" {timing.optimizers / timing.wall:.0%}; the rest is Python, data and this trace, which no dtype changes",
            "plain",
        )
    by = by_dtype(record)
    total = sum(by.values())
    if not total:
        return
    shares = ", ".join(f"{seconds / total:.0%} {dtype}" for dtype, seconds in by.items() if seconds > 0.005 * total)
    yield f"  operators by dtype: {shares}{_included(record)}", "plain"
    if any(unseen.in_graphs for unseen in record.unseen):
        yield "  compiled code is not among the operators; --eager times it operator by operator, uncompiled", "plain"
    for entry, seconds in _slowest(record)[:MOST]:
        backward = " (backward)" if entry.phase == "backward" else ""
        what = f"{entry.op.lstrip('_')}{backward} in {entry.output}"
        yield f"  {seconds / total:4.0%} {what} {_at(record, entry.place)}", "plain"
    found = gains(record)
    if found:
        yield f"What 16 bits gain, by ratios {source(timing)}:", "strong"
    for gain in found[:MOST]:
        yield f"  {_gain(record, gain)}", "plain"
    if len(found) > MOST:
        yield f"  and {len(found) - MOST} more", "plain"


def _included(record: TraceRecord) -> str:
    """How much of the operators' time is that of calling them."""
    timing = record.timing
    assert timing is not None
    if timing.device == "cuda":
        return "; a small operator may wait on the device for its launch, which counts as its time"
    calls = sum(entry.count for entry in record.entries if entry.seconds) * timing.call
    total = sum(entry.seconds for entry in record.entries)
    return f"; {calls / total:.0%} of it is calling them, {timing.call * 1e6:.2g} us each"


def _slowest(record: TraceRecord) -> list[tuple[Entry, float]]:
    """Expressions over all modules, each with its slowest entry and the seconds of all."""
    found = [
        (max(group, key=lambda entry: entry.seconds), sum(entry.seconds for entry in group))
        for group in record.by_line(record.entries)
    ]
    return sorted(found, key=lambda pair: -pair[1])


def _gain(record: TraceRecord, gain: Gain) -> str:
    at = f" {_at(record, gain.place)}" if gain.place is not None else ""
    why = f", because {gain.why}" if gain.kind in ("wide", "widened") else f": {gain.why}"
    return f"{legible(gain.what)}{at}, {_per_step(record, gain.seconds)}{why}; {_saves(record, gain)}"


def _saves(record: TraceRecord, gain: Gain) -> str:
    if gain.kind == "casts":
        return f"without them {_range(record, gain)} less"
    in_what = {"slow": "float32", "tf32": "TF32"}.get(gain.kind, "16 bits")
    if gain.most <= NEGLIGIBLE * gain.seconds:
        return f"nothing would be gained in {in_what}"
    return f"{_range(record, gain)} less in {in_what}"


def _range(record: TraceRecord, gain: Gain) -> str:
    least, most = (_per_step(record, max(seconds, 0.0)) for seconds in (gain.least, gain.most))
    return most if least == most else f"up to {most}" if gain.least <= 0 else f"{least} to {most}"


def _per_step(record: TraceRecord, seconds: float) -> str:
    return _time(seconds / record.looked_at)


def _time(seconds: float) -> str:
    return (
        f"{seconds:.3g} s"
        if seconds >= 1
        else f"{seconds * 1e3:.3g} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.3g} us"
    )


def _at(record: TraceRecord, place: int) -> str:
    at = record.places[place]
    return (
        f"at {in_package(at.file)}:{at.line}, {legible(shorten(at.expression))}" if at.expression else f"at {at.file}"
    )
