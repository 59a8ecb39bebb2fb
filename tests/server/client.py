"""A scripted editor: starts `dtlint server`, and talks to it as one does."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from dtlint.server.buffers import uri_of

__all__ = ["Client"]

PATIENCE = 60.0
"""Seconds in which an answer has to come, on a machine however busy."""


class Client:
    """One run of the server.

    Args:
        root: the folder that the editor has open.
    """

    def __init__(self, root: Path, settings: dict[str, Any] | None = None, **capabilities: Any) -> None:
        self.root = root
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dtlint", "server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=root,
        )
        self._heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._kept: list[dict[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()
        self._number = 0
        self._versions: dict[str, int] = {}
        self.server = self.ask(
            "initialize",
            {
                "processId": None,
                "rootUri": uri_of(root),
                "capabilities": capabilities,
                "initializationOptions": {"settings": settings or {}},
            },
        )
        self.tell("initialized", {})

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._process.pid

    # -- the wire --------------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while line := stream.readline():
            assert line.lower().startswith(b"content-length:"), line
            assert stream.readline() == b"\r\n"
            self._heard.put(json.loads(stream.read(int(line.split(b":")[1]))))
        self._heard.put(None)

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send(method=method, params=params)

    def ask(self, method: str, params: Any, **request: Any) -> Any:
        """Send a request, and give the result of the answer, or its error."""
        return self.result(self.begin(method, params, **request))

    def begin(self, method: str, params: Any) -> int:
        """Send a request, and give its number."""
        self._number += 1
        self._send(id=self._number, method=method, params=params)
        return self._number

    def result(self, number: int | None) -> Any:
        """What is answered to a request."""
        answer = self.wait(lambda one: "method" not in one and one["id"] == number)
        return answer["result"] if "result" in answer else answer["error"]

    def answer(self, id: object, result: Any) -> None:
        """Answer a request of the server."""
        self._send(id=id, result=result)

    def wait(self, wanted: Any, patience: float = PATIENCE) -> dict[str, Any]:
        """The next message of a kind; others are kept for later."""
        for one in self._kept:
            if wanted(one):
                self._kept.remove(one)
                return one
        end = time.monotonic() + patience
        while True:
            try:
                message = self._heard.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                raise TimeoutError(f"no such message came; others: {self._kept}") from None
            assert message is not None, f"the server has ended: {self.errors()}"
            if wanted(message):
                return message
            self._kept.append(message)

    def forget(self) -> None:
        """Let go of messages that nobody has waited for."""
        while not self._heard.empty():
            self._heard.get()
        self._kept.clear()

    def errors(self) -> str:
        """What it has written to standard error by its end."""
        assert self._process.stderr is not None
        return self._process.stderr.read().decode()

    def end(self) -> int:
        """Say goodbye; the exit code."""
        assert self.ask("shutdown", None) is None
        self.tell("exit", None)
        return self._process.wait(PATIENCE)

    # -- texts -----------------------------------------------------------------------------------------------------------

    def uri(self, name: str) -> str:
        """The URI of a file below the root."""
        return uri_of(self.root / name)

    def open(self, name: str, text: str, language: str = "python") -> None:
        """Open a file with a text."""
        self._versions[name] = 1
        document = {"uri": self.uri(name), "languageId": language, "version": 1, "text": text}
        self.tell("textDocument/didOpen", {"textDocument": document})

    def change(self, name: str, *changes: dict[str, Any]) -> int:
        """Change a text; its new version."""
        self._versions[name] += 1
        document = {"uri": self.uri(name), "version": self._versions[name]}
        self.tell("textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)})
        return self._versions[name]

    def diagnostics(
        self, name: str, version: int | None = None, wanted: Any = lambda found: True
    ) -> list[dict[str, Any]]:
        """The diagnostics of a file that are published next for a version."""

        def is_it(message: dict[str, Any]) -> bool:
            params = message.get("params") or {}
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and params["uri"] == (name if ":" in name else self.uri(name))
                and version in (None, params.get("version"))
                and wanted(params["diagnostics"])
            )

        return self.wait(is_it)["params"]["diagnostics"]

    def hover(self, name: str, line: int, character: int) -> Any:
        """What is shown at a place; both numbers from 0."""
        where = {"textDocument": {"uri": self.uri(name)}, "position": {"line": line, "character": character}}
        return self.ask("textDocument/hover", where)

    def actions(self, name: str, line: int, only: list[str] | None = None) -> list[dict[str, Any]]:
        """The code actions on a line, from 0."""
        place = {"line": line, "character": 0}, {"line": line, "character": 1000}
        context = {"diagnostics": [], **({"only": only} if only else {})}
        where = {"start": place[0], "end": place[1]}
        return self.ask(
            "textDocument/codeAction",
            {"textDocument": {"uri": self.uri(name)}, "range": where, "context": context},
        )
