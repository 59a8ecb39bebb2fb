"""How a traced program ends as it would under Python: exit codes, Ctrl-C, and tracebacks without the tracer's frames."""

from __future__ import annotations

import os
import signal
import sys
import types
from pathlib import Path
from typing import Any

__all__ = ["INTERRUPTED", "LastBreath", "clean", "show", "status_of"]

INTERRUPTED = 128 + signal.SIGINT
"""What a shell shows for a program that Ctrl-C ended."""

HINT = "dtlint: the program asks for CUDA, which is not here; `dtlint trace --simulate cuda` runs it on the CPU"

OURS = str(Path(__file__).parents[1]) + os.sep

OP_CALL = os.path.join("torch", "_ops.py")
"""The frame through which the tracer's handler calls an operator."""


WITHOUT_CUDA = (
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "Torch not compiled with CUDA enabled",
    "requires CUDA support",
    "on a CUDA device but torch.cuda.is_available() is False",
    "has no attribute '_cuda_",
)
"""What torch says to a program that asks for CUDA where there is none."""


class LastBreath:
    """Python ends an interrupted program by the signal itself, so that a shell's loop around it ends as well."""

    def __init__(self) -> None:
        self.interrupted = False

    def draw(self) -> None:
        """Die of SIGINT, if that is what ended the program."""
        if self.interrupted:
            sys.stdout.flush()
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)


def status_of(end: SystemExit) -> int:
    """The exit code of `sys.exit(...)`: a text goes to stderr and means 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


def show(error: BaseException) -> None:
    """Print the traceback as Python would have without the tracer, through the program's own hook if it set one.

    A program that misses CUDA is told how it can run without.
    """
    clean(error)
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, Exception) and any(words in str(error) for words in WITHOUT_CUDA):
        print(HINT, file=sys.stderr)


def clean(error: BaseException) -> None:
    """Take the tracer's frames out of the tracebacks of an exception and of all that led to it."""
    _clean(error, set())


def _clean(error: BaseException | None, seen: set[int]) -> None:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    kept: list[types.TracebackType] = []
    tb, ours = error.__traceback__, False
    while tb is not None:
        file = tb.tb_frame.f_code.co_filename
        called = ours and file.endswith(OP_CALL)
        ours = file.startswith(OURS)
        if not ours and not called:
            kept.append(tb)
        tb = tb.tb_next
    chain: types.TracebackType | None = None
    for link in reversed(kept):
        chain = types.TracebackType(chain, link.tb_frame, link.tb_lasti, link.tb_lineno)
    error.__traceback__ = chain
    _clean(error.__cause__, seen)
    _clean(error.__context__, seen)
    nested: Any = getattr(error, "exceptions", ())
    for inner in nested if isinstance(nested, (tuple, list)) else ():
        if isinstance(inner, BaseException):
            _clean(inner, seen)
