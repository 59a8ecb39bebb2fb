"""torch.profiler beside a tracer, for the first steps that are traced; and when the tracer saw what it tells.

The tracer's handler stays as it is: times are taken around each operator's call, and what the call was is looked up
when the next one comes.
"""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import profiler as autograd_profiler

from dtlint.trace.marks import Mark, Profiled
from dtlint.trace.mode import Tracer
from dtlint.trace.patches import Patches
from dtlint.trace.site import shown
from dtlint.trace.words import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.trace.children import Children
    from dtlint.trace.ops import Op
    from dtlint.trace.options import Options
    from dtlint.trace.signature import Signature
    from dtlint.trace.site import Site

__all__ = ["MOST_MARKS", "MOST_STEPS", "ProfilingTracer"]

MOST_STEPS = 10
"""Steps that are profiled: a file of more takes a viewer minutes to open."""

MOST_MARKS = 100_000
"""Casts and promotions that are kept with their times."""

Call = tuple["Op", int, int]
"""An operator with the nanoseconds at which its call began and ended."""


class ProfilingTracer(Tracer):  # type: ignore[no-untyped-call]
    """A tracer with torch.profiler beside it."""

    def __init__(self, options: Options, here: Path | None = None, children: Children | None = None) -> None:
        super().__init__(options, here, children)
        self.profiled = Profiled("", [], 0)
        self._profile: Any = None
        self._done = False
        self._patches = Patches()
        self._pending: dict[int, Call] = {}
        """By thread: the call of which the site is not known yet."""
        self._placed: dict[int, tuple[Call, Site, bool]] = {}
        """By thread: the last call with its site and whether it is of the backward; its signature is known by the next."""
        self._told: list[tuple[Signature, int, int, int]] = []
        """Casts and promotions, each with its times and its thread."""
        self._first: dict[tuple[int, int], tuple[int, int]] = {}
        """By id of a signature and step: the time of its first call there, and its thread."""
        self._ends: list[int] = []
        """When each step of the window ended; the first is the window's beginning."""

    # -- times -----------------------------------------------------------------------------------------------------

    def _meet(self, func: Any) -> Op:
        op = super()._meet(func)
        if not op.composite:  # whose parts are met one by one
            op.call = self._timed(op, op.call)
        return op

    def _timed(self, op: Op, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.time_ns()
            out = call(*args, **kwargs)
            self._pending[get_ident()] = op, start, time.time_ns()
            return out

        return timed

    def _site(self, frame: Any, node: Any) -> Site:
        site = super()._site(frame, node)
        thread = get_ident()
        self._settle(thread)
        call = self._pending.pop(thread, None)
        if call is not None and self._profile is not None:
            self._placed[thread] = call, site, node is not None
        return site

    def _settle(self, thread: int) -> None:
        """The last call of a thread has run to its end: its signature is the last one at its site."""
        placed = self._placed.pop(thread, None)
        if placed is None:
            return
        (op, start, end), site, backward = placed
        signature = (site.backward if backward else site.forward).get(op)
        if signature is None:  # an operator on lists of tensors
            alike = [s for key, s in site.signatures.items() if key[0] is op and s.backward is backward]
            signature = alike[0] if len(alike) == 1 else None
        if signature is None:
            return
        self._first.setdefault((id(signature), self.flow.step), (start, thread))
        if signature.author or signature.finding:
            if len(self._told) < MOST_MARKS:
                self._told.append((signature, start, end, thread))
            else:
                self.profiled.dropped += 1

    # -- the window --------------------------------------------------------------------------------------------------

    def switch(self) -> None:
        """A step begins: the window opens with the first that is traced, and closes with the last of a row."""
        super().switch()
        if self._done or get_ident() != self.thread:
            return
        if self._profile is None and not self.resting:
            self._open()
        elif self._profile is not None:
            self._ends.append(time.time_ns())
            if self.resting or len(self._ends) > MOST_STEPS:
                self._close()

    def __exit__(self, *exc: Any) -> None:
        if Tracer.active is self:
            self._close()
        super().__exit__(*exc)
        self._tell()

    def _open(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        try:
            profile = torch.profiler.profile(activities=activities, record_shapes=True)
            profile.start()
        except Exception as error:  # the program runs as it would without
            self._done, self.profiled.missed = True, f"torch.profiler did not start ({type(error).__name__}: {error})"
            return
        self._profile = profile
        self._ends.append(time.time_ns())
        prepare = getattr(autograd_profiler, "_prepare_profiler", None)
        if prepare is not None:
            self._patches.set(autograd_profiler, "_prepare_profiler", self._giving_way(prepare))

    def _giving_way(self, prepare: Callable[..., Any]) -> Callable[..., Any]:
        """There can be one profiler: where the program starts its own, ours ends."""

        def prepared(*args: Any, **kwargs: Any) -> Any:
            self.profiled.missed = "the program started a profiler of its own, and the window ended there"
            self._close()
            return prepare(*args, **kwargs)

        return prepared

    def _close(self) -> None:
        profile, self._profile = self._profile, None
        self._done = True
        self._patches.undo()
        for thread in list(self._placed):
            self._settle(thread)
        if profile is None:
            return
        self._ends.append(time.time_ns())
        handle, name = tempfile.mkstemp(suffix=".pt.trace.json")
        os.close(handle)
        try:
            with torch._C._DisableTorchDispatch():
                profile.stop()
                profile.export_chrome_trace(name)
        except Exception as error:
            self.profiled.missed = f"torch.profiler wrote no trace ({type(error).__name__}: {error})"
            with suppress(OSError):
                Path(name).unlink()
        else:
            self.profiled.path = name

    # -- what is told --------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        """The marks, once all that was judged is known."""
        threads = {self.thread: 0}
        for _, _, _, thread in self._told:
            threads.setdefault(thread, len(threads))
        self.profiled.marks = [
            *self._steps(),
            *(self._shown(s, start, end, threads[thread]) for s, start, end, thread in self._told),
            *self._births(),
            *self._skips(),
        ]
        self.profiled.steps = max(len(self._ends) - 2, 0)

    def _steps(self) -> Iterator[Mark]:
        first = self.options.first
        for number, (start, end) in enumerate(zip(self._ends, self._ends[1:], strict=False)):
            if number + 2 < len(self._ends):
                yield Mark("steps", f"step {first + number}", start, end)

    def _shown(self, s: Signature, start: int, end: int, thread: int) -> Mark:
        given = [str(known.dtype).removeprefix("torch.") for known in s.inputs]
        gave = str(s.output).removeprefix("torch.")
        if s.author:
            return Mark("casts", f"{given[-1]} to {gave}", start, end, thread, {**self._where(s), "by": s.author})
        name = f"{s.op.name.strip('_')}({', '.join(given)})"
        return Mark("promotions", f"{name} gives {gave}", start, end, thread, {**self._where(s), "finding": s.finding})

    def _where(self, s: Signature) -> dict[str, str | int]:
        source = s.site.source()
        where: dict[str, str | int] = {"file": shown(s.site.file, self.here), "line": source.line}
        if source.expression:
            where["source"] = shorten(source.expression, 120)
        return {**where, "module": s.site.module} if s.site.module else where

    def _births(self) -> Iterator[Mark]:
        """Values are judged at the end of a step: the mark stands at the operator's first call in it."""
        for event in self.flow.events:
            signature = event.signature
            found = self._first.get((id(signature), event.step)) if signature is not None else None
            if signature is not None and found is not None:
                name = f"{event.kind} in {signature.op.name.strip('_')}"
                yield Mark(
                    "non-finite values", name, found[0], None, 0, {**self._where(signature), "times": event.times}
                )

    def _skips(self) -> Iterator[Mark]:
        first = self.options.first - 1
        for step, _ in self.steps.scaler.skips:
            number = step - first + 1
            if 0 < number < len(self._ends):
                yield Mark("GradScaler", f"step {step + 1} skipped", self._ends[number], None)
