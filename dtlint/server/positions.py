"""Places as editors count them, and back: lines from 0, and columns in units of an encoding, which is UTF-16 as a rule."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from dtlint.source.lines import LINE_END

if TYPE_CHECKING:
    from dtlint.diagnostic import Span

__all__ = ["ENCODINGS", "Text", "changed", "negotiated", "units"]

ENCODINGS = {"utf-16": "utf-16-le", "utf-8": "utf-8", "utf-32": "utf-32-le"}
_BYTES = {"utf-16": 2, "utf-8": 1, "utf-32": 4}


def negotiated(offered: object) -> str:
    """The encoding of columns, of those that the client offers: characters if it knows them, or else UTF-16."""
    known = offered if isinstance(offered, list) else []
    return "utf-32" if "utf-32" in known else "utf-16"


def units(line: str, column: int, encoding: str) -> int:
    """A column in characters as the client counts it."""
    if line.isascii():
        return column
    return len(line[:column].encode(ENCODINGS[encoding], "surrogatepass")) // _BYTES[encoding] + max(
        column - len(line), 0
    )


class Text:
    """A text with places in it.

    Args:
        encoding: of the columns that the client gives and wants.
    """

    def __init__(self, text: str, encoding: str) -> None:
        self.text, self.encoding = text, encoding
        self._starts = [0, *(found.end() for found in LINE_END.finditer(text))]

    def line(self, number: int) -> str:
        """The line with this number, from 0, without its ending; empty where there is none."""
        if not 0 <= number < len(self._starts):
            return ""
        end = self._starts[number + 1] if number + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[number] : end].rstrip("\r\n")

    def offset(self, position: Any) -> int:
        """The index of a place. One behind the end of its line is the end of that; one behind the text is the text's.

        Raises:
            TypeError, KeyError: it is no place.
        """
        number: int = position["line"]
        column: int = position["character"]
        if number >= len(self._starts):
            return len(self.text)
        line = self.line(number)
        if not line.isascii():
            within = line.encode(ENCODINGS[self.encoding], "surrogatepass")[: column * _BYTES[self.encoding]]
            column = len(within.decode(ENCODINGS[self.encoding], "ignore"))
        return self._starts[number] + min(column, len(line))

    def place(self, position: Any) -> tuple[int, int]:
        """The line, from 1, and the column in characters of a place.

        Raises:
            TypeError, KeyError: it is no place.
        """
        offset = self.offset(position)
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def position_of(self, offset: int) -> dict[str, int]:
        """The place of an index."""
        line = bisect_right(self._starts, offset)
        return self.position(line, offset - self._starts[line - 1])

    def position(self, line: int, column: int) -> dict[str, int]:
        """The place at a line, from 1, and a column in characters."""
        return {"line": line - 1, "character": units(self.line(line - 1), column, self.encoding)}

    def range(self, span: Span) -> dict[str, Any]:
        """A span as the client counts it."""
        return {
            "start": self.position(span.line, span.column),
            "end": self.position(span.end_line, span.end_column),
        }


def changed(text: str, changes: object, encoding: str) -> str:
    """A text after changes, each of a range or of everything.

    Raises:
        TypeError, KeyError: they are none.
    """
    if not isinstance(changes, list):
        raise TypeError("contentChanges is no list")
    for change in changes:
        new = change["text"]
        if not isinstance(new, str):
            raise TypeError("the text of a change is no string")
        where = change.get("range")
        if where is None:
            text = new
        else:
            index = Text(text, encoding)
            start, end = index.offset(where["start"]), index.offset(where["end"])
            text = text[:start] + new + text[max(start, end) :]
    return text
