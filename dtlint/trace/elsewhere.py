"""What runs where the mode does not see it: other threads, compiled functions, NumPy in a tensor's memory.

They are counted as they begin, since they may be gone before anybody looks. Compiled functions are known from the graphs
that torch captures, or are made to run eagerly.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from dtlint.trace.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from dtlint.trace.captured import Captured

__all__ = ["Elsewhere"]

HARMLESS_THREADS = ("MainThread", "QueueFeederThread", "tqdm", "pydevd", "IPython", "Dummy")
"""Threads that run no operators."""

NAMED = 3
"""Threads that are told by name; a program may begin new ones for ever."""


class Elsewhere:
    """Counts of them, while a trace runs."""

    def __init__(self, lend: Callable[[torch.Tensor, Any], None], captured: Captured | None) -> None:
        """Tell by `lend` of each tensor whose memory NumPy gets, with the array.

        Compiled functions run compiled, and `captured` hears of their graphs; without it they run eagerly.
        """
        self._lend, self._captured = lend, captured
        self.threads = 0
        self.names: dict[str, None] = {}
        """The names of the first threads, in the order in which they began."""
        self.compiled = 0
        self.apart = 0
        """Is a compiler at work? What begins meanwhile is not counted."""
        self._patches = Patches()
        self._stance: Any = None
        """What puts the program's own stance towards torch.compile back, once it was changed."""
        self._profile: Any = None
        """What the program has new threads profiled with: ours hands over to it once a thread has begun."""

    def install(self) -> None:
        """Count from now on."""
        self._patches.set(torch, "compile", self._counting(torch.compile))
        self._patches.set(torch.Tensor, "numpy", self._lending(torch.Tensor.numpy))
        if self._captured is not None:
            self._captured.install(self._patches)
            if "torch._dynamo" in sys.modules:
                self._captured.keep_out()
        elif "torch._dynamo" in sys.modules:
            self._run_eagerly()
        self._profile = threading.getprofile()
        threading.setprofile(self._thread_begins)

    def remove(self) -> None:
        """Undo `install`, as far as it came."""
        self._patches.undo()
        if self._captured is not None:
            self._captured.remove()
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        if threading.getprofile() == self._thread_begins:
            threading.setprofile(self._profile)

    @property
    def entries(self) -> list[Any]:
        """The functions by which the program comes here."""
        return self._patches.functions

    def _thread_begins(self, frame: FrameType, event: str, arg: Any) -> None:
        sys.setprofile(self._profile)
        name = threading.current_thread().name
        if not self.apart and not name.startswith(HARMLESS_THREADS):
            self.threads += 1
            if len(self.names) < NAMED:
                self.names[name] = None

    def _counting(self, compile: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compile)
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self._captured is not None:
                self._captured.keep_out()
                with self._captured.compiler_at_work():
                    return compile(*args, **kwargs)
            self.compiled += 1
            self._run_eagerly()
            return compile(*args, **kwargs)

        return counted

    def _lending(self, numpy: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(numpy)
        def lending(self_: torch.Tensor, /, *args: Any, **kwargs: Any) -> Any:
            array = numpy(self_, *args, **kwargs)
            if torch.compiler.is_compiling():
                return array
            with suppress(Exception):  # the program goes on as if it were not traced
                self._lend(self_, array)
            return array

        return lending

    def _run_eagerly(self) -> None:
        # Compiled code would hide every operator, and fullgraph=True fails under a dispatch mode.
        if self._stance is None and hasattr(torch.compiler, "set_stance"):  # torch 2.6
            self._stance = torch.compiler.set_stance("force_eager")
