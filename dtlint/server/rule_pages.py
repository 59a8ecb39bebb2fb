"""The documentation of rules as files that an editor can open: dtlint has no need of a website."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from dtlint.catalogue import catalogue
from dtlint.document import page
from dtlint.server.buffers import uri_of

__all__ = ["RulePages"]


class RulePages:
    """Writes a page when it is first asked for, into a folder that is gone with the server."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._uris: dict[str, str | None] = {}

    def uri(self, code: str) -> str | None:
        """The URI of a rule's page; None where it cannot be written."""
        if code not in self._uris:
            try:
                self._uris[code] = self._written(code)
            except (OSError, KeyError):
                self._uris[code] = None
        return self._uris[code]

    def _written(self, code: str) -> str:
        rule = catalogue()[code].load()
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="dtlint-rules-"))
        file = self._folder / f"{code}.md"
        file.write_text(page(rule), encoding="utf-8")
        return uri_of(file)

    def close(self) -> None:
        """Delete what was written."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
