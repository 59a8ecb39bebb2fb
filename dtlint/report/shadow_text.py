"""The local errors that `--shadow` measured, as lines: of the screen those that are more than rounding, below it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.report.compare_text import percent
from dtlint.report.legible import legible
from dtlint.trace.local_errors import KINDS, dtype_of, kind_of
from dtlint.trace.schema import NO_FILE
from dtlint.trace.words import in_package, shorten, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.report.frame import Style
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import LocalError

__all__ = ["every_local_error", "local_errors"]

MOST = 4
"""Lines on the screen."""

ORDER = list(KINDS)


def local_errors(record: TraceRecord) -> Iterator[tuple[str, Style]]:
    """The lines of the screen."""
    if not record.shadow:
        return
    if not record.local:
        yield f"Local errors: no operator was narrower than {record.shadow}", "plain"
        return
    found = _sorted(record)
    grave = [local for local in found if kind_of(record, local) != "rounding"]
    rounding = max((local.error for local in found if kind_of(record, local) == "rounding"), default=0.0)
    yield (
        f"Local errors{f' that {record.assume} would have,' * bool(record.assume)} against {record.shadow}, of {len(found)} operators; rounding is up to {100 * rounding:.2g}%:",
        "strong",
    )
    for local in grave[:MOST]:
        yield f"  {legible(_told(record, local))}", "plain"
    if len(grave) > MOST:
        yield f"  and {len(grave) - MOST} more: `--all` lists every operator", "plain"
    if not grave:
        yield "  nothing but rounding", "plain"


def every_local_error(record: TraceRecord) -> Iterator[str]:
    """The lines of the section below the screen."""
    yield from (_told(record, local) for local in _sorted(record))


def _sorted(record: TraceRecord) -> list[LocalError]:
    """The gravest first, and of one kind the largest."""
    return sorted(record.local, key=lambda local: (ORDER.index(kind_of(record, local)), -local.error))


def _told(record: TraceRecord, local: LocalError) -> str:
    entry = record.entries[local.entry]
    at = record.places[entry.place]
    kind = kind_of(record, local)
    where = "a place in autograd" if at.file == NO_FILE else f"{in_package(at.file)}:{at.line}"
    backward = "the backward of " if entry.phase == "backward" else ""
    more = {
        "saturation": f", {local.saturated:,} of {local.values:,} values",
        "underflow": f", {local.vanished:,} of {local.values:,} values",
        "cancellation": f", {local.amplified:.3g} times",
    }.get(kind, "")
    return (
        f"{percent(local.error)} {kind}{more}: {backward}{shorten(at.expression)} ({entry.op}, {dtype_of(record, local)}){within(at.module)}"
        f" at {where}"
    )
