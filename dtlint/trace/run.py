"""Runs a program as `python SCRIPT` or `python -m MODULE` would, under the tracer, and always makes its record.

Not by runpy: it tears the script's globals down while process groups still run, and hangs under DDP. The program
is compiled and executed in a `__main__` module that outlives it. torch is imported when the program imports it.
"""

from __future__ import annotations

import atexit
import builtins
import importlib.machinery
import importlib.util
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.trace.arrival import when_imported
from dtlint.trace.options import EVERYTHING, Options
from dtlint.trace.rank import Rank
from dtlint.trace.record import TraceRecord, Unseen, nothing

if TYPE_CHECKING:
    from dtlint.trace.mode import Tracer
    from dtlint.trace.progress import Progress
    from dtlint.trace.simulate.simulation import Simulation

__all__ = ["Finish", "Program", "ProgramError", "run"]

INTERRUPTED = 128 + signal.SIGINT
"""What a shell shows for a program that Ctrl-C ended."""

ROOM = 50
"""Frames that the tracer's own handler may need on top of the program's."""

OURS = str(Path(__file__).parents[1]) + os.sep

OP_CALL = os.path.join("torch", "_ops.py")
"""The frame through which the tracer's handler calls an operator."""

SAFE_PATH = bool(getattr(sys.flags, "safe_path", False))
"""`python -P`: Python does not put the program's directory first, so nor does the tracer."""

Finish = Callable[[TraceRecord], None]
"""Called once with the record, however the program ended."""


class ProgramError(LookupError):
    """There is no such script or module; the message is one line."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run: a script's path, or with `module` a module's name, and its arguments."""

    name: str
    args: tuple[str, ...] = ()
    module: bool = False


@dataclass(frozen=True, slots=True)
class _Located:
    file: str
    argv0: str
    path0: str
    spec: importlib.machinery.ModuleSpec | None


class _Session:
    """The tracer of one run: it starts when torch is there, which may be never."""

    def __init__(self, options: Options, simulate: str | None, progress: Progress | None) -> None:
        self.tracer: Tracer | None = None
        self.options, self.progress = options, progress
        self.simulate = simulate
        self.simulation: Simulation | None = None
        self.process, self.thread, self.here = os.getpid(), threading.get_ident(), Path.cwd()
        self.missed = ""

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
            tracer = Tracer.of(self.options, self.here)
            tracer.steps.heard = self.progress
            tracer.__enter__()
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self.missed = f"runs under a torch with which the tracer cannot start ({what})"
        else:
            self.tracer = tracer

    def stop(self) -> None:
        """The program has ended."""
        if self.tracer is not None and os.getpid() == self.process:
            self.tracer.__exit__(None, None, None)
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
        return record

    def _record(self, argv: list[str], status: int) -> TraceRecord:
        if self.tracer is None:
            record = nothing(argv, status)
            if self.missed:
                record.unseen.append(Unseen(self.missed, 1))
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
) -> int:
    """Run the program traced, hand its record to `finish`, and return the exit code that Python would give.

    With `simulate`, one of `simulate.DEVICES`, the program finds that device, whether there is one or not.

    If the program ended by a KeyboardInterrupt, the process dies of SIGINT once its exit handlers have run.

    Raises:
        ProgramError: there is no such program; nothing has run.
    """
    session = _Session(options, simulate, progress)
    done = False
    last = _LastBreath()
    atexit.register(last.draw)  # before the program's own, so that it comes after them

    def conclude(status: int) -> None:
        nonlocal done
        if not done and os.getpid() == session.process:  # a forked child that runs on is not ours to report
            done = True
            finish(session.record(argv, status))

    status = 1
    with when_imported("torch", session.start):
        try:
            located = _locate(program)
            argv = [located.argv0, *program.args]
        except ProgramError:
            session.stop()
            raise
        try:
            with _as_main(located, argv) as main, _on_terminate(session, conclude):
                status = _execute(located, main, session, last)
        finally:
            conclude(status)
    return status


class _LastBreath:
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


def _execute(located: _Located, main: types.ModuleType, session: _Session, last: _LastBreath) -> int:
    try:
        with _room():
            try:
                exec(_compile(located), main.__dict__)
            finally:
                session.stop()
    except SystemExit as end:
        return _status(end)
    except BaseException as error:
        _show(error)
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


def _compile(located: _Located) -> types.CodeType:
    if located.spec is not None and isinstance(located.spec.loader, importlib.machinery.SourceFileLoader):
        code = located.spec.loader.get_code(located.spec.name)
        if code is not None:
            return code
    return compile(Path(located.file).read_bytes(), located.file, "exec", dont_inherit=True)


def _locate(program: Program) -> _Located:
    if program.module:
        return _locate_module(program.name)
    path = Path(program.name)
    if path.is_dir():
        path = path / "__main__.py"
    if not path.is_file():
        raise ProgramError(f"there is no script {program.name!r}; to run a module use: dtlint trace -m MODULE")
    # Python gives `__file__` of a script as an absolute path, and puts the directory it really lies in first
    return _Located(os.path.abspath(path), program.name, str(path.resolve().parent), None)


def _locate_module(name: str) -> _Located:
    here = os.getcwd()
    if not SAFE_PATH:
        sys.path[0] = here  # where the module, or its package, is looked for first
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except Exception as error:  # a package runs its __init__ to be found
        raise ProgramError(f"the module {name!r} cannot be found: {type(error).__name__}: {error}") from error
    if spec is None or spec.origin is None or not spec.has_location:
        raise ProgramError(f"there is no module {name!r} that can be run")
    return _Located(spec.origin, spec.origin, here, spec)


@contextmanager
def _as_main(located: _Located, argv: Sequence[str]) -> Iterator[types.ModuleType]:
    """A `__main__` module, argv and path as the program would find them. They stay: threads may outlive the program."""
    main = types.ModuleType("__main__")
    spec = located.spec
    loader = spec.loader if spec is not None else importlib.machinery.SourceFileLoader("__main__", located.file)
    main.__dict__.update(
        __file__=located.file,
        __builtins__=builtins,
        __cached__=None,
        __loader__=loader,
        __spec__=spec,
        __package__=spec.parent if spec is not None else None,
    )
    if "__annotations__" in vars(sys.modules["__main__"]):  # Python gives it to a script, before 3.14
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    if "__mp_main__" in sys.modules:  # the same module under the name that it has in spawned children
        sys.modules["__mp_main__"] = main
    sys.argv[:] = argv
    if not SAFE_PATH:
        sys.path[0] = located.path0
    yield main


@contextmanager
def _on_terminate(session: _Session, conclude: Callable[[int], None]) -> Iterator[None]:
    """On SIGTERM, report first; then die of it as the program would have. A program's own handler is left alone."""
    parent = os.getpid()

    def terminated(number: int, frame: types.FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() == parent:
            session.read()
            conclude(128 + signal.SIGTERM)
            sys.stderr.flush()
            sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGTERM)

    try:
        free = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        if free:
            signal.signal(signal.SIGTERM, terminated)
    except ValueError:  # not the main thread
        free = False
    try:
        yield
    finally:
        if free and signal.getsignal(signal.SIGTERM) is terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _status(end: SystemExit) -> int:
    """The exit code of `sys.exit(...)`: a text goes to stderr and means 1."""
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    print(end.code, file=sys.stderr)
    return 1


def _show(error: BaseException) -> None:
    """Print the traceback as Python would have without the tracer, through the program's own hook if it set one."""
    _clean(error, set())
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)


def _clean(error: BaseException | None, seen: set[int]) -> None:
    """Take the tracer's frames out of the tracebacks of an exception and of all that led to it."""
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
