"""The server's process: what comes from the editor and from the reading process, one after the other."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.server import wire
from dtlint.server.processes import Overtaken, receive, send
from dtlint.server.session import Session

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["serve"]

_MOST_DEATHS = 5
"""How often the reading process is started anew in a minute. One that dies more often is not helped by that."""


class _Reader:
    """The reading process, started again where it dies."""

    def __init__(self, heard: queue.Queue[tuple[str, Any]]) -> None:
        self._heard = heard
        self._deaths: list[float] = []
        self._folder: str | None = None
        self._start()

    def _start(self) -> None:
        # A module of the user's, as `types.py`, must not be taken for one of Python's: not from here, nor from there.
        code = f"import sys; sys.path[:] = {sys.path!r}; from dtlint.server.processes import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._folder,
            env={**os.environ, "PYTHONSAFEPATH": "1"},
        )
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with suppress(OSError, EOFError):
            while (answer := receive(process.stdout)) is not None:  # type: ignore[arg-type]
                self._heard.put(("answer", answer))
        self._heard.put(("death", process))

    def ask(self, what: object) -> None:
        """Send a task; of a URI, that it is of no use any more; of a folder, that it is the working directory."""
        if isinstance(what, Path):
            self._folder = str(what)
        message = Overtaken(what) if isinstance(what, str) else what
        assert self._process.stdin is not None
        with suppress(OSError):  # it has died, as will be heard
            send(self._process.stdin, message)  # type: ignore[arg-type]

    def died(self, process: object) -> bool:
        """A process has died; is there a new one?"""
        if process is not self._process:
            return False
        now = time.monotonic()
        self._deaths = [*(death for death in self._deaths if now - death < 60), now]
        if len(self._deaths) > _MOST_DEATHS:
            return False
        self._start()
        return True

    def close(self) -> None:
        """Let it end."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()


def serve(inbox: BinaryIO, outbox: BinaryIO) -> int:
    """Serve an editor, and say the exit code."""
    heard: queue.Queue[tuple[str, Any]] = queue.Queue()
    reader = _Reader(heard)
    session = Session(lambda message: wire.write(outbox, message), reader.ask)

    def listen() -> None:
        while True:
            try:
                message = wire.read(inbox)
            except wire.Malformed as error:
                heard.put(("malformed", str(error)))
                continue
            except (OSError, ValueError):
                message = None
            heard.put(("message", message))
            if message is None:
                return

    threading.Thread(target=listen, daemon=True).start()
    try:
        while session.exit_code is None:
            try:
                kind, what = heard.get(timeout=session.next_due())
            except queue.Empty:
                session.tick()
                continue
            if kind == "answer":
                session.answered(what)
            elif kind == "malformed":
                session.malformed(what)
            elif kind == "death":
                if reader.died(what):
                    session.reading_failed()
                else:
                    session.reading_given_up()
            elif what is None:
                return 1  # the editor is gone, and has not said so
            else:
                session.receive(what)
            session.tick()
    except BrokenPipeError:
        return 1
    finally:
        session.close()
        reader.close()
    return session.exit_code
