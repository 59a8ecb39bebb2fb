"""dtlint's events on tracks of their own in a trace of torch.profiler, as TensorBoard's plugin and Perfetto take them.

Two rules come from the plugin: every event has a `cat`, and `pid` and `tid` are numbers; else it loses the whole run.
One comes from Perfetto: slices of one thread nest, so each track has a thread of its own for each of the program's.
Source: the Chrome trace event format, and Perfetto's "External trace formats".
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.trace.marks import Mark

__all__ = ["PID", "TRACKS", "with_tracks"]

PID = 990001
"""The number of a process that is none: it keeps the tracks together, and above the others."""

TRACKS = ("steps", "promotions", "casts", "non-finite values", "GradScaler")
"""In the order in which they are shown."""

THREADS = 1000
"""Threads of the program that a track has room for."""

CAT = "dtlint"


def with_tracks(trace: dict[str, Any], marks: Sequence[Mark]) -> dict[str, Any]:
    """The trace with the marks in it. What was there is left as it is."""
    base = trace.get("baseTimeNanoseconds", 0)
    return {**trace, "traceEvents": [*trace["traceEvents"], *_events(marks, base)], "dtlint": {"events": len(marks)}}


def _events(marks: Sequence[Mark], base: int) -> Iterator[dict[str, Any]]:
    if not marks:
        return
    yield _named("process_name", 0, {"name": "dtlint"})
    yield _named("process_sort_index", 0, {"sort_index": -1})
    for track, thread in sorted({(TRACKS.index(mark.track), mark.thread) for mark in marks}):
        name = TRACKS[track] + (f", thread {thread + 1}" if thread else "")
        yield _named("thread_name", _tid(track, thread), {"name": name})
        yield _named("thread_sort_index", _tid(track, thread), {"sort_index": _tid(track, thread)})
    for mark in marks:
        event: dict[str, Any] = {
            "ph": "i" if mark.end is None else "X",
            "cat": CAT,
            "name": mark.name,
            "pid": PID,
            "tid": _tid(TRACKS.index(mark.track), mark.thread),
            "ts": (mark.start - base) / 1000,
        }
        event |= {"s": "t"} if mark.end is None else {"dur": max(mark.end - mark.start, 0) / 1000}
        yield event | ({"args": mark.args} if mark.args else {})
    yield from _counters(marks, base)


def _counters(marks: Sequence[Mark], base: int) -> Iterator[dict[str, Any]]:
    """How many casts and promotions each step had."""
    for step in (mark for mark in marks if mark.track == "steps"):
        within = Counter(
            mark.track for mark in marks if mark.start >= step.start and mark.start < (step.end or step.start)
        )
        counts = {track: within[track] for track in ("casts", "promotions")}
        event = {"ph": "C", "cat": CAT, "name": "a step", "pid": PID, "tid": 0, "args": counts}
        yield event | {"ts": (step.start - base) / 1000}


def _named(name: str, tid: int, args: dict[str, str | int]) -> dict[str, Any]:
    return {"ph": "M", "cat": CAT, "name": name, "pid": PID, "tid": tid, "ts": 0, "args": args}


def _tid(track: int, thread: int) -> int:
    return (track + 1) * THREADS + min(thread, THREADS - 1)
