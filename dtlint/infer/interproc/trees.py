"""Syntax trees that several readings share: a file that many import is parsed once, as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from dtlint.infer.interproc.parsing import parsed

if TYPE_CHECKING:
    import ast
    from pathlib import Path

__all__ = ["Trees"]

_MOST_BYTES = 4_000_000
"""Of source: a tree takes some sixty times that."""


class Trees:
    """The trees of files, by what these hold; the ones that were asked for last."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, tuple[bytes, ast.Module]] = OrderedDict()
        self._bytes = 0

    def of(self, path: Path, data: bytes) -> ast.Module:
        """The tree of a file that holds this.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: it does not parse.
        """
        known = self._known.get(path)
        if known is not None and known[0] == data:
            self._known.move_to_end(path)
            return known[1]
        tree = parsed(data)
        if known is not None:
            self._bytes -= len(known[0])
        self._known[path] = data, tree
        self._bytes += len(data)
        while self._bytes > _MOST_BYTES and len(self._known) > 1:
            _, (dropped, _) = self._known.popitem(last=False)
            self._bytes -= len(dropped)
        return tree
