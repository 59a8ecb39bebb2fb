"""A line on the terminal while a traced program runs: the step, the operators seen, the events.

Only where stderr is a terminal. It ends with a carriage return, so that the program's next line takes its place.
"""

from __future__ import annotations

import shutil
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dtlint.trace.mode import Tracer

__all__ = ["Progress"]

EACH = 1.0
"""Seconds between two lines."""

ERASE = "\r\x1b[2K"


class Progress:
    """Called at the end of each step."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._due = monotonic() + EACH
        self._shown = False

    @classmethod
    def where_seen(cls, stream: TextIO) -> Progress | None:
        """One that writes to `stream`, if that is a terminal."""
        return cls(stream) if stream is not None and stream.isatty() else None

    def __call__(self, tracer: Tracer) -> None:
        """Show how far the run is, unless it was shown just now."""
        now = monotonic()
        if now < self._due:
            return
        self._due, self._shown = now + EACH, True
        events = len(tracer.flow.events)
        resting = ", resting" if tracer.resting else ""
        text = (
            f"dtlint: step {tracer.flow.step:,}{resting}, {tracer.operators:,} operators,"
            f" {events:,} {'event' if events == 1 else 'events'}"
        )
        self._write(ERASE + text[: shutil.get_terminal_size().columns - 1] + "\r")

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._shown = False
            self._write(ERASE)

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # the terminal has gone, or the program has closed the stream
            self._due = float("inf")
