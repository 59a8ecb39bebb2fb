"""What a line is: what Python's tokenizer ends one at, which is less than `str.splitlines` does."""

from __future__ import annotations

import re

__all__ = ["LINE_END", "count_ends", "split_lines"]

LINE_END = re.compile(r"\r\n|\n|\r")
"""`str.splitlines` also splits at form feeds, U+2028 and more."""


def split_lines(text: str) -> list[str]:
    """The lines of a text, without their endings; a last line that is empty is none."""
    lines = LINE_END.split(text) if "\r" in text else text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def count_ends(text: str) -> int:
    """How many lines end within a text."""
    return sum(1 for _ in LINE_END.finditer(text)) if "\r" in text else text.count("\n")
