"""What IPython adds to Python: `%magic`, `!command` and `help?` lines, turned into Python and back.

A masked line is the line itself behind a mark, so that taking the marks away restores the cell to the letter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["is_foreign", "is_magic", "mask", "unmask"]

CALL = "get_ipython()  # <magic>"
"""Stands before a masked line. IPython compiles such a line to a call of `get_ipython()` too."""
MORE = "# <magic>"
"""Stands before the lines by which a backslash continues a masked line."""

PYTHON_CELLS = frozenset({"capture", "debug", "prun", "pyinstrument", "python", "python3", "time", "timeit"})
"""The cell magics whose cell is Python. Any other (%%bash, %%html, %%writefile, ...) may hold anything."""

_MAGIC = re.compile(r"[ \t]*(?=[%!?])")
_ASSIGNED = re.compile(r"(?:[\w \t.,*]|\[[^\]=]*\])+=[ \t]*(?=[!%])")
_HELP = re.compile(r"([ \t]*)[%\w.*\[\]]+\?{1,2}[ \t]*$")
_TOKEN = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\])*(?:\"|\\?$)|'(?:\\.|[^'\\])*(?:'|\\?$)|#.*|[()\[\]{}]|\\$")


def is_magic(line: str) -> bool:
    """Does this first line of a cell hand the whole cell to a cell magic?"""
    return line.lstrip().startswith("%%")


def is_foreign(line: str) -> bool:
    """Does this first line of a cell say that the cell is not Python?"""
    name = re.match(r"\s*%%([\w.]*)", line)
    return name is not None and name[1] not in PYTHON_CELLS


def mask(text: str) -> str:
    """The cell as Python, line for line.

    A magic stands only where a statement can begin: a `%` that continues an expression over two lines is none.
    """
    if not any(sign in text for sign in "%!?"):
        return text
    return "\n".join(_masked(text.split("\n")))


def unmask(text: str) -> str:
    """The cell as its author wrote it."""
    return text.replace(CALL, "").replace(MORE, "")


def _masked(lines: list[str]) -> Iterator[str]:
    state = _Reader()
    magic = False
    for line in lines:
        if magic:
            yield MORE + line
            magic = line.endswith("\\")
            continue
        at = _magic_at(line) if state.at_start else None
        if at is None:
            state.read(line)
            yield line
        else:
            yield line[:at] + CALL + line[at:]
            magic = line.endswith("\\")


def _magic_at(line: str) -> int | None:
    """The column at which the magic of a line begins."""
    for form in (_MAGIC, _ASSIGNED):
        if found := form.match(line):
            return found.end()
    found = _HELP.match(line)
    return found.end(1) if found else None


class _Reader:
    """Follows brackets, strings and backslashes from line to line, to know where a statement can begin."""

    def __init__(self) -> None:
        self.depth = 0
        self.quote = ""
        self.continued = False

    @property
    def at_start(self) -> bool:
        return self.depth <= 0 and not self.quote and not self.continued

    def read(self, line: str) -> None:
        self.continued = False
        at = 0
        while True:
            if self.quote:
                end = _closing(line, self.quote, at)
                if end < 0:
                    return
                self.quote, at = "", end
            token = _TOKEN.search(line, at)
            if token is None:
                return
            at = token.end()
            if token[0] in ('"""', "'''"):
                self.quote = token[0]
            elif token[0] in "([{":
                self.depth += 1
            elif token[0] in ")]}":
                self.depth -= 1
            elif token[0].endswith("\\"):
                self.continued = token[0][0] != "#"


def _closing(line: str, quote: str, start: int) -> int:
    """The end of the triple quote that closes a string which is open at `start`; -1 if this line has none."""
    while True:
        at = line.find(quote, start)
        if at < 0:
            return -1
        backslashes = at - len(line[:at].rstrip("\\"))
        if backslashes % 2 == 0:
            return at + len(quote)
        start = at + 1
