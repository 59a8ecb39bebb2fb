"""What the editor asks and tells, and what is known of each text that it has open."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint import __version__
from dtlint.check.hygiene import UNUSED_SUPPRESSION
from dtlint.server import actions
from dtlint.server.buffers import Buffer, Cell, Notebook, path_of
from dtlint.server.diagnostics import Places, carried, in_protocol
from dtlint.server.hints import Hints
from dtlint.server.options import Options
from dtlint.server.positions import negotiated
from dtlint.server.rule_pages import RulePages
from dtlint.server.tasks import Checked, Fixed, Task, Told, WholeProject
from dtlint.source.file import Source, UnreadableSource
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.diagnostic import Diagnostic
    from dtlint.server.wire import Message

__all__ = ["Session"]

_PATIENCE = 10.0
"""Seconds that a request waits for what it asks about to be read."""
_INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS, _INTERNAL = -32600, -32601, -32602, -32603
_NOT_INITIALIZED, _CANCELLED = -32002, -32800
_WATCHED = ("**/*.py", "**/pyproject.toml", "**/dtlint.toml", "**/setup.cfg", "**/*.json", "**/*.yaml")

Params = dict[str, Any]


@dataclass(eq=False)
class _Open:
    """A text that is open, and what is known of it.

    Attributes:
        due: when it is to be read, if it is.
        checked_text, checked: the text that was read last, at first by others from the disk; and its revision.
        found: what is wrong in the text of that revision, as far as it is known by now.
        of_project: those among the findings of the text before that only the project has shown.
        good: what was wrong in the last text that could be parsed, and that.
        hints: what the expressions of a revision are.
        fixed: the text with its safe fixes, of the revision for which somebody asked last.
        rests_on: the other files that were looked into.
    """

    buffer: Buffer
    due: float | None = None
    checked_text: str = ""
    checked: int = -1
    found: Sequence[Diagnostic] = ()
    alone: Sequence[Diagnostic] = ()
    of_project: Sequence[Diagnostic] = ()
    good: tuple[Sequence[Diagnostic], str] = ((), "")
    hints: Hints | None = None
    fixed: Fixed | None = None
    told: int = -1
    rests_on: frozenset[str] = frozenset()
    published: set[str] = field(default_factory=set)


@dataclass(eq=False)
class _Waiting:
    """A request that is answered when a text has been read: by `then`, or by null where that takes too long."""

    id: object
    open: _Open
    is_ready: Callable[[], bool]
    then: Callable[[], None]
    until: float


class Session:
    """One editor, from `initialize` to `exit`.

    Args:
        send: sends a message to the editor.
        ask: gives the reading process a task, or tells it that a key is of no use any more.
    """

    def __init__(self, send: Callable[[Message], None], ask: Callable[[object], None]) -> None:
        self._send, self._ask = send, ask
        self._open: dict[str, _Open] = {}
        self._of_cell: dict[str, str] = {}
        """The notebook of each cell, by their URIs."""
        self._waiting: list[_Waiting] = []
        self._options = Options()
        self._client: Params = {}
        self._encoding = "utf-16"
        self._state = "new"
        self._pages = RulePages()
        self._problems: set[str] = set()
        self._number = 0
        self._asked: dict[object, Callable[[Any], None]] = {}
        self.exit_code: int | None = None
        """When it is over: 0, or 1 where the editor did not say so before."""

    # -- messages --------------------------------------------------------------------------------------------------------

    def receive(self, message: Message) -> None:
        """A message of the editor. Never raises."""
        method, id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            if "id" in message and ("result" in message or "error" in message):
                self._heard(message)
            else:
                self._refuse(id, _INVALID_REQUEST, "the message has no method")
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
                self._refuse(id, _INVALID_PARAMS, f"{method}: the parameters are not as they should be: {error!r}")
        except Exception as error:
            told = f"internal error: {method}: {in_one_line(error)}; please report it"
            if "id" in message:
                self._refuse(id, _INTERNAL, told)
            else:
                self._show(told)

    def close(self) -> None:
        """Leave no file behind, however the session ended."""
        self._pages.close()

    def malformed(self, why: str) -> None:
        """What was read is no message."""
        self._refuse(None, -32700, why)

    def _request(self, method: str, id: object, params: Params) -> None:
        if method == "shutdown":
            self._state = "shut down"
            self._reply(id, None)
        elif self._state == "shut down":
            self._refuse(id, _INVALID_REQUEST, "the server is shut down")
        elif method == "initialize":
            if self._state != "new":
                self._refuse(id, _INVALID_REQUEST, "the server is initialized already")
            else:
                self._reply(id, self._initialize(params))
        elif self._state == "new":
            self._refuse(id, _NOT_INITIALIZED, "the first request must be `initialize`")
        else:
            handler = {
                "textDocument/hover": self._hover,
                "textDocument/codeAction": self._code_actions,
                "textDocument/inlayHint": self._inlay_hints,
            }.get(method)
            if handler is None:
                self._refuse(id, _METHOD_NOT_FOUND, f"dtlint does not answer {method}")
            else:
                handler(id, params)

    def _notification(self, method: str, params: Params) -> None:
        if method == "exit":
            self.exit_code = 0 if self._state == "shut down" else 1
        elif method == "$/cancelRequest":
            for one in [one for one in self._waiting if one.id == params["id"]]:
                self._waiting.remove(one)
                self._refuse(one.id, _CANCELLED, "cancelled")
        elif self._state == "running":
            handler = {
                "initialized": self._initialized,
                "textDocument/didOpen": self._did_open,
                "textDocument/didChange": self._did_change,
                "textDocument/didSave": self._did_save,
                "textDocument/didClose": self._did_close,
                "notebookDocument/didOpen": self._notebook_did_open,
                "notebookDocument/didChange": self._notebook_did_change,
                "notebookDocument/didSave": self._notebook_did_save,
                "notebookDocument/didClose": self._notebook_did_close,
                "workspace/didChangeConfiguration": self._did_change_configuration,
                "workspace/didChangeWatchedFiles": self._files_changed,
            }.get(method)
            if handler is not None:
                handler(params)

    def _reply(self, id: object, result: Any) -> None:
        self._send({"id": id, "result": result})

    def _refuse(self, id: object, code: int, message: str) -> None:
        self._send({"id": id, "error": {"code": code, "message": message}})

    def _notify(self, method: str, params: Params) -> None:
        self._send({"method": method, "params": params})

    def _request_of_client(
        self, method: str, params: Params, then: Callable[[Any], None] = lambda result: None
    ) -> None:
        self._number += 1
        self._asked[self._number] = then
        self._send({"id": self._number, "method": method, "params": params})

    def _heard(self, message: Message) -> None:
        """The editor's answer to a request of ours."""
        then = self._asked.pop(message["id"], None) if isinstance(message["id"], (int, str)) else None
        if then is not None and "result" in message:
            then(message["result"])

    def _show(self, problem: str) -> None:
        """Tell the user, once."""
        if problem not in self._problems:
            self._problems.add(problem)
            self._notify("window/showMessage", {"type": 1, "message": f"dtlint: {problem}"})

    def _can(self, *path: str) -> Any:
        """What the client says of a capability; None where it says nothing."""
        found: Any = self._client
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    # -- its life --------------------------------------------------------------------------------------------------------

    def _initialize(self, params: Params) -> Params:
        capabilities = params.get("capabilities")
        self._client = capabilities if isinstance(capabilities, dict) else {}
        self._encoding = negotiated(self._can("general", "positionEncodings"))
        self._state = "running"
        folders = params.get("workspaceFolders") or []
        root = folders[0]["uri"] if folders else params.get("rootUri")
        folder = path_of(root) if isinstance(root, str) else None
        if folder is not None and folder.is_dir():
            os.chdir(folder)  # what messages call files is relative to it
            self._ask(folder)
        given = params.get("initializationOptions")
        self._set(given.get("settings", given) if isinstance(given, dict) else given)
        notebooks = [{"notebook": "*", "cells": [{"language": "python"}]}]
        return {
            "capabilities": {
                "positionEncoding": self._encoding,
                "textDocumentSync": {"openClose": True, "change": 2, "save": True},
                "notebookDocumentSync": {"notebookSelector": notebooks, "save": True},
                "hoverProvider": True,
                "inlayHintProvider": True,
                "codeActionProvider": {"codeActionKinds": list(actions.KINDS)},
            },
            "serverInfo": {"name": "dtlint", "version": __version__},
        }

    def _initialized(self, params: Params) -> None:
        if self._can("workspace", "didChangeWatchedFiles", "dynamicRegistration"):
            watchers = [{"globPattern": pattern} for pattern in _WATCHED]
            registration = {
                "id": "dtlint-files",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": watchers},
            }
            self._request_of_client("client/registerCapability", {"registrations": [registration]})
        self._ask_for_settings()

    def _ask_for_settings(self) -> None:
        if self._can("workspace", "configuration"):

            def then(result: Any) -> None:
                if isinstance(result, list) and result and result[0] is not None:
                    self._set(result[0])

            self._request_of_client("workspace/configuration", {"items": [{"section": "dtlint"}]}, then)

    def _set(self, table: object) -> None:
        """Take settings of the client; of those that are wrong, say so, and keep what there is."""
        options, wrong = self._options.updated(table)
        for problem in wrong:
            self._show(problem)
        if options != self._options:
            self._options = options
            self._read_all()
            if self._can("workspace", "inlayHint", "refreshSupport"):
                self._request_of_client("workspace/inlayHint/refresh", {})

    def _did_change_configuration(self, params: Params) -> None:
        settings = params.get("settings")
        if isinstance(settings, dict) and settings:
            self._set(settings.get("dtlint", settings))
        else:
            self._ask_for_settings()

    def _files_changed(self, params: Params) -> None:
        changed = {path_of(change["uri"]) for change in params["changes"]}
        own = {open.buffer.file for open in self._open.values()}
        if changed - own:  # of these the editor's text counts
            self._read_all()

    # -- texts -----------------------------------------------------------------------------------------------------------

    def _did_open(self, params: Params) -> None:
        document = params["textDocument"]
        uri, text = str(document["uri"]), document["text"]
        if not isinstance(text, str):
            raise TypeError("the text is no string")
        if uri not in self._of_cell:
            self._add(Buffer(uri, str(document.get("languageId", "")), document.get("version"), text))

    def _add(self, buffer: Buffer) -> None:
        if buffer.is_read:
            open = self._open[buffer.uri] = _Open(buffer, checked_text=_on_disk(buffer))
            self._read(open, at_once=True)

    def _did_change(self, params: Params) -> None:
        document = params["textDocument"]
        open = self._open.get(document["uri"])
        if open is not None:
            open.buffer.change(params["contentChanges"], self._encoding, document.get("version"))
            self._read(open)

    def _did_save(self, params: Params) -> None:
        self._saved(str(params["textDocument"]["uri"]))

    def _saved(self, uri: str) -> None:
        """What others show of a file may have changed with it."""
        for open in self._open.values():
            if open.buffer.uri != uri:
                self._read(open)

    def _did_close(self, params: Params) -> None:
        self._close(str(params["textDocument"]["uri"]))

    def _close(self, uri: str) -> None:
        open = self._open.pop(uri, None)
        if open is None:
            return
        self._ask(uri)
        for text in open.published:
            self._notify("textDocument/publishDiagnostics", {"uri": text, "diagnostics": []})
        for one in [one for one in self._waiting if one.open is open]:
            self._waiting.remove(one)
            self._reply(one.id, None)

    def _notebook_did_open(self, params: Params) -> None:
        document = params["notebookDocument"]
        texts = {one["uri"]: one for one in params.get("cellTextDocuments", [])}
        notebook = Notebook(str(document["uri"]), "python", document.get("version"), "")
        notebook.cells = [_cell(one, texts) for one in document["cells"]]
        for cell in notebook.cells:
            self._of_cell[cell.uri] = notebook.uri
        self._add(notebook)

    def _notebook_did_change(self, params: Params) -> None:
        document = params["notebookDocument"]
        open = self._open.get(document["uri"])
        if open is None or not isinstance(open.buffer, Notebook):
            return
        notebook = open.buffer
        notebook.version = document.get("version", notebook.version)
        cells = (params.get("change") or {}).get("cells") or {}
        structure = cells.get("structure")
        if structure:
            texts = {one["uri"]: one for one in structure.get("didOpen") or []}
            array = structure["array"]
            known = {cell.uri: cell for cell in notebook.cells}
            new = [known.get(one["document"]) or _cell(one, texts) for one in array.get("cells") or []]
            notebook.rearrange(array["start"], array["deleteCount"], new)
            for cell in new:
                self._of_cell[cell.uri] = notebook.uri
            for closed in structure.get("didClose") or []:
                self._of_cell.pop(closed["uri"], None)
        for change in cells.get("textContent") or []:
            changed = notebook.cell(change["document"]["uri"])
            if changed is not None:
                holder = Buffer(changed.uri, changed.language, None, changed.text)
                holder.change(change["changes"], self._encoding, None)
                changed.text = holder.text
        self._read(open)

    def _notebook_did_save(self, params: Params) -> None:
        self._saved(str(params["notebookDocument"]["uri"]))

    def _notebook_did_close(self, params: Params) -> None:
        uri = str(params["notebookDocument"]["uri"])
        self._of_cell = {cell: notebook for cell, notebook in self._of_cell.items() if notebook != uri}
        self._close(uri)

    def _holder(self, uri: str) -> tuple[_Open, int | None] | None:
        """What is open under a URI, and which cell of it that names."""
        open = self._open.get(self._of_cell.get(uri, uri))
        if open is None:
            return None
        if isinstance(open.buffer, Notebook):
            numbers = [number for number, cell in enumerate(open.buffer.cells, 1) if cell.uri == uri]
            return (open, numbers[0]) if numbers else None
        return open, None

    # -- reading ---------------------------------------------------------------------------------------------------------

    def _read(self, open: _Open, *, at_once: bool = False) -> None:
        """Have a text read when it has been left alone for a moment."""
        open.buffer.revision += 1
        open.due = time.monotonic() + (0 if at_once else self._options.debounce / 1000)

    def _read_all(self) -> None:
        for open in self._open.values():
            self._read(open)

    def next_due(self) -> float | None:
        """Seconds until `tick` has something to do; None: not before another message."""
        times = [open.due for open in self._open.values() if open.due is not None]
        times += [one.until for one in self._waiting]
        return max(min(times) - time.monotonic(), 0) if times else None

    def tick(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for open in self._open.values():
            if open.due is not None and open.due <= now:
                open.due = None
                self._ask(self._task(open))
        for one in [one for one in self._waiting if one.until <= now]:
            self._waiting.remove(one)
            self._reply(one.id, None)

    def reading_failed(self) -> None:
        """The reading process has died, and there is a new one."""
        for open in self._open.values():
            open.due = time.monotonic()

    def reading_given_up(self) -> None:
        """The reading process has died too often, and there is none any more."""
        self._show("the process that reads files died again and again: restart the server, and please report it")

    def _task(self, open: _Open, *, fix: bool = False) -> Task:
        buffer = open.buffer
        files = {str(one.buffer.file): one for one in self._open.values() if one.buffer.file is not None}
        unsaved = {path: one.buffer.data() for path, one in files.items() if one is not open}
        paths = tuple(Path(path) for path in files)
        return Task(
            buffer.uri, buffer.revision, buffer.file, buffer.shown, buffer.data(), unsaved, self._options, fix, paths
        )

    def answered(self, answer: object) -> None:
        """The reading process has found something out. Never raises, but where the editor is gone."""
        try:
            self._answered(answer)
        except BrokenPipeError:
            raise
        except Exception as error:
            self._show(f"internal error: {in_one_line(error)}; please report it")

    def _answered(self, answer: object) -> None:
        assert isinstance(answer, (Checked, Told, WholeProject, Fixed))
        open = self._open.get(answer.key)
        if open is None or answer.revision != open.buffer.revision:
            return
        if isinstance(answer, Checked):
            self._checked(open, answer)
        elif isinstance(answer, WholeProject):
            self._of_whole_project(open, answer)
        elif isinstance(answer, Fixed):
            open.fixed = answer
        else:
            path = open.buffer.file
            open.told, open.rests_on = answer.revision, answer.rests_on or open.rests_on
            open.hints = None if answer.tables is None or path is None else Hints(answer, path)
            if self._options.inlay_hints and self._can("workspace", "inlayHint", "refreshSupport"):
                self._request_of_client("workspace/inlayHint/refresh", {})
        for one in [one for one in self._waiting if one.open is open and one.is_ready()]:
            self._waiting.remove(one)
            try:
                one.then()
            except Exception as error:
                self._refuse(one.id, _INTERNAL, f"internal error: {in_one_line(error)}; please report it")

    def _checked(self, open: _Open, answer: Checked) -> None:
        text = open.buffer.text
        if answer.problem:
            self._show(answer.problem)
        before = open.checked_text
        if answer.readable:
            others = [one for one in answer.diagnostics if one.code != UNUSED_SUPPRESSION[0]]
            open.of_project = carried(open.of_project, before, text)
            found = [*others, *open.of_project]
            open.good = found, text
        else:  # most of what was wrong before somebody began to type is wrong still
            found = [*answer.diagnostics, *carried(*open.good, text)]
        open.alone, open.found = answer.diagnostics, found
        open.checked_text, open.checked = text, answer.revision
        self._publish(open)
        path = str(open.buffer.file)
        if before != text:
            for other in self._open.values():
                is_known = other.told == other.buffer.revision
                if other is not open and (not is_known or path in other.rests_on):
                    self._read(other)

    def _of_whole_project(self, open: _Open, answer: WholeProject) -> None:
        alone = {(one.code, one.location.span) for one in open.alone}
        if answer.diagnostics is not None:
            found = answer.diagnostics
        elif open.good[1] == open.buffer.text:
            found = open.alone
        else:
            return
        open.of_project = [one for one in found if (one.code, one.location.span) not in alone]
        open.good = found, open.buffer.text
        if [*found] != [*open.found]:
            open.found = found
            self._publish(open)

    # -- what is shown ---------------------------------------------------------------------------------------------------

    def _places(self, open: _Open) -> Places:
        def other(path: Path) -> tuple[str, str] | None:
            for one in self._open.values():
                if one.buffer.file == path:
                    return one.buffer.uri, one.buffer.text
            return None

        return Places(open.buffer.shown, open.buffer.texts(self._encoding), other, self._encoding)

    def _in_protocol(self, open: _Open) -> list[tuple[Diagnostic, str, Params]]:
        """What was found, each with the URI of its text and in the words of the protocol."""
        places = self._places(open)
        told = [(one, in_protocol(one, places, self._pages.uri)) for one in open.found]
        return [(one, *pair) for one, pair in told if pair is not None]

    def _publish(self, open: _Open) -> None:
        by_text: dict[str, list[Params]] = {uri: [] for uri, _ in open.buffer.texts(self._encoding).values()}
        for _, uri, told in self._in_protocol(open):
            by_text.setdefault(uri, []).append(told)
        for uri in open.published - by_text.keys():
            by_text[uri] = []
        open.published = set(by_text)
        version = (
            {} if open.buffer.version is None or isinstance(open.buffer, Notebook) else {"version": open.buffer.version}
        )
        for uri, diagnostics in by_text.items():
            self._notify("textDocument/publishDiagnostics", {"uri": uri, **version, "diagnostics": diagnostics})

    # -- requests --------------------------------------------------------------------------------------------------------

    def _when(self, id: object, open: _Open, is_ready: Callable[[], bool], then: Callable[[], None]) -> None:
        """Go on with a request now, or when what it asks about has been read."""
        if is_ready():
            then()
        else:
            self._waiting.append(_Waiting(id, open, is_ready, then, time.monotonic() + _PATIENCE))

    def _hover(self, id: object, params: Params) -> None:
        position, found = params["position"], self._holder(params["textDocument"]["uri"])
        if found is None:
            self._reply(id, None)
            return
        open, cell = found

        def answer() -> Any:
            text = open.buffer.texts(self._encoding).get(cell)
            return open.hints.at(cell, *text[1].place(position), text[1]) if open.hints and text else None

        open.buffer.texts(self._encoding)[cell][1].place(position)  # refuses what is no place
        self._when(id, open, lambda: open.told == open.buffer.revision, lambda: self._reply(id, answer()))

    def _inlay_hints(self, id: object, params: Params) -> None:
        first, last = params["range"]["start"]["line"] + 1, params["range"]["end"]["line"] + 1
        found = self._holder(params["textDocument"]["uri"])
        if found is None or not self._options.inlay_hints:
            self._reply(id, [])
            return
        open, cell = found

        def answer() -> Any:
            text = open.buffer.texts(self._encoding).get(cell)
            return open.hints.beside(cell, first, last, text[1]) if open.hints and text else []

        self._when(id, open, lambda: open.told == open.buffer.revision, lambda: self._reply(id, answer()))

    def _code_actions(self, id: object, params: Params) -> None:
        found = self._holder(params["textDocument"]["uri"])
        if found is None:
            self._reply(id, [])
            return
        open, _ = found
        uri, wanted = params["textDocument"]["uri"], params["range"]
        only = (params.get("context") or {}).get("only")
        first, last = _pair(wanted["start"]), _pair(wanted["end"])

        def answer() -> Any:
            there = [
                (one, told)
                for one, at, told in self._in_protocol(open)
                if at == uri and _pair(told["range"]["start"]) <= last and first <= _pair(told["range"]["end"])
            ]
            if not actions.wants(only, actions.QUICK_FIX):
                return []
            texts = open.buffer.texts(self._encoding)
            about = open.buffer.data(), open.buffer.shown, texts
            return [
                *actions.fixes(there, *about, lambda edits: self._edit(open, edits)),
                *actions.suppressions(there, *about, lambda edits: self._edit(open, edits)),
            ]

        def answer_all() -> None:
            if not actions.wants(only, actions.FIX_ALL) or not any(_is_safe(one) for one in open.found):
                self._reply(id, answer())
            else:
                self._fix_all(id, open, answer())

        self._when(id, open, lambda: open.checked == open.buffer.revision, answer_all)

    def _fix_all(self, id: object, open: _Open, others: list[Params]) -> None:
        """Answer with all safe fixes at once beside other actions, when these have been applied to the text."""
        buffer, revision = open.buffer, open.buffer.revision

        def is_ready() -> bool:
            return buffer.revision != revision or (open.fixed is not None and open.fixed.revision == revision)

        def answer() -> list[Params]:
            if buffer.revision != revision:  # the places of the others are out of date, too
                return []
            edits = self._all_fixes(open)
            title = "Fix all that dtlint can fix safely"
            all_safe = {"title": title, "kind": actions.FIX_ALL, "edit": self._edit(open, edits)}
            return [*others, all_safe] if edits else others

        if not is_ready():
            self._ask(replace(self._task(open), fix=True))
        self._when(id, open, is_ready, lambda: self._reply(id, answer()))

    def _all_fixes(self, open: _Open) -> actions.Edits:
        """What makes the fixed text of the one that is open."""
        buffer, fixed = open.buffer, open.fixed
        if fixed is None or fixed.text is None:
            return {}
        try:
            before, after = (Source.from_bytes(text, buffer.shown) for text in (buffer.data(), fixed.text))
            return actions.edits_between(before, after, buffer.texts(self._encoding))
        except UnreadableSource:
            return {}

    def _edit(self, open: _Open, edits: actions.Edits) -> Params:
        """Edits as a `WorkspaceEdit`."""
        if not self._can("workspace", "workspaceEdit", "documentChanges"):
            return {"changes": edits}
        version = None if isinstance(open.buffer, Notebook) else open.buffer.version
        return {
            "documentChanges": [
                {"textDocument": {"uri": uri, "version": version}, "edits": changes} for uri, changes in edits.items()
            ]
        }


def _cell(given: Params, texts: dict[str, Params]) -> Cell:
    """A cell of a notebook, with the text that is sent beside it."""
    uri, is_code = str(given["document"]), given.get("kind") == 2
    document = texts.get(uri, {})
    return Cell(uri, str(document.get("languageId", "python")), is_code, str(document.get("text", "")))


def _on_disk(buffer: Buffer) -> str:
    """What others have read of a file before it was open."""
    try:
        return "" if buffer.file is None else buffer.file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _pair(position: Params) -> tuple[int, int]:
    return position["line"], position["character"]


def _is_safe(diagnostic: Diagnostic) -> bool:
    from dtlint.diagnostic import Applicability

    return diagnostic.fix is not None and diagnostic.fix.applicability is Applicability.SAFE
