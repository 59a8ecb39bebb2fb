"""The concrete syntax tree of just those statements whose commas and parentheses somebody asks for.

libcst keeps every comma and comment, and takes twenty times as long as `ast`; so of a file only the innermost statements
are parsed with it that a fix has to edit where `ast` does not see.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.diagnostic import Span
from dtlint.source.blocks import blocks_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import libcst as cst
    from libcst.metadata import MetadataWrapper

    from dtlint.source.file import Source

__all__ = ["ConcreteTree", "TooDeep"]

_DEEPEST = 1000
"""Nodes of ast, one inside another, that a statement may have. What libcst takes to parse one grows with the square of
these: a second for this many."""


class TooDeep(Exception):
    """A statement is too deeply nested for libcst, though Python can run it."""


class ConcreteTree:
    """Finds the libcst node of a call, parsing as little as that needs."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self._tree = tree
        self._parsed: dict[_Piece, dict[Span, list[cst.CSTNode]]] = {}
        self._spans: dict[int, Span] = {}
        """By the node's id, for hashing a node hashes all below it."""
        self._alive: list[MetadataWrapper] = []
        """Keeps the nodes alive, and so their ids their own."""

    def call_at(self, node: ast.Call) -> cst.Call | None:
        """The concrete node of a call; None when libcst does not read the statement as ast does.

        Raises:
            TooDeep: the statement is not parsed.
        """
        piece = _piece(node, self._tree, self.source.lines)
        found = [] if piece is None else self._nodes(piece).get(self.source.span(node), [])
        return next((each for each in found if type(each).__name__ == "Call"), None)  # type: ignore[return-value]

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of this tree stands, without the whitespace and parentheses around it."""
        return self._spans[id(node)]

    def _nodes(self, piece: _Piece) -> dict[Span, list[cst.CSTNode]]:
        nodes = self._parsed.get(piece)
        if nodes is None:
            nodes = self._parsed[piece] = self._parse(piece)
        return nodes

    def _parse(self, piece: _Piece) -> dict[Span, list[cst.CSTNode]]:
        import libcst as cst
        from libcst.metadata import MetadataWrapper, PositionProvider

        if _deeper_than(_DEEPEST, piece.statements):
            raise TooDeep
        lines = self.source.lines[piece.first - 1 : piece.last]
        head = ["if 1:"] if piece.inner else []  # a block of its own, in which it keeps its columns
        try:
            # Nothing else holds the tree, so it need not be copied; the copy takes as long as the parse.
            wrapper = MetadataWrapper(cst.parse_module("\n".join([*head, *lines, ""])), unsafe_skip_copy=True)
            positions = wrapper.resolve(PositionProvider)
        except cst.ParserSyntaxError:
            return {}
        except (RecursionError, KeyError) as error:  # libcst's positions turn the one into the other
            raise TooDeep from error
        nodes: dict[Span, list[cst.CSTNode]] = {}
        shift = piece.first - 1 - len(head)
        for node, position in positions.items():
            start, end = position.start, position.end
            span = Span(start.line + shift, start.column, end.line + shift, end.column)
            nodes.setdefault(span, []).append(node)
            self._spans[id(node)] = span
        self._alive.append(wrapper)
        return nodes


@dataclass(frozen=True)
class _Piece:
    """Lines that can be parsed alone: of a statement, or of several that share a line."""

    first: int
    last: int
    inner: bool
    """Do they stand inside a block?"""
    statements: list[ast.stmt] = field(compare=False)


def _piece(node: ast.expr | ast.stmt, tree: ast.Module, lines: Sequence[str]) -> _Piece | None:
    """The innermost statement with a node that has its lines to itself."""
    found = None
    block = tree.body
    while block:
        low = bisect_right(block, node.lineno, key=_first_line) - 1
        if low < 0:
            return found
        high = low + 1
        while low > 0 and _last_line(block[low - 1]) >= _first_line(block[low]):
            low -= 1
        while high < len(block) and _first_line(block[high]) <= _last_line(block[high - 1]):
            high += 1
        first, last = _first_line(block[low]), _last_line(block[high - 1])
        if found is None or _begins_line(block[low], lines[first - 1]):
            found = _Piece(first, last, found is not None, block[low:high])
        if high - low > 1:
            return found
        block = next(
            (inner for inner in blocks_of(block[low]) if _first_line(inner[0]) <= node.lineno <= _last_line(inner[-1])),
            [],
        )
    return found


def _deeper_than(limit: int, nodes: Sequence[ast.AST]) -> bool:
    """Are there more than so many nodes one inside another? Told level by level, for these may be too many to recurse."""
    for _ in range(limit):
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]
        if not nodes:
            return False
    return True


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(statement: ast.stmt) -> int:
    return statement.end_lineno or statement.lineno


def _begins_line(statement: ast.stmt, line: str) -> bool:
    """Does a line begin with the statement, and not as an `elif`, which is no statement alone?"""
    written = line.lstrip()
    if written.startswith("@"):
        return True
    return len(line) - len(written) == statement.col_offset and re.match(r"elif\b", written) is None
