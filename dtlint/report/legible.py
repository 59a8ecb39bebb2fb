"""Text that a terminal cannot misread: nothing invisible, nothing that moves the cursor, and of known width.

File names, source lines and messages come from strangers; an escape sequence among them must show, not act.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.diagnostic import Location

__all__ = ["legible", "place", "width"]

TAB = "    "
"""A tab shows as four columns wherever it stands, so that a caret below it can be placed."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def legible(text: str) -> str:
    """The text with tabs widened and control characters as their Unicode pictures: ESC shows as U+241B."""
    return text if text.isascii() and text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character == "\t":
        return TAB
    if character.isprintable():
        return character
    point = ord(character)
    if point < 0x20:
        return chr(0x2400 + point)
    if point == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return "\N{OPEN BOX}" if unicodedata.category(character) == "Zs" else REPLACEMENT


def width(text: str) -> int:
    """The terminal columns that legible text takes: two for wide East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def place(location: Location) -> str:
    """Where it is, as editors and Ruff write it: `path:line:column`, or `path:cell 3:line:column`, from 1."""
    cell = "" if location.cell is None else f"cell {location.cell}:"
    return f"{legible(location.path)}:{cell}{location.span.line}:{location.span.column + 1}"
