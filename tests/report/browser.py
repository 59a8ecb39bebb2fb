"""A headless Chromium that is spoken to through its debugging pipe: no driver, no port, no package.

Messages of the DevTools protocol are JSON, each ended by a NUL, on file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

__all__ = ["CHROMIUM", "Browser"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

READ, WRITE = 3, 4


class Browser:
    """One browser with one page."""

    def __enter__(self) -> Browser:
        self._profile = TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, to = os.pipe()
        from_, ours = os.pipe()

        def descriptors() -> None:
            ends = os.dup(theirs), os.dup(ours)  # either may be 3 or 4 itself
            os.dup2(ends[0], READ)
            os.dup2(ends[1], WRITE)

        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            [str(CHROMIUM), *arguments, f"--user-data-dir={self._profile.name}", "about:blank"],
            close_fds=False,
            preexec_fn=descriptors,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs)
        os.close(ours)
        self._to, self._from = os.fdopen(to, "wb", 0), os.fdopen(from_, "rb", 0)
        self._buffer, self._last, self._session = b"", 0, None
        self.said: list[str] = []
        """Errors and warnings of the page: exceptions, and what its policy refused."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()
        self._profile.cleanup()

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a method of the protocol."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        session = {"sessionId": self._session} if self._session else {}
        self._to.write(json.dumps({**message, **session}).encode() + b"\0")
        while (answer := self._next()).get("id") != self._last:
            self._hear(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, file: Path) -> None:
        """Load a file and wait until it is there."""
        self.said.clear()
        self.call("Page.navigate", url=file.as_uri())
        while (event := self._next()).get("method") != "Page.loadEventFired":
            self._hear(event)

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def prefer(self, scheme: str) -> None:
        """`light` or `dark`."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def shoot(self, file: Path, width: int = 1280, height: int = 0) -> None:
        """A picture of the page; of all of it, where no height is given."""
        height = height or min(self.run("document.documentElement.scrollHeight"), 12000)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.run("new Promise((done) => setTimeout(done, 200))")
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            chunk = self._from.read(1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event: Any) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(str(given["exceptionDetails"].get("exception", {}).get("description")))
        elif method == "Log.entryAdded":
            self.said.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not given["request"]["url"].startswith("file:"):
            self.said.append(f"asked for {given['request']['url']}")
