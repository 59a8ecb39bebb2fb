"""Runs a program as `python SCRIPT` or `python -m MODULE` would, under the tracer, and always makes its record.

Not by runpy: it tears the script's globals down while process groups still run, and hangs under DDP. The program
is compiled and executed in a `__main__` module that outlives it. torch is imported when the program imports it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint.trace.arrival import when_imported
from dtlint.trace.children import Children
from dtlint.trace.ending import INTERRUPTED, LastBreath, show, status_of
from dtlint.trace.options import EVERYTHING, Options
from dtlint.trace.precision_plan import PlanRefused
from dtlint.trace.program import Located, Program, ProgramError, as_main, compiled, locate
from dtlint.trace.rank import Rank
from dtlint.trace.record import TraceRecord, nothing
from dtlint.trace.schema import Unseen
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    import types

    from dtlint.trace.marks import Profiled
    from dtlint.trace.mode import Tracer
    from dtlint.trace.planned import Planned
    from dtlint.trace.precision_plan import Plan
    from dtlint.trace.progress import Progress
    from dtlint.trace.simulate.simulation import Simulation

__all__ = ["Finish", "run"]

REFUSED = 2
"""The exit code of a program that its plan ended."""

ROOM = 50
"""Frames that the tracer's own handler may need on top of the program's."""

ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that end a program from outside: by `kill`, or as its terminal is closed."""

Finish = Callable[[TraceRecord], None]
"""Called once with the record, however the program ended."""


class _Session:
    """The tracer of one run: it starts when torch is there, which may be never."""

    def __init__(
        self,
        program: Program,
        options: Options,
        simulate: str | None,
        progress: Progress | None,
        plan: Plan | None,
        profiled: Callable[[Profiled], None] | None,
    ) -> None:
        self.tracer: Tracer | None = None
        self.plan = plan
        self.planned: Planned | None = None
        self.profiled = profiled
        self.options, self.progress = options, progress
        self.simulate = simulate
        self.simulation: Simulation | None = None
        self.process, self.thread, self.here = os.getpid(), threading.get_ident(), Path.cwd()
        self.missed = ""
        self.children = Children(program.name)

    def start(self) -> None:
        """torch has been imported. Whatever is wrong here, the program goes on as if it were not traced."""
        if os.getpid() != self.process:
            return
        if threading.get_ident() != self.thread:
            self.missed = "runs whose first import of torch happens in another thread; import it in the main thread"
            return
        try:
            from dtlint.trace.mode import Tracer

            if self.simulate is not None:
                from dtlint.trace.simulate import simulate

                self.simulation = simulate(self.simulate).__enter__()
            if self.profiled is not None:
                from dtlint.trace.profiler import ProfilingTracer as Tracer  # type: ignore[assignment]
            tracer = Tracer(self.options, self.here, self.children)
            tracer.steps.heard = self.progress
            tracer.__enter__()
            if self.plan is not None:
                from dtlint.trace.planned import Planned

                self.planned = Planned(self.plan, tracer.sites.modules, lambda: tracer.flow.step)
                self.planned.install()
        except Exception as error:
            what = in_one_line(error)
            self.missed = f"runs under a torch with which the tracer cannot start ({what})"
        else:
            self.tracer = tracer

    def stop(self) -> None:
        """The program has ended."""
        self.children.remove()
        if self.planned is not None:
            self.planned.remove()
        if self.tracer is not None and os.getpid() == self.process:
            self.tracer.__exit__(*sys.exc_info())
            if self.profiled is not None:
                self.profiled(self.tracer.profiled)  # type: ignore[attr-defined]
        if self.progress is not None:
            self.progress.clear()
        if self.simulation is not None and os.getpid() == self.process:
            self.simulation.__exit__(None, None, None)

    def read(self) -> None:
        """Bring everything up to date, while the program still runs."""
        if self.progress is not None:
            self.progress.clear()
        if self.tracer is not None:
            self.tracer.read()

    def record(self, argv: list[str], status: int) -> TraceRecord:
        """What was seen, on which rank."""
        record = self._record(argv, status)
        rank = Rank.here()
        record.rank, record.world = rank.number, rank.world
        record.simulated = self.simulate or ""
        record.plan = self.plan
        record.plan_problem = self.planned.problem if self.planned is not None else ""
        return record

    def _record(self, argv: list[str], status: int) -> TraceRecord:
        if self.tracer is None:
            record = nothing(argv, status)
            if self.missed:
                record.unseen.append(Unseen(self.missed, 1))
            record.unseen += self.children.unseen()
            return record
        from dtlint.trace.export import record_of

        record = record_of(self.tracer, argv, status)
        if self.simulation is not None:
            record.unseen[:0] = [Unseen(what, count) for what, count in self.simulation.unseen()]
        return record


def run(
    program: Program,
    finish: Finish,
    simulate: str | None = None,
    options: Options = EVERYTHING,
    progress: Progress | None = None,
    plan: Plan | None = None,
    profiled: Callable[[Profiled], None] | None = None,
) -> int:
    """Run the program traced, hand its record to `finish`, and return the exit code that Python would give.

    With `simulate`, one of `simulate.DEVICES`, the program finds that device, whether there is one or not. Under a
    `plan` its models run in float16, but for what the plan keeps.
    With `profiled`, torch.profiler runs beside the tracer, and what came of it is handed over at the end.

    If the program ended by a KeyboardInterrupt, the process dies of SIGINT once its exit handlers have run.

    Raises:
        ProgramError: there is no such program; nothing has run.
    """
    session = _Session(program, options, simulate, progress, plan, profiled)
    done = False
    last = LastBreath()
    atexit.register(last.draw)  # before the program's own, so that it comes after them

    def conclude(status: int) -> None:
        nonlocal done
        if not done and os.getpid() == session.process:  # a forked child that runs on is not ours to report
            done = True
            finish(session.record(argv, status))

    status = 1
    with when_imported("torch", session.start):
        try:
            located = locate(program)
            argv = [located.argv0, *program.args]
        except ProgramError:
            session.stop()
            raise
        session.children.install()
        try:
            with as_main(located, argv) as main, _on_terminate(session, conclude):
                status = _execute(located, main, session, last)
        finally:
            conclude(status)
    return status


def _execute(located: Located, main: types.ModuleType, session: _Session, last: LastBreath) -> int:
    try:
        with _room():
            try:
                exec(compiled(located), main.__dict__)
            finally:
                session.stop()
    except PlanRefused:
        return REFUSED
    except SystemExit as end:
        return status_of(end)
    except BaseException as error:
        show(error)
        last.interrupted = isinstance(error, KeyboardInterrupt)
        return INTERRUPTED if last.interrupted else 1
    return 0


@contextmanager
def _room() -> Iterator[None]:
    """As deep a recursion as the program would have under Python: our frames below it and above it come on top."""
    frame: types.FrameType | None = sys._getframe()
    limit, ours = sys.getrecursionlimit(), ROOM
    while frame is not None:
        frame, ours = frame.f_back, ours + 1
    sys.setrecursionlimit(limit + ours)
    try:
        yield
    finally:
        if sys.getrecursionlimit() == limit + ours:
            sys.setrecursionlimit(limit)


@contextmanager
def _on_terminate(session: _Session, conclude: Callable[[int], None]) -> Iterator[None]:
    """On a signal that ends it, report first; then die of it as the program would have. Its own handlers are left alone."""
    parent = os.getpid()

    def terminated(number: int, frame: types.FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        if os.getpid() == parent:
            session.read()
            conclude(128 + number)
            with suppress(OSError):  # the terminal that hung up
                sys.stderr.flush()
                sys.stdout.flush()
        os.kill(os.getpid(), number)

    ours = [number for number in ENDS if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            signal.signal(number, terminated)
    except ValueError:  # not the main thread
        ours = []
    try:
        yield
    finally:
        for number in ours:
            if signal.getsignal(number) is terminated:
                signal.signal(number, signal.SIG_DFL)
