"""Expectations that a run did not meet, as the text of a test's failure: each with its place, its lines and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.report.frame import frame
from dtlint.report.legible import legible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.trace.expect import Unmet

__all__ = ["text"]

MOST = 10
"""Places that are told; the rest is counted."""


def text(unmet: Sequence[Unmet]) -> str:
    """The text, without colours and without a line break at its end."""
    return "\n".join(_lines(unmet)).rstrip()


def _lines(unmet: Sequence[Unmet]) -> Iterator[str]:
    for one in unmet[:MOST]:
        diagnostic = one.diagnostic
        yield f"{one.expectation}: {legible(diagnostic.message)}"
        for line in frame(diagnostic):
            yield "".join(piece for piece, _ in line)
        if diagnostic.help:
            yield f"help: {legible(diagnostic.help)}"
        yield ""
    if len(unmet) > MOST:
        yield f"and {len(unmet) - MOST} more places"
