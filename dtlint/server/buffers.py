"""What the editor has open: texts, and notebooks whose cells are texts."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import pathname2url

from dtlint.server.positions import Text, changed
from dtlint.source.file import shown_path
from dtlint.source.settings_file import is_settings

__all__ = ["Buffer", "Cell", "Notebook", "on_windows", "path_of", "uri_of"]

_VIRTUAL = ".virtual_documents"
"""The folder in which jupyterlab-lsp says that a notebook lies whose cells it sends as one text of Python."""


def path_of(uri: str) -> Path | None:
    """The file that a URI names; None for what is no file, as an untitled buffer."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return None
    path = on_windows(parts.netloc, parts.path) if os.name == "nt" else unquote(parts.path)
    return Path(os.path.abspath(path)) if path else None


def on_windows(host: str, path: str) -> str:
    """What the host and the path of a URI are on Windows, with slashes. The colon of a drive may be escaped, as VS Code
    does; `urllib.request.url2pathname` takes that for no drive."""
    plain = unquote(path)
    return f"//{host}{plain}" if host not in ("", "localhost") else plain.lstrip("/")


def uri_of(path: Path | str) -> str:
    """The URI of a file."""
    absolute = os.path.abspath(path)
    return f"file:{pathname2url(absolute)}" if os.name == "nt" else f"file://{pathname2url(absolute)}"


@dataclass
class Cell:
    """A cell of a notebook."""

    uri: str
    language: str
    is_code: bool
    text: str


@dataclass
class Buffer:
    """A file that is open, or a text that is none yet.

    Attributes:
        version: counted by the client.
        revision: counted here, over all changes: what is known of an earlier one is out of date.
    """

    uri: str
    language: str
    version: int | None
    text: str
    revision: int = 0

    @property
    def file(self) -> Path | None:
        """Where it lies, or is to lie."""
        path = path_of(self.uri)
        if path is None or path.suffix != ".ipynb" or self.is_json:
            return path
        parts = [part for part in path.parts if part != _VIRTUAL]
        return Path(*parts).with_suffix(".py")  # its text is Python, though the file's is not

    @property
    def is_json(self) -> bool:
        """Is it the text of a notebook's file?"""
        return self.language != "python" or self.text.lstrip()[:1] == "{"

    @property
    def shown(self) -> str:
        """As messages name it."""
        path = self.file
        return "untitled.py" if path is None else shown_path(path)

    @property
    def is_read(self) -> bool:
        """Is it of a kind that dtlint reads?"""
        path = self.file
        if self.language == "python":
            return True
        return path is not None and (path.suffix in (".py", ".pyi", ".ipynb") or is_settings(path.name))

    def change(self, changes: object, encoding: str, version: int | None) -> None:
        """Apply changes.

        Raises:
            TypeError, KeyError: they are none; the text is as before.
        """
        self.text = changed(self.text, changes, encoding)
        self.version = version

    def data(self) -> bytes:
        """What the file would hold."""
        return self.text.encode("utf-8", "replace")

    def texts(self, encoding: str) -> dict[int | None, tuple[str, Text]]:
        """The texts that places are in, by the cell of a notebook, each with its URI."""
        return {None: (self.uri, Text(self.text, encoding))}


@dataclass
class Notebook(Buffer):
    """A notebook, of which the editor sends the cells."""

    cells: list[Cell] = field(default_factory=list)

    @property
    def file(self) -> Path | None:
        """Where it lies, or is to lie."""
        return path_of(self.uri)

    @property
    def shown(self) -> str:
        """As messages name it."""
        path = self.file
        return "untitled.ipynb" if path is None or path.suffix != ".ipynb" else shown_path(path)

    @property
    def is_read(self) -> bool:
        """Has it cells of Python?"""
        return True

    def data(self) -> bytes:
        """What the file would hold, as far as it is known: cells that the editor has not sent are not in it."""
        return json.dumps(
            {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [_as_json(cell) for cell in self.cells]}
        ).encode()

    def texts(self, encoding: str) -> dict[int | None, tuple[str, Text]]:
        """The texts of the cells by their numbers, from 1."""
        return {number: (cell.uri, Text(cell.text, encoding)) for number, cell in enumerate(self.cells, 1)}

    def rearrange(self, start: int, gone: int, new: list[Cell]) -> None:
        """Put cells in the place of others."""
        self.cells[start : start + gone] = new

    def cell(self, uri: str) -> Cell | None:
        """The cell of that URI."""
        return next((cell for cell in self.cells if cell.uri == uri), None)


def _as_json(cell: Cell) -> dict[str, Any]:
    if not cell.is_code:
        return {"cell_type": "markdown", "metadata": {}, "source": cell.text}
    metadata = {"vscode": {"languageId": cell.language}}
    return {"cell_type": "code", "metadata": metadata, "source": cell.text, "outputs": [], "execution_count": None}
