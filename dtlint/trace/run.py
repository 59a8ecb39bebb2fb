"""Runs a program as `python SCRIPT` or `python -m MODULE` would, under the tracer, and always makes its record.

Not by runpy: it tears the script's globals down while process groups still run, and hangs under DDP. The program
is compiled and executed in a `__main__` module that outlives it.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtlint.trace.export import record_of
from dtlint.trace.mode import Tracer
from dtlint.trace.record import TraceRecord

__all__ = ["Finish", "Program", "ProgramError", "run"]

INTERRUPTED = 128 + signal.SIGINT

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


def run(program: Program, finish: Finish) -> int:
    """Run the program traced, hand its record to `finish`, and return the exit code that Python would give.

    Raises:
        ProgramError: there is no such program; nothing has run.
    """
    located = _locate(program)
    tracer, parent = Tracer(), os.getpid()
    argv = [located.argv0, *program.args]
    done = False

    def conclude(status: int) -> None:
        nonlocal done
        if not done and os.getpid() == parent:  # a forked child that runs on is not ours to report
            done = True
            finish(record_of(tracer, argv, status))

    status = 1
    try:
        with _as_main(located, argv) as main, _on_terminate(tracer, conclude):
            status = _execute(located, main, tracer)
    finally:
        conclude(status)
    return status


def _execute(located: _Located, main: types.ModuleType, tracer: Tracer) -> int:
    try:
        with tracer:
            exec(_compile(located), main.__dict__)
    except SystemExit as end:
        return _status(end)
    except BaseException as error:
        _show(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


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
    sys.modules["__main__"] = main
    sys.argv[:] = argv
    if not SAFE_PATH:
        sys.path[0] = located.path0
    yield main


@contextmanager
def _on_terminate(tracer: Tracer, conclude: Callable[[int], None]) -> Iterator[None]:
    """On SIGTERM, report first; then die of it as the program would have. A program's own handler is left alone."""
    parent = os.getpid()

    def terminated(number: int, frame: types.FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() == parent:
            tracer.read()
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
