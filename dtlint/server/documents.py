"""The texts that the editor has open, and what is known of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from dtlint.server.buffers import Buffer, Cell, Notebook

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dtlint.diagnostic import Diagnostic
    from dtlint.server.client import Params
    from dtlint.server.hints import Hints
    from dtlint.server.tasks import Fixed

__all__ = ["Document", "Documents"]


@dataclass(eq=False)
class Document:
    """A text that is open, and what is known of it.

    Attributes:
        due: when it is to be read, if it is, in seconds of `time.monotonic`.
        typed: when it was changed last.
        checked_text, checked: the text that was checked last, and its revision; at first the text on the disk, which other
            files were checked with.
        diagnostics: those that are shown.
        alone: those of the file by itself.
        of_project: those that only the rest of the project explains, of the text before.
        last_good: the diagnostics of the last text that could be parsed, and that text.
        inferred: the revision whose dtypes are known.
        hints: those dtypes.
        fixed: the text with its safe fixes, of the revision for which the editor asked last.
        rests_on: the other files that were looked into.
        published: the URIs that diagnostics were published for.
    """

    buffer: Buffer
    due: float | None = None
    typed: float = -inf
    checked_text: str = ""
    checked: int = -1
    diagnostics: Sequence[Diagnostic] = ()
    alone: Sequence[Diagnostic] = ()
    of_project: Sequence[Diagnostic] = ()
    last_good: tuple[Sequence[Diagnostic], str] = ((), "")
    inferred: int = -1
    hints: Hints | None = None
    fixed: Fixed | None = None
    rests_on: frozenset[str] = frozenset()
    published: set[str] = field(default_factory=set)


class Documents:
    """All that are open. What changes one gives it back, or None where nothing that dtlint reads has changed."""

    def __init__(self) -> None:
        self._by_uri: dict[str, Document] = {}
        self._notebook_of: dict[str, str] = {}
        """The notebook of each cell, by their URIs."""

    def __iter__(self) -> Iterator[Document]:
        return iter([*self._by_uri.values()])

    def find(self, uri: str) -> tuple[Document, int | None] | None:
        """The document of a URI, with the number of the cell where it is that of a cell."""
        document = self._by_uri.get(self._notebook_of.get(uri, uri))
        if document is None:
            return None
        if isinstance(document.buffer, Notebook):
            numbers = [number for number, cell in enumerate(document.buffer.cells, 1) if cell.uri == uri]
            return (document, numbers[0]) if numbers else None
        return document, None

    def at(self, path: Path) -> Document | None:
        """The one of a file."""
        return next((one for one in self if one.buffer.file == path), None)

    def files(self) -> dict[str, Document]:
        """Those that are files, by path."""
        return {str(one.buffer.file): one for one in self if one.buffer.file is not None}

    # -- texts -----------------------------------------------------------------------------------------------------------

    def open(self, params: Params) -> Document | None:
        """`textDocument/didOpen`. A cell is a part of its notebook."""
        given = params["textDocument"]
        uri, text = str(given["uri"]), given["text"]
        if not isinstance(text, str):
            raise TypeError("the text is no string")
        if uri in self._notebook_of:
            return None
        return self._add(Buffer(uri, str(given.get("languageId", "")), given.get("version"), text))

    def _add(self, buffer: Buffer) -> Document | None:
        if not buffer.is_read:
            return None
        document = self._by_uri[buffer.uri] = Document(buffer, checked_text=_on_disk(buffer))
        return document

    def change(self, params: Params, encoding: str) -> Document | None:
        """`textDocument/didChange`."""
        given = params["textDocument"]
        document = self._by_uri.get(given["uri"])
        if document is not None:
            document.buffer.change(params["contentChanges"], encoding, given.get("version"))
        return document

    def close(self, uri: str) -> Document | None:
        """The text is closed, or the notebook with all of its cells."""
        self._notebook_of = {cell: notebook for cell, notebook in self._notebook_of.items() if notebook != uri}
        return self._by_uri.pop(uri, None)

    # -- notebooks -------------------------------------------------------------------------------------------------------

    def open_notebook(self, params: Params) -> Document | None:
        """`notebookDocument/didOpen`."""
        given = params["notebookDocument"]
        texts = {one["uri"]: one for one in params.get("cellTextDocuments", [])}
        notebook = Notebook(str(given["uri"]), "python", given.get("version"), "")
        notebook.cells = [_cell(one, texts) for one in given["cells"]]
        for cell in notebook.cells:
            self._notebook_of[cell.uri] = notebook.uri
        return self._add(notebook)

    def change_notebook(self, params: Params, encoding: str) -> Document | None:
        """`notebookDocument/didChange`: cells that come, go or move, and the texts of cells."""
        given = params["notebookDocument"]
        document = self._by_uri.get(given["uri"])
        if document is None or not isinstance(document.buffer, Notebook):
            return None
        notebook = document.buffer
        notebook.version = given.get("version", notebook.version)
        cells = (params.get("change") or {}).get("cells") or {}
        if structure := cells.get("structure"):
            self._rearrange(notebook, structure)
        for change in cells.get("textContent") or []:
            cell = notebook.cell(change["document"]["uri"])
            if cell is not None:
                buffer = Buffer(cell.uri, cell.language, None, cell.text)
                buffer.change(change["changes"], encoding, None)
                cell.text = buffer.text
        return document

    def _rearrange(self, notebook: Notebook, structure: Params) -> None:
        texts = {one["uri"]: one for one in structure.get("didOpen") or []}
        array = structure["array"]
        known = {cell.uri: cell for cell in notebook.cells}
        new = [known.get(one["document"]) or _cell(one, texts) for one in array.get("cells") or []]
        notebook.rearrange(array["start"], array["deleteCount"], new)
        for cell in new:
            self._notebook_of[cell.uri] = notebook.uri
        for closed in structure.get("didClose") or []:
            self._notebook_of.pop(closed["uri"], None)


def _cell(given: Params, texts: dict[str, Params]) -> Cell:
    """A cell of a notebook, with the text that is sent beside it."""
    uri, is_code = str(given["document"]), given.get("kind") == 2
    text = texts.get(uri, {})
    return Cell(uri, str(text.get("languageId", "python")), is_code, str(text.get("text", "")))


def _on_disk(buffer: Buffer) -> str:
    """What other files were checked with before this one was open."""
    try:
        return "" if buffer.file is None else buffer.file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
