"""An end to whatever takes too long: a rule or a fix that does not come to one is stopped, and reported by name.

Reading has a bound of its own, counted in statements. This one is for the rest, and is by the clock: it is only met by a
mistake of a rule, one of dtlint's or of somebody else's.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["bounded"]

SECONDS = 120.0
"""CPU time that a file may take at least,"""
SECONDS_PER_LINE = 0.001
"""and what each of its lines adds: ten times what a line takes."""
AGAIN = 10.0
"""After that much more whatever runs then is stopped too."""


@contextmanager
def bounded(lines: int) -> Iterator[None]:
    """While this lasts, `TooLong` is raised in what takes too long. Only the main thread can be stopped, and on Windows
    nothing can."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS + lines * SECONDS_PER_LINE, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _stop(_: int, __: FrameType | None) -> None:
    from dtlint.infer.context import TooLong

    raise TooLong("it took too long")
