"""How much of the work ran in which dtype, and why some of it stayed wide. Read from a record, without torch."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.dtypes.table import load

if TYPE_CHECKING:
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

__all__ = [
    "Kept",
    "Wide",
    "autocast_policy",
    "is_low",
    "kept_wide",
    "lowers",
    "only_evaluates",
    "share_low",
    "used_autocast",
    "wide_work",
    "work",
]

LOW_BITS = 16
"""dtypes of at most so many bits are what mixed precision is for."""


@dataclass(frozen=True, slots=True)
class Wide:
    """Matrix work of one expression that ran in float32 or float64."""

    entry: Entry
    """The heaviest of it, in the forward where that was seen."""
    flops: int
    """Floating-point operations over the run, the backward's included."""
    why: str
    """The end of a sentence that begins with `because`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An operator that autocast ran in float32 though its input was half."""

    op: str
    count: int
    entry: Entry
    """The most frequent."""


def work(record: TraceRecord) -> Counter[str]:
    """Floating-point operations of matrix products, convolutions and attention over the run, by dtype."""
    flops: Counter[str] = Counter()
    for entry in record.entries:
        if entry.flops and entry.output:
            flops[entry.output] += entry.flops * entry.count
    return flops


def share_low(record: TraceRecord) -> float | None:
    """The share of that work that ran in 16 bits or fewer, from 0 to 1; None where there was none."""
    flops = work(record)
    total = flops.total()
    return sum(n for dtype, n in flops.items() if is_low(dtype)) / total if total else None


def used_autocast(record: TraceRecord) -> bool:
    """Did any operator run under autocast?"""
    return any(entry.autocast or entry.author == "autocast" for entry in record.entries)


def only_evaluates(record: TraceRecord) -> bool:
    """Did autocast run what no backward followed, as an evaluation, while the training is in a wide dtype?"""
    matrix = [entry for entry in record.entries if entry.flops and entry.output]
    half = {entry.phase for entry in matrix if is_low(entry.output or "")}
    return half == {"forward"} and any(entry.phase == "backward" for entry in matrix)


def wide_work(record: TraceRecord) -> list[Wide]:
    """The work that ran in a wide dtype, by expression, the heaviest first."""
    groups: dict[tuple[str, int, int], list[Entry]] = {}
    for entry in record.entries:
        if entry.flops and entry.output and not is_low(entry.output):
            at = record.places[entry.place]
            groups.setdefault((at.file, at.line, at.column), []).append(entry)
    found = []
    for group in groups.values():
        group.sort(key=lambda entry: (entry.phase != "forward", -entry.flops * entry.count))
        found.append(Wide(group[0], sum(entry.flops * entry.count for entry in group), _why(record, group[0])))
    return sorted(found, key=lambda wide: -wide.flops)


def _why(record: TraceRecord, entry: Entry) -> str:
    if entry.phase == "backward":
        return "the gradient that reached it was in that dtype"
    if not entry.autocast:
        return "autocast was off there"
    if any(operand.dtype == "float64" for operand in entry.inputs):
        return "autocast leaves float64 operands as they are"
    if entry.inside and lowers(record.simulated or entry.device, entry.inside):
        other = ", which is not the path of a GPU" if record.simulated else ""
        return f"{entry.inside} computes so within on {entry.device.upper()}s{other}"
    name = entry.inside or entry.op
    policy = autocast_policy(record.simulated or entry.device, name)
    if policy is None:
        return f"autocast does not cover {name}"
    if policy.startswith("fp32"):
        return f"{name} is on autocast's float32 list"
    return "autocast passed it by"


def lowers(device: str, name: str) -> bool:
    """Does autocast run the operator of this name in half on this kind of device?"""
    return autocast_policy(device, name) == "lower"


@functools.cache
def autocast_policy(device: str, name: str) -> str | None:
    """What autocast does with an operator, as torch names it or as the dispatcher does: see `Table.autocast`."""
    table = load()
    plain = name.strip("_").removeprefix("native_")
    named = {f"{where}.{plain}" for where in ("torch", "torch.nn.functional")} & table.ops
    policies = {table.autocast(device, one) for one in named}
    return policies.pop() if len(policies) == 1 else "unknown"


def kept_wide(record: TraceRecord) -> list[Kept]:
    """Operators that autocast runs in float32, each with its calls, the most frequent first."""
    raised = {
        number
        for number, entry in enumerate(record.entries)
        if entry.author == "autocast" and entry.output == "float32" and is_low(entry.inputs[-1].dtype)
    }
    found: dict[str, list[Entry]] = {}
    readers: dict[int, str] = {}
    """The operator that a cast was made for: the first that reads it. Others of the line may read what came of it."""
    for entry in record.entries:
        for operand in entry.inputs if entry.phase == "forward" else ():
            if operand.origin is None or operand.origin not in raised or entry.author:
                continue
            if record.entries[operand.origin].place != entry.place:  # what reads it elsewhere was not the reason
                continue
            if readers.setdefault(operand.origin, entry.op) == entry.op:
                found.setdefault(entry.op, []).append(entry)
                break
    kept = [
        Kept(op, sum(entry.count for entry in group), max(group, key=lambda entry: entry.count))
        for op, group in found.items()
    ]
    return sorted(kept, key=lambda one: -one.count)


def is_low(dtype: str) -> bool:
    """Does this dtype have 16 bits or fewer?"""
    info = DTYPES.get(dtype)
    return info is not None and info.bits <= LOW_BITS
