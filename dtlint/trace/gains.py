"""Why a run is no faster in 16 bits, and what would be gained: read from a record with times, without torch.

Every estimate is a range, from the ratios of `ratios`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING
from dtlint.trace.balance import is_low, kept_wide, used_autocast, wide_work
from dtlint.trace.ratios import peak_tf32, ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Timing

__all__ = ["Gain", "by_dtype", "gains"]

WORTH = 0.01
"""A share of the operators' time from which something is worth a line."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Time that could be saved, or was spent to save some."""

    kind: str
    """`wide`, `slow`, `casts`, `widened` or `tf32`."""
    seconds: float
    """What it takes now, over the run."""
    least: float
    most: float
    """What would be saved of that, in seconds; below 0 is a loss."""
    place: int | None
    what: str
    """The operator, or operators."""
    why: str = ""


def by_dtype(record: TraceRecord) -> dict[str, float]:
    """Seconds of the operators by the dtype of their results, the most first; casts between floating dtypes apart."""
    found: dict[str, float] = {}
    for entry in record.entries:
        kind = "other" if entry.output not in FLOATING else "casts" if entry.author else entry.output or ""
        found[kind] = found.get(kind, 0.0) + entry.seconds
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def gains(record: TraceRecord) -> list[Gain]:
    """All that is worth a line, the largest first."""
    timing = record.timing
    if timing is None:
        return []
    total = sum(entry.seconds for entry in record.entries)
    found = [*_wide(record, timing), *_slow(record, timing), *_casts(record, timing), *_widened(record, timing)]
    found += _tf32(record, timing)
    return sorted(
        (one for one in found if one.seconds >= WORTH * total), key=lambda one: -max(one.most, one.seconds / 10)
    )


def _target(record: TraceRecord) -> str:
    """The 16-bit dtype that most work of the run has; bfloat16 where none has."""
    low: Counter[str] = Counter()
    for entry in record.entries:
        if entry.flops and entry.output and is_low(entry.output):
            low[entry.output] += entry.flops * entry.count
    return low.most_common(1)[0][0] if low else "bfloat16"


def _saved(timing: Timing, entries: Iterable[Entry], dtype: str) -> tuple[float, float] | None:
    """Seconds that these would save in `dtype`, at least and at most."""
    least = most = 0.0
    for entry in entries:
        known = ratio(timing, entry, dtype)
        if known is None:
            return None
        least += entry.seconds * (1 - 1 / known.least)
        most += entry.seconds * (1 - 1 / known.most)
    return least, most


def _wide(record: TraceRecord, timing: Timing) -> Iterator[Gain]:
    """Matrix work in float32, and why it is."""
    target, autocast = _target(record), used_autocast(record)
    for one in wide_work(record):
        at = record.places[one.entry.place]
        group = [
            entry
            for entry in record.entries
            if entry.flops
            and entry.output
            and not is_low(entry.output)
            and _line(record, entry) == (at.file, at.line, at.column)
        ]
        saved = _saved(timing, group, target)
        if saved is not None and one.entry.output in DTYPES:
            why = one.why if autocast else "no autocast was used"
            seconds = sum(entry.seconds for entry in group)
            yield Gain("wide", seconds, *saved, one.entry.place, f"{one.entry.op} in {one.entry.output}", why)


def _slow(record: TraceRecord, timing: Timing) -> Iterator[Gain]:
    """Matrix work in 16 bits that is slower than it would be in float32, as float16 is on many CPUs."""
    groups: dict[tuple[str, str, bool], list[Entry]] = {}
    for entry in record.entries:
        if entry.flops and entry.output and is_low(entry.output):
            known = ratio(timing, entry, entry.output)
            if known is not None and known.most < 1:
                groups.setdefault((entry.op, entry.output, entry.phase == "backward"), []).append(entry)
    for (op, dtype, _), group in groups.items():
        seconds = sum(entry.seconds for entry in group)
        least = sum(e.seconds * (1 - r.most) for e in group if (r := ratio(timing, e, dtype)))
        most = sum(e.seconds * (1 - r.least) for e in group if (r := ratio(timing, e, dtype)))
        heaviest = max(group, key=lambda entry: entry.seconds)
        yield Gain(
            "slow",
            seconds,
            least,
            most,
            heaviest.place,
            f"{op} in {dtype}",
            f"a CPU as the one measured is slower in {dtype}",
        )


def _casts(record: TraceRecord, timing: Timing) -> Iterator[Gain]:
    """Casts to 16 bits that take longer than what reads them saves."""
    entries = record.entries
    readers: dict[int, set[int]] = {}
    for number, entry in enumerate(entries):
        for operand in entry.inputs:
            if operand.origin is not None:
                readers.setdefault(operand.origin, set()).add(number)
    groups: dict[tuple[str, int, int], list[int]] = {}
    for number, entry in enumerate(entries):
        if entry.author and entry.phase == "forward" and entry.output and is_low(entry.output):
            groups.setdefault(_line(record, entry), []).append(number)
    for casts in groups.values():
        places = {entries[number].place for number in casts}
        back = [e for e in entries if e.author == "backward" and e.place in places]
        cost = sum(entries[number].seconds for number in casts) + sum(entry.seconds for entry in back)
        used = {reader for number in casts for reader in readers.get(number, ()) if not entries[reader].author}
        least = most = 0.0
        for reader in used:
            entry = entries[reader]
            known = ratio(timing, entry, entry.output or "") if entry.output and is_low(entry.output) else None
            if known is not None:
                least += entry.seconds * (known.least - 1)
                most += entry.seconds * (known.most - 1)
        if cost > max(most, 0.0):
            what = f"{sum(entries[number].count for number in casts):,} casts"
            why = f"what reads them saves {_ms(max(most, 0.0))} at most" if most > 0 else "what reads them is no faster"
            yield Gain("casts", cost, cost - max(most, 0.0), cost - max(least, 0.0), entries[casts[0]].place, what, why)


def _widened(record: TraceRecord, timing: Timing) -> Iterator[Gain]:
    """What autocast computes in float32 though its input has 16 bits: on purpose."""
    for kept in kept_wide(record):
        group = [e for e in record.entries if e.op == kept.op and e.output == "float32" and e.phase == "forward"]
        saved = _saved(timing, group, _target(record))
        if saved is not None:
            what = f"{kept.op.lstrip('_')}, {kept.count:,} calls in float32"
            why = "it is on autocast's float32 list, for its accuracy"
            yield Gain("widened", sum(entry.seconds for entry in group), *saved, kept.entry.place, what, why)


def _tf32(record: TraceRecord, timing: Timing) -> Iterator[Gain]:
    wide = [e for e in record.entries if e.flops and e.output == "float32" and e.device == "cuda"]
    times = peak_tf32(timing)
    if wide and times is not None:
        seconds = sum(entry.seconds for entry in wide)
        what = "float32 products without TF32"
        why = 'torch.set_float32_matmul_precision("high") allows it'
        yield Gain("tf32", seconds, 0.0, seconds * (1 - 1 / times), None, what, why)


def _line(record: TraceRecord, entry: Entry) -> tuple[str, int, int]:
    at = record.places[entry.place]
    return at.file, at.line, at.column


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"
