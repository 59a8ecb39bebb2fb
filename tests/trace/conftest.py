"""What the tests of the tracer share: a traced function's record, and the command line in a forked child."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from dtlint.trace.export import record_of  # noqa: E402
from dtlint.trace.mode import Tracer  # noqa: E402
from dtlint.trace.record import TraceRecord  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Deterministic, and a forked child does not wait for threads that it does not have."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield


@pytest.fixture
def trace() -> Callable[[Callable[[], Any]], TraceRecord]:
    """Trace one call of a function."""

    def trace(function: Callable[[], Any]) -> TraceRecord:
        tracer = Tracer()
        with tracer:
            function()
        return record_of(tracer, ["test"], 0)

    return trace


@dataclass
class Ran:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def dtlint(tmp_path: Path) -> Callable[..., Ran]:
    """Run the `dtlint` command in a forked child, in an empty directory: torch is imported already."""

    def run(*arguments: str, cwd: Path = tmp_path) -> Ran:
        out, err = tmp_path / ".stdout", tmp_path / ".stderr"
        child = os.fork()
        if child == 0:
            _become(arguments, cwd, out, err)
        _, status = os.waitpid(child, 0)
        return Ran(os.waitstatus_to_exitcode(status), out.read_text(), err.read_text())

    return run


def _become(arguments: tuple[str, ...], cwd: Path, out: Path, err: Path) -> None:
    code = 99
    try:
        os.chdir(cwd)
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
        sys.stdin = open(os.devnull)  # noqa: SIM115
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        sys.excepthook = sys.__excepthook__
        sys.argv[:] = ["dtlint", *arguments]
        from dtlint.cli import main

        main(list(arguments))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
