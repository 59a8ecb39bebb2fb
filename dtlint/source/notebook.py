"""A Jupyter notebook as one Python text: its code cells in order, and the way back from a line to its cell.

The JSON is never written anew. An edit replaces the `source` of the cells that changed, and nothing beside it.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

from dtlint.source.lines import count_ends
from dtlint.source.magics import is_foreign, is_magic, mask, unmask

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cell", "Notebook", "NotebookError"]

SEPARATOR = "\n# <cell{}>\n"
"""Stands between two cells in the joined text, so that edits may change the number of lines."""

_SPACE = re.compile(r"[ \t\r\n]*")
_SCAN = json.JSONDecoder(strict=False).raw_decode


class NotebookError(ValueError):
    """The file is no notebook that can be read."""

    def __init__(self, message: str, line: int = 1, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        """Of the .ipynb file, from 1."""
        self.column = column


@dataclass(frozen=True)
class Cell:
    """A code cell that holds Python."""

    number: int
    """Its place among all cells of the notebook, markdown too, from 1."""
    first: int
    """The line of the joined text at which it begins, from 1."""
    head: str
    """The line of its cell magic (`%%time`), which the joined text leaves out; else empty."""
    text: str
    """The rest, as its author wrote it."""
    pieces: tuple[tuple[int, str], ...]
    """The strings of its `source`, each with the place of its literal in the JSON text."""
    start: int
    end: int
    """The extent of the whole `source` value in the JSON text."""

    @property
    def skipped(self) -> int:
        """How many lines of the cell stand before the joined text's first line of it."""
        return 1 if self.head else 0


class Notebook:
    """The JSON text of a notebook, and the Python in it.

    Raises:
        NotebookError: no JSON, no notebook, or one of a format older than 4.
    """

    def __init__(self, document: str) -> None:
        self.document = document
        _check(_load(document))
        self.cells: tuple[Cell, ...] = tuple(_cells(document))
        masked = [mask(cell.text) for cell in self.cells]
        marks = map(SEPARATOR.format, count())
        self.separator = next(mark for mark in marks if not any(mark in text for text in masked))
        self.text = self.separator.join(masked)

    @cached_property
    def broken(self) -> tuple[tuple[Cell, Exception], ...]:
        """The cells that do not parse, each with what Python's parser says of it, in lines of the cell's text."""
        return tuple((cell, error) for cell in self.cells if (error := _error(mask(cell.text))) is not None)

    @property
    def refused(self) -> Iterator[tuple[Cell, Exception]]:
        """Those of them that IPython does not run either: it takes the indent of a cell's first line off all lines."""
        return ((cell, error) for cell, error in self.broken if _error(mask(_outdented(cell.text))) is not None)

    @property
    def readable(self) -> str:
        """The joined text with empty lines in place of the cells that do not parse: such a cell does not run."""
        gone = {cell for cell, _ in self.broken}
        return self.separator.join(
            "\n" * count_ends(cell.text) if cell in gone else mask(cell.text) for cell in self.cells
        )

    def cell_at(self, line: int) -> Cell | None:
        """The cell that holds a line of the joined text."""
        at = bisect_right(self.cells, line, key=lambda cell: cell.first)
        return self.cells[max(at - 1, 0)] if self.cells else None

    def file_line(self, cell: Cell, line: int) -> int:
        """The line of the .ipynb file that holds a line of a cell, both from 1."""
        passed = 0
        for place, piece in cell.pieces:
            passed += count_ends(piece)
            if passed >= line:
                return bisect_right(self._line_starts, place)
        return bisect_right(self._line_starts, cell.pieces[-1][0])

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.document))]

    def replaced(self, text: str) -> Notebook:
        """The notebook whose joined text is `text`.

        Raises:
            ValueError: the text has gained or lost a cell.
        """
        parts = text.split(self.separator) if self.cells else []
        if len(parts) != len(self.cells):
            raise ValueError(f"an edit reaches over the end of a cell: {len(self.cells)} cells became {len(parts)}")
        document = self.document
        for cell, part in reversed(list(zip(self.cells, parts, strict=True))):
            if part != mask(cell.text):
                if unmask(mask(cell.text)) != cell.text:
                    raise ValueError(f"cell {cell.number} cannot be told from the marks that stand for its magics")
                new = unmask(part)
                literal = _literal(document[cell.start : cell.end], cell.head + new)
                document = document[: cell.start] + literal + document[cell.end :]
        return Notebook(document)


def _outdented(text: str) -> str:
    """A cell without the indent of its first line, as IPython's `leading_indent` takes it off."""
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join(line.removeprefix(indent) for line in lines)


def _error(text: str) -> Exception | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return error
    return None


def _load(document: str) -> Any:
    try:
        return json.loads(document, strict=False)
    except json.JSONDecodeError as error:
        raise NotebookError(f"the notebook is not valid JSON: {error.msg}", error.lineno, error.colno - 1) from None
    except RecursionError:
        raise NotebookError("the notebook's JSON is nested too deeply to be read") from None


def _check(notebook: Any) -> None:
    if not isinstance(notebook, dict):
        raise NotebookError("the notebook's JSON is no object; is this a notebook?")
    if "worksheets" in notebook:
        raise NotebookError(
            "the notebook has the format 3 or older; convert it with `jupyter nbconvert --to notebook --nbformat 4`"
        )
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise NotebookError("the notebook has no list of cells")


def _is_python(notebook: dict[str, Any]) -> bool:
    """Notebooks of other kernels (R, Julia) hold no Python; one that names no language does."""
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        language = metadata.get(table, {}).get(key) if isinstance(metadata.get(table), dict) else None
        if isinstance(language, str):
            return language.lower() in ("python", "ipython")
    return True


def _cells(document: str) -> Iterator[Cell]:
    notebook = _load(document)
    if not _is_python(notebook):
        return
    at = {key: start for key, start, _ in _members(document, _skip(document, 0))}["cells"]
    first = 1
    for number, ((start, _), cell) in enumerate(zip(_items(document, at), notebook["cells"], strict=True), 1):
        if not _holds_python(cell):
            continue
        source = {key: (begin, end) for key, begin, end in _members(document, start)}["source"]
        text = "".join(cell["source"])
        head, rest = "", text
        if is_magic(text):
            line, newline, rest = text.partition("\n")
            head = line + newline
        yield Cell(number, first, head, rest, tuple(_pieces(document, source[0])), *source)
        first += count_ends(rest) + 2


def _holds_python(cell: dict[str, Any]) -> bool:
    if cell.get("cell_type") != "code":
        return False
    source = cell.get("source")
    if isinstance(source, list) and not all(isinstance(piece, str) for piece in source):
        return False
    if not isinstance(source, (list, str)):
        return False
    text = "".join(source)
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId", "python") if isinstance(editor, dict) else "python"
    return bool(text.strip()) and language == "python" and not is_foreign(text)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _members(text: str, at: int) -> Iterator[tuple[str, int, int]]:
    """Key, start and end of each value of the JSON object that begins at `at`. The JSON is known to be valid."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _SCAN(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _SCAN(text, start)
        yield key, start, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _items(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Start and end of each item of the JSON array that begins at `at`."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _SCAN(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _pieces(document: str, at: int) -> Iterator[tuple[int, str]]:
    """The strings of a `source` value, which is an array of strings or one string."""
    if document[at] == "[":
        for start, _ in _items(document, at):
            yield start, _SCAN(document, start)[0]
    else:
        yield at, _SCAN(document, at)[0]


def _literal(old: str, text: str) -> str:
    """`text` as a `source` value, written the way the old value is; a line that was there keeps its literal."""
    escape = old.isascii() and "\\u" in old
    if old[0] != "[":
        return json.dumps(text, ensure_ascii=escape)
    spans = list(_items(old, 0))
    known = {_SCAN(old, start)[0]: old[start:end] for start, end in spans}
    opening, closing = old[: spans[0][0]], old[spans[-1][1] :]
    between = old[spans[0][1] : spans[1][0]] if len(spans) > 1 else "," + (opening[1:] or " ")
    lines = re.findall("[^\n]*\n|[^\n]+$", text)
    return opening + between.join(known.get(line) or json.dumps(line, ensure_ascii=escape) for line in lines) + closing
