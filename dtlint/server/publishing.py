"""Diagnostics as the editor shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.server.buffers import Notebook
from dtlint.server.diagnostics import Places, in_protocol
from dtlint.server.rule_pages import RulePages

if TYPE_CHECKING:
    from pathlib import Path

    from dtlint.diagnostic import Diagnostic
    from dtlint.server.client import Client, Params
    from dtlint.server.documents import Document, Documents

__all__ = ["Publisher"]


class Publisher:
    """Publishes the diagnostics of documents, with links to the pages of their rules."""

    def __init__(self, client: Client, documents: Documents) -> None:
        self._client, self._documents = client, documents
        self._pages = RulePages()

    def close(self) -> None:
        """Delete the pages."""
        self._pages.close()

    def located(self, document: Document) -> list[tuple[Diagnostic, str, Params]]:
        """The diagnostics of a document, each with the URI of its text and as the protocol's `Diagnostic`."""

        def text_of(path: Path) -> tuple[str, str] | None:
            other = self._documents.at(path)
            return None if other is None else (other.buffer.uri, other.buffer.text)

        encoding = self._client.encoding
        places = Places(document.buffer.shown, document.buffer.texts(encoding), text_of, encoding)
        found = [(one, in_protocol(one, places, self._pages.uri)) for one in document.diagnostics]
        return [(one, *pair) for one, pair in found if pair is not None]

    def publish(self, document: Document) -> None:
        """Publish the diagnostics of a document, of a notebook cell by cell."""
        buffer = document.buffer
        by_uri: dict[str, list[Params]] = {uri: [] for uri, _ in buffer.texts(self._client.encoding).values()}
        for _, uri, diagnostic in self.located(document):
            by_uri.setdefault(uri, []).append(diagnostic)
        for uri in document.published - by_uri.keys():
            by_uri[uri] = []
        document.published = set(by_uri)
        is_versioned = buffer.version is not None and not isinstance(buffer, Notebook)
        version = {"version": buffer.version} if is_versioned else {}
        for uri, diagnostics in by_uri.items():
            self._client.notify("textDocument/publishDiagnostics", {"uri": uri, **version, "diagnostics": diagnostics})

    def withdraw(self, document: Document) -> None:
        """Take the diagnostics of a document that was closed from the screen."""
        for uri in document.published:
            self._client.notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": []})
