"""One editor: its messages, its settings, and when which text is read."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint import __version__
from dtlint.check.hygiene import UNUSED_SUPPRESSION
from dtlint.server import actions
from dtlint.server.buffers import path_of
from dtlint.server.client import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    PARSE_ERROR,
    Client,
)
from dtlint.server.diagnostics import carried
from dtlint.server.documents import Documents
from dtlint.server.hints import Hints
from dtlint.server.options import Options
from dtlint.server.publishing import Publisher
from dtlint.server.requests import Requests
from dtlint.server.tasks import Checked, Fixed, Inferred, Task, WholeProject
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from dtlint.server.client import Params
    from dtlint.server.documents import Document
    from dtlint.server.wire import Message

__all__ = ["Session"]

_WATCHED = ("**/*.py", "**/pyproject.toml", "**/dtlint.toml", "**/setup.cfg", "**/*.json", "**/*.yaml")
_PAUSE = 0.5
"""Seconds without a change after which the next one is read at once."""


class Session:
    """One editor, from `initialize` to `exit`.

    Args:
        send: sends a message to the editor.
        ask: gives the reading process a task; the URI of a text, that the tasks of it are of no use any more; or a folder,
            that it is the working directory.
    """

    def __init__(self, send: Callable[[Message], None], ask: Callable[[object], None]) -> None:
        self._ask = ask
        self._client = Client(send)
        self._options = Options()
        self._state = "new"
        self.documents = Documents()
        self._publisher = Publisher(self._client, self.documents)
        self._requests = Requests(
            self._client, self.documents, self._publisher, lambda document: ask(self._task(document, fix=True))
        )
        self.exit_code: int | None = None
        """When it is over: 0, or 1 where the editor did not announce it."""

    # -- messages --------------------------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """A message of the editor. Never raises."""
        method, id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if "id" in message and ("result" in message or "error" in message):
                self._client.responded(message)
            else:
                self._client.refuse(id, INVALID_REQUEST, "the message has no method")
            return
        params = message.get("params")
        params = {} if params is None else params
        try:
            if not isinstance(params, dict):
                raise TypeError("params is no object")
            if "id" in message:
                self._request(method, id, params)
            else:
                self._notification(method, params)
        except (TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
            if "id" in message:
                self._client.refuse(
                    id, INVALID_PARAMS, f"{method}: the parameters are not as they should be: {error!r}"
                )
        except Exception as error:
            problem = f"internal error: {method}: {in_one_line(error)}; please report it"
            if "id" in message:
                self._client.refuse(id, INTERNAL_ERROR, problem)
            else:
                self._client.show(problem)

    def close(self) -> None:
        """Leave no file behind, however the session ended."""
        self._publisher.close()

    def malformed(self, why: str) -> None:
        """The editor has sent what is no message."""
        self._client.refuse(None, PARSE_ERROR, why)

    def _request(self, method: str, id: object, params: Params) -> None:
        if method == "shutdown":
            self._state = "shut down"
            self._client.reply(id, None)
        elif self._state == "shut down":
            self._client.refuse(id, INVALID_REQUEST, "the server is shut down")
        elif method == "initialize":
            if self._state != "new":
                self._client.refuse(id, INVALID_REQUEST, "the server is initialized already")
            else:
                self._client.reply(id, self._initialize(params))
        elif self._state == "new":
            self._client.refuse(id, NOT_INITIALIZED, "the first request must be `initialize`")
        elif method not in self._requests.handlers:
            self._client.refuse(id, METHOD_NOT_FOUND, f"dtlint does not answer {method}")
        else:
            self._requests.handlers[method](id, params)

    def _notification(self, method: str, params: Params) -> None:
        if method == "exit":
            self.exit_code = 0 if self._state == "shut down" else 1
        elif method == "$/cancelRequest":
            self._requests.cancel(params["id"])
        elif self._state == "running":
            documents, encoding = self.documents, self._client.encoding
            if method == "initialized":
                self._initialized()
            elif method == "textDocument/didOpen":
                self._read(documents.open(params), at_once=True)
            elif method == "textDocument/didChange":
                self._typed(documents.change(params, encoding))
            elif method == "textDocument/didSave":
                self._saved(params["textDocument"]["uri"])
            elif method == "textDocument/didClose":
                self._close(params["textDocument"]["uri"])
            elif method == "notebookDocument/didOpen":
                self._read(documents.open_notebook(params), at_once=True)
            elif method == "notebookDocument/didChange":
                self._typed(documents.change_notebook(params, encoding))
            elif method == "notebookDocument/didSave":
                self._saved(params["notebookDocument"]["uri"])
            elif method == "notebookDocument/didClose":
                self._close(params["notebookDocument"]["uri"])
            elif method == "workspace/didChangeConfiguration":
                self._did_change_configuration(params)
            elif method == "workspace/didChangeWatchedFiles":
                self._files_changed(params)

    # -- its life --------------------------------------------------------------------------------------------------------

    def _initialize(self, params: Params) -> Params:
        self._client.initialize(params.get("capabilities"))
        self._state = "running"
        folders = params.get("workspaceFolders") or []
        root = folders[0]["uri"] if folders else params.get("rootUri")
        folder = path_of(root) if isinstance(root, str) else None
        if folder is not None and folder.is_dir():
            os.chdir(folder)  # messages name files relative to it
            self._ask(folder)
        given = params.get("initializationOptions")
        self._set(given.get("settings", given) if isinstance(given, dict) else given)
        notebooks = [{"notebook": "*", "cells": [{"language": "python"}]}]
        return {
            "capabilities": {
                "positionEncoding": self._client.encoding,
                "textDocumentSync": {"openClose": True, "change": 2, "save": True},
                "notebookDocumentSync": {"notebookSelector": notebooks, "save": True},
                "hoverProvider": True,
                "inlayHintProvider": True,
                "codeActionProvider": {"codeActionKinds": list(actions.KINDS)},
            },
            "serverInfo": {"name": "dtlint", "version": __version__},
        }

    def _initialized(self) -> None:
        if self._client.can("workspace", "didChangeWatchedFiles", "dynamicRegistration"):
            registration = {
                "id": "dtlint-files",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": [{"globPattern": pattern} for pattern in _WATCHED]},
            }
            self._client.request("client/registerCapability", {"registrations": [registration]})
        self._ask_for_settings()

    def _ask_for_settings(self) -> None:
        if self._client.can("workspace", "configuration"):

            def then(result: Any) -> None:
                if isinstance(result, list) and result and result[0] is not None:
                    self._set(result[0])

            self._client.request("workspace/configuration", {"items": [{"section": "dtlint"}]}, then)

    def _set(self, table: object) -> None:
        """Take settings of the client. Those that are wrong are shown, and change nothing."""
        options, wrong = self._options.updated(table)
        for problem in wrong:
            self._client.show(problem)
        if options != self._options:
            self._options = options
            self._requests.shows_inlay_hints = options.inlay_hints
            self._read_all()
            self._client.refresh_inlay_hints()

    def _did_change_configuration(self, params: Params) -> None:
        settings = params.get("settings")
        if isinstance(settings, dict) and settings:
            self._set(settings.get("dtlint", settings))
        else:
            self._ask_for_settings()

    def _files_changed(self, params: Params) -> None:
        changed = {path_of(change["uri"]) for change in params["changes"]}
        if changed - {document.buffer.file for document in self.documents}:  # of these the editor's text counts
            self._read_all()

    def _saved(self, uri: str) -> None:
        """The findings of other texts may have changed with it."""
        for document in self.documents:
            if document.buffer.uri != uri:
                self._read(document)

    def _close(self, uri: str) -> None:
        document = self.documents.close(uri)
        if document is not None:
            self._ask(uri)
            self._publisher.withdraw(document)
            self._requests.close(document)

    # -- reading ---------------------------------------------------------------------------------------------------------

    def _typed(self, document: Document | None) -> None:
        """A text was changed. The first change after a pause is read at once: what is typed then overtakes it."""
        if document is not None:
            now = time.monotonic()
            self._read(document, at_once=now - document.typed > _PAUSE)
            document.typed = now

    def _read(self, document: Document | None, *, at_once: bool = False) -> None:
        """Have a text read when it has been left alone for a moment."""
        if document is not None:
            document.buffer.revision += 1
            document.due = time.monotonic() + (0 if at_once else self._options.debounce / 1000)

    def _read_all(self) -> None:
        for document in self.documents:
            self._read(document)

    def next_due(self) -> float | None:
        """Seconds until `tick` has something to do; None: not before another message."""
        times = [document.due for document in self.documents if document.due is not None]
        times += self._requests.deadlines()
        return max(min(times) - time.monotonic(), 0) if times else None

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for document in self.documents:
            if document.due is not None and document.due <= now:
                document.due = None
                self._ask(self._task(document))
        self._requests.expire()

    def reading_failed(self) -> None:
        """The reading process has died, and there is a new one."""
        for document in self.documents:
            document.due = time.monotonic()

    def reading_given_up(self) -> None:
        """The reading process has died too often, and there is none any more."""
        self._client.show("the process that reads files died again and again: restart the server, and please report it")

    def _task(self, document: Document, *, fix: bool = False) -> Task:
        buffer, files = document.buffer, self.documents.files()
        return Task(
            key=buffer.uri,
            revision=buffer.revision,
            path=buffer.file,
            shown=buffer.shown,
            data=buffer.data(),
            unsaved={path: one.buffer.data() for path, one in files.items() if one is not document},
            options=self._options,
            fix=fix,
            open=tuple(Path(path) for path in files),
        )

    # -- answers of the reading process ----------------------------------------------------------------------------------

    def answered(self, answer: object) -> None:
        """An answer of the reading process. Never raises, but where the editor is gone."""
        try:
            self._answered(answer)
        except BrokenPipeError:
            raise
        except Exception as error:
            self._client.show(f"internal error: {in_one_line(error)}; please report it")

    def _answered(self, answer: object) -> None:
        assert isinstance(answer, (Checked, Inferred, WholeProject, Fixed))
        document = next((one for one in self.documents if one.buffer.uri == answer.key), None)
        if document is None or answer.revision != document.buffer.revision:
            return
        if isinstance(answer, Checked):
            self._checked(document, answer)
        elif isinstance(answer, Inferred):
            self._inferred(document, answer)
        elif isinstance(answer, WholeProject):
            self._of_whole_project(document, answer)
        else:
            document.fixed = answer
        self._requests.was_read(document)

    def _checked(self, document: Document, answer: Checked) -> None:
        text, before = document.buffer.text, document.checked_text
        if answer.problem:
            self._client.show(answer.problem)
        if answer.readable:
            others = [one for one in answer.diagnostics if one.code != UNUSED_SUPPRESSION[0]]
            document.of_project = carried(document.of_project, before, text)
            document.diagnostics = [*others, *document.of_project]
            document.last_good = document.diagnostics, text
        else:  # most of what was wrong before somebody began to type is wrong still
            document.diagnostics = [*answer.diagnostics, *carried(*document.last_good, text)]
        document.alone = answer.diagnostics
        document.checked_text, document.checked = text, answer.revision
        self._publisher.publish(document)
        if before != text:
            self._read_dependents(document)

    def _read_dependents(self, changed: Document) -> None:
        """Read what rests on a text, and what may, for it has not been read yet."""
        path = str(changed.buffer.file)
        for document in self.documents:
            is_known = document.inferred == document.buffer.revision
            if document is not changed and (not is_known or path in document.rests_on):
                self._read(document)

    def _inferred(self, document: Document, answer: Inferred) -> None:
        path = document.buffer.file
        document.inferred, document.rests_on = answer.revision, answer.rests_on or document.rests_on
        document.hints = None if answer.tables is None or path is None else Hints(answer, path)
        if self._options.inlay_hints:
            self._client.refresh_inlay_hints()

    def _of_whole_project(self, document: Document, answer: WholeProject) -> None:
        text = document.buffer.text
        if answer.diagnostics is not None:
            found = answer.diagnostics
        elif document.last_good[1] == text:
            found = document.alone
        else:
            return
        alone = {(one.code, one.location.span) for one in document.alone}
        document.of_project = [one for one in found if (one.code, one.location.span) not in alone]
        document.last_good = found, text
        if [*found] != [*document.diagnostics]:
            document.diagnostics = found
            self._publisher.publish(document)
