"""What the editor asks about a text: hover, inlay hints and code actions. An answer waits until the text has been read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.diagnostic import Applicability
from dtlint.server import actions
from dtlint.server.buffers import Notebook
from dtlint.server.client import CANCELLED, INTERNAL_ERROR
from dtlint.source.file import Source, UnreadableSource
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.diagnostic import Diagnostic
    from dtlint.server.client import Client, Params
    from dtlint.server.documents import Document, Documents
    from dtlint.server.publishing import Publisher

__all__ = ["Requests"]

_PATIENCE = 10.0
"""Seconds that a request waits for a text to be read."""


@dataclass(eq=False)
class _Waiting:
    """A request that is answered when a text has been read: by `then`, or by null at `until`."""

    id: object
    document: Document
    is_ready: Callable[[], bool]
    then: Callable[[], None]
    until: float


class Requests:
    """The requests of one editor about its documents.

    Args:
        fix: has the text of a document fixed; `Document.fixed` is the answer.
    """

    def __init__(
        self, client: Client, documents: Documents, publisher: Publisher, fix: Callable[[Document], None]
    ) -> None:
        self._client, self._documents, self._publisher, self._fix = client, documents, publisher, fix
        self._waiting: list[_Waiting] = []
        self.handlers: dict[str, Callable[[object, Params], None]] = {
            "textDocument/hover": self._hover,
            "textDocument/codeAction": self._code_actions,
            "textDocument/inlayHint": self._inlay_hints,
        }
        self.shows_inlay_hints = False

    # -- waiting ---------------------------------------------------------------------------------------------------------

    def _when(self, id: object, document: Document, is_ready: Callable[[], bool], then: Callable[[], None]) -> None:
        if is_ready():
            then()
        else:
            self._waiting.append(_Waiting(id, document, is_ready, then, time.monotonic() + _PATIENCE))

    def _take(self, wanted: Callable[[_Waiting], bool]) -> list[_Waiting]:
        taken = [one for one in self._waiting if wanted(one)]
        self._waiting = [one for one in self._waiting if one not in taken]
        return taken

    def was_read(self, document: Document) -> None:
        """Something new is known of a document: answer what waited for it."""
        for one in self._take(lambda one: one.document is document and one.is_ready()):
            try:
                one.then()
            except Exception as error:
                self._client.refuse(one.id, INTERNAL_ERROR, f"internal error: {in_one_line(error)}; please report it")

    def cancel(self, id: object) -> None:
        """The editor does not want the answer any more."""
        for one in self._take(lambda one: one.id == id):
            self._client.refuse(one.id, CANCELLED, "cancelled")

    def close(self, document: Document) -> None:
        """A document is closed: nothing is known of it any more."""
        for one in self._take(lambda one: one.document is document):
            self._client.reply(one.id, None)

    def deadlines(self) -> list[float]:
        """When requests have waited long enough, in seconds of `time.monotonic`."""
        return [one.until for one in self._waiting]

    def expire(self) -> None:
        """Answer those that have waited long enough."""
        now = time.monotonic()
        for one in self._take(lambda one: one.until <= now):
            self._client.reply(one.id, None)

    # -- dtypes ----------------------------------------------------------------------------------------------------------

    def _hover(self, id: object, params: Params) -> None:
        position, found = params["position"], self._documents.find(params["textDocument"]["uri"])
        if found is None:
            self._client.reply(id, None)
            return
        document, cell = found
        encoding = self._client.encoding

        def answer() -> Any:
            text = document.buffer.texts(encoding).get(cell)
            return document.hints.at(cell, *text[1].place(position), text[1]) if document.hints and text else None

        document.buffer.texts(encoding)[cell][1].place(position)  # refuses what is no place
        self._when(id, document, lambda: _is_inferred(document), lambda: self._client.reply(id, answer()))

    def _inlay_hints(self, id: object, params: Params) -> None:
        first, last = params["range"]["start"]["line"] + 1, params["range"]["end"]["line"] + 1
        found = self._documents.find(params["textDocument"]["uri"])
        if found is None or not self.shows_inlay_hints:
            self._client.reply(id, [])
            return
        document, cell = found

        def answer() -> Any:
            text = document.buffer.texts(self._client.encoding).get(cell)
            return document.hints.beside(cell, first, last, text[1]) if document.hints and text else []

        self._when(id, document, lambda: _is_inferred(document), lambda: self._client.reply(id, answer()))

    # -- code actions ----------------------------------------------------------------------------------------------------

    def _code_actions(self, id: object, params: Params) -> None:
        uri, wanted = params["textDocument"]["uri"], params["range"]
        found = self._documents.find(uri)
        if found is None:
            self._client.reply(id, [])
            return
        document, _ = found
        only = (params.get("context") or {}).get("only")
        first, last = _pair(wanted["start"]), _pair(wanted["end"])

        def quick_fixes() -> list[Params]:
            if not actions.wants(only, actions.QUICK_FIX):
                return []
            there = [
                (diagnostic, shown)
                for diagnostic, at, shown in self._publisher.located(document)
                if at == uri and _pair(shown["range"]["start"]) <= last and first <= _pair(shown["range"]["end"])
            ]
            buffer = document.buffer
            text = actions.EditedText(buffer.data(), buffer.shown, buffer.texts(self._client.encoding))
            of_text = [*actions.fixes(there, text), *actions.suppressions(there, text)]
            return [{**action, "edit": self._workspace_edit(document, edits)} for action, edits in of_text]

        def answer() -> None:
            if not actions.wants(only, actions.FIX_ALL) or not any(_is_safe(one) for one in document.diagnostics):
                self._client.reply(id, quick_fixes())
            else:
                self._fix_all(id, document, quick_fixes())

        self._when(id, document, lambda: document.checked == document.buffer.revision, answer)

    def _fix_all(self, id: object, document: Document, others: list[Params]) -> None:
        """Answer with all safe fixes at once beside other actions, when the reading process has applied them."""
        buffer, revision = document.buffer, document.buffer.revision

        def is_ready() -> bool:
            return buffer.revision != revision or (document.fixed is not None and document.fixed.revision == revision)

        def answer() -> list[Params]:
            if buffer.revision != revision:  # the places of the others are out of date, too
                return []
            edits = self._edits_of_fixed(document)
            title = "Fix all that dtlint can fix safely"
            all_safe = {"title": title, "kind": actions.FIX_ALL, "edit": self._workspace_edit(document, edits)}
            return [*others, all_safe] if edits else others

        if not is_ready():
            self._fix(document)
        self._when(id, document, is_ready, lambda: self._client.reply(id, answer()))

    def _edits_of_fixed(self, document: Document) -> actions.Edits:
        buffer, fixed = document.buffer, document.fixed
        if fixed is None or fixed.text is None:
            return {}
        try:
            before, after = (Source.from_bytes(text, buffer.shown) for text in (buffer.data(), fixed.text))
            return actions.edits_between(before, after, buffer.texts(self._client.encoding))
        except UnreadableSource:
            return {}

    def _workspace_edit(self, document: Document, edits: actions.Edits) -> Params:
        if not self._client.can("workspace", "workspaceEdit", "documentChanges"):
            return {"changes": edits}
        version = None if isinstance(document.buffer, Notebook) else document.buffer.version
        return {
            "documentChanges": [
                {"textDocument": {"uri": uri, "version": version}, "edits": changes} for uri, changes in edits.items()
            ]
        }


def _is_inferred(document: Document) -> bool:
    return document.inferred == document.buffer.revision


def _pair(position: Params) -> tuple[int, int]:
    return position["line"], position["character"]


def _is_safe(diagnostic: Diagnostic) -> bool:
    return diagnostic.fix is not None and diagnostic.fix.applicability is Applicability.SAFE
