"""A file as the checker sees it: its Python text, and the way from a place in that text to a place on disk and back.

Everything that depends on how a file is stored (encoding, BOM, line endings, notebook JSON) ends here.
"""

from __future__ import annotations

import os
import tokenize
from bisect import bisect_right
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint.diagnostic import Location, Span
from dtlint.source.lines import LINE_END, count_ends, split_lines

if TYPE_CHECKING:
    import ast

    from dtlint.source.notebook import Notebook

__all__ = ["Kind", "Source", "UnreadableSource", "shown_path"]

BOM = b"\xef\xbb\xbf"
WIDE_BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\xff\xfe\x00\x00": "UTF-32", b"\x00\x00\xfe\xff": "UTF-32"}
"""Python reads no such file: a null byte ends its tokenizer."""

LONG_SPAN = 8
"""A frame shows the head and the tail of a span of more lines than this."""


class Kind(Enum):
    """What a file holds, by its suffix; a file of any other suffix is taken for a module."""

    MODULE = ".py"
    STUB = ".pyi"
    NOTEBOOK = ".ipynb"


class UnreadableSource(ValueError):
    """The bytes of a file are no Python text. `line` counts from 1, `column` from 0."""

    def __init__(self, message: str, line: int = 1, column: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column

    def __reduce__(self) -> tuple[type[UnreadableSource], tuple[str, int, int]]:
        return type(self), (self.message, self.line, self.column)


def shown_path(path: Path | str) -> str:
    """The path as reports show it: relative to the working directory where it lies below it, with slashes."""
    below = str(Path.cwd() / "_")[:-1]
    absolute = os.path.abspath(path)  # Path.absolute() keeps `..`, and Path.resolve() follows links
    shown = absolute[len(below) :] if absolute.startswith(below) else os.fspath(path)
    return shown.replace(os.sep, "/") if os.sep != "/" else shown


@dataclass(frozen=True)
class Source:
    """A file's Python text.

    Lines count from 1 and columns from 0 in characters, as everywhere; those of a notebook's text run over its
    code cells.
    """

    path: str
    """As reports show it."""
    kind: Kind
    text: str
    """What is parsed: decoded, without a BOM, with the line endings that the file has. Of a notebook the code cells."""
    data: bytes
    """The file's bytes for this text."""
    encoding: str = "utf-8"
    notebook: Notebook | None = None
    file: Path | None = None
    """Where it is; None for text that comes from nowhere."""

    @classmethod
    def read(cls, path: Path | str, shown: str | None = None) -> Source:
        """The file at `path`.

        Raises:
            UnreadableSource: its bytes are no Python text.
            OSError: it cannot be read at all.
        """
        with open(path, "rb", buffering=0) as file:  # read whole: a buffer would cost three more calls of the system
            data = file.read()
        return cls.from_bytes(data, shown_path(path) if shown is None else shown, Path(path))

    @classmethod
    def from_bytes(cls, data: bytes, shown: str, file: Path | None = None) -> Source:
        """A file of these bytes; the suffix of `shown` says what kind it is.

        Args:
            file: where it is, or is to be.

        Raises:
            UnreadableSource: the bytes are no Python text.
        """
        for bom, name in WIDE_BOMS.items():
            if data.startswith(bom):
                raise UnreadableSource(f"the file is encoded in {name}, which Python does not read; save it as UTF-8")
        suffix = shown[shown.rfind(".") :] if "." in shown else ""
        if suffix == Kind.NOTEBOOK.value:
            return replace(_read_notebook(data, shown), file=file)
        encoding = _encoding(data)
        text = _decode(data.removeprefix(BOM), encoding)
        if "\0" in text:
            raise UnreadableSource(
                "the file holds a null byte, which Python code cannot; is it a Python file?",
                *_place(text, text.index("\0")),
            )
        kind = Kind.STUB if suffix == Kind.STUB.value else Kind.MODULE
        return cls(shown, kind, text, data, encoding, None, file)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the text as Python counts them, without their endings."""
        return tuple(split_lines(self.text))

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """The index in the text at which each line begins; one more stands after the text's last line ending."""
        if "\r" in self.text:
            return (0, *(found.end() for found in LINE_END.finditer(self.text)))
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return tuple(accumulate(lengths, initial=0))[:-1]

    @cached_property
    def newline(self) -> str:
        """The line ending that most lines have."""
        windows = self.text.count("\r\n")
        counts = {
            "\n": self.text.count("\n") - windows,
            "\r\n": windows,
            "\r": self.text.count("\r") - windows,
        }
        return max(counts, key=lambda ending: counts[ending])

    def span(self, node: ast.AST) -> Span:
        """Where a statement or an expression stands; ast counts columns in bytes of UTF-8."""
        line: int = node.lineno  # type: ignore[attr-defined]
        end_line: int = node.end_lineno  # type: ignore[attr-defined]
        return Span(
            line,
            self._column(line, node.col_offset),  # type: ignore[attr-defined]
            end_line,
            self._column(end_line, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def _column(self, line: int, offset: int) -> int:
        if not 0 < line <= len(self.lines):
            return offset
        content = self.lines[line - 1]
        if content.isascii():
            return offset
        return len(content.encode()[:offset].decode(errors="replace"))

    def offset(self, line: int, column: int) -> int:
        """The index in the text of a place. A place behind the text is its end."""
        if line > len(self.line_starts):
            return len(self.text)
        return min(self.line_starts[line - 1] + column, len(self.text))

    def between(self, span: Span) -> str:
        """The text of a span."""
        return self.text[self.offset(span.line, span.column) : self.offset(span.end_line, span.end_column)]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of an index in the text: `offset` the other way round."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1]

    def location(self, span: Span) -> Location:
        """The span as the reader of the file knows it: in a notebook by cell."""
        cell = self.notebook.cell_at(span.line) if self.notebook else None
        if self.notebook is None or cell is None:
            return Location(self.path, span)
        shift = cell.skipped + 1 - cell.first
        within = Span(span.line + shift, span.column, span.end_line + shift, span.end_column)
        return Location(self.path, within, cell.number, self.notebook.file_line(cell, within.line))

    def text_line(self, location: Location, line: int) -> int:
        """The line of the text that the reader of the file knows as `line`, in the cell of `location`."""
        cells = self.notebook.cells if self.notebook else ()
        return next((line - cell.skipped - 1 + cell.first for cell in cells if cell.number == location.cell), line)

    def frame(self, *spans: Span, context: int = 2) -> tuple[tuple[int, str], ...]:
        """The lines that show the spans, each with the number its reader knows, in order.

        Of a long span the middle is left out. In a notebook only the spans in the cell of the first one are shown.
        """
        if not spans:
            return ()
        cell = self.notebook.cell_at(spans[0].line) if self.notebook else None
        first, last, shift = 1, len(self.lines), 0
        if cell is not None:
            first, last = cell.first, min(cell.first + count_ends(cell.text.rstrip()), last)
            shift = cell.skipped + 1 - cell.first
        wanted: set[int] = set()
        for span in spans:
            if first <= span.line <= last:
                wanted.update(_shown(span, context))
        return tuple((line + shift, self._as_written(line)) for line in sorted(wanted) if first <= line <= last)

    def _as_written(self, line: int) -> str:
        if self.notebook is None:
            return self.lines[line - 1]
        from dtlint.source.magics import unmask

        return unmask(self.lines[line - 1])

    def replaced(self, text: str) -> Source:
        """The same file with another text.

        Raises:
            ValueError: the file cannot hold the text: its encoding lacks a character, or in a notebook an edit
                reaches over the end of a cell.
        """
        if text == self.text:
            return self
        if self.notebook is not None:
            notebook = self.notebook.replaced(text)
            bom = BOM if self.data.startswith(BOM) else b""
            return replace(self, text=notebook.text, data=bom + notebook.document.encode(), notebook=notebook)
        if self._encoded(self.text) != self.data:
            raise ValueError(f"{self.path} would not survive being written in {self.encoding}; save it as UTF-8 first")
        return replace(self, text=text, data=self._encoded(text))

    def _encoded(self, text: str) -> bytes:
        return (BOM if self.data.startswith(BOM) else b"") + text.encode(self.encoding)

    def encode(self) -> bytes:
        """The file's bytes: of a file that was only read the very bytes that were read."""
        return self.data


def _shown(span: Span, context: int) -> set[int]:
    first, last = span.line - context, span.end_line + context
    if span.end_line - span.line <= LONG_SPAN:
        return set(range(first, last + 1))
    return {*range(first, span.line + context + 1), *range(span.end_line - context, last + 1)}


def _encoding(data: bytes) -> str:
    """The encoding that a file's first two lines declare (PEP 263), or UTF-8."""
    if b"coding" not in data[:512]:
        return "utf-8"
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    except SyntaxError as error:
        if data.startswith(BOM):
            raise UnreadableSource(
                "the byte order mark says UTF-8, but the comment declares another encoding"
            ) from None
        if "unknown" not in str(error.msg):
            return "utf-8"  # no valid UTF-8 before any declaration: decoding says where
        raise UnreadableSource(f"{error.msg}; declare one that Python knows, or save the file as UTF-8") from None
    return "utf-8" if encoding == "utf-8-sig" else encoding


def _decode(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, "replace")
        culprit = data[error.start]
        raise UnreadableSource(
            f"the byte 0x{culprit:02x} is not valid {encoding}; save the file as UTF-8 or declare its encoding (PEP 263)",
            *_place(before, len(before)),
        ) from None


def _place(text: str, index: int) -> tuple[int, int]:
    starts = [0, *(found.end() for found in LINE_END.finditer(text, 0, index))]
    return len(starts), index - starts[-1]


def _read_notebook(data: bytes, shown: str) -> Source:
    from dtlint.source.notebook import Notebook, NotebookError

    document = _decode(data.removeprefix(BOM), "utf-8")
    try:
        notebook = Notebook(document)
    except NotebookError as error:
        raise UnreadableSource(error.message, error.line, error.column) from None
    try:
        notebook.text.encode()
    except UnicodeEncodeError:
        raise UnreadableSource("the notebook holds half a surrogate pair, which is no character") from None
    return Source(shown, Kind.NOTEBOOK, notebook.text, data, notebook=notebook)
