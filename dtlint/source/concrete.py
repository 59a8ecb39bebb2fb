"""The concrete syntax tree of just those statements that somebody suspects.

libcst keeps every comma and comment, and takes twenty times as long as `ast`; so only the top-level statements that
hold a finding are parsed with it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from dtlint.diagnostic import Span

if TYPE_CHECKING:
    import ast

    import libcst as cst
    from libcst.metadata import MetadataWrapper

    from dtlint.source.file import Source

__all__ = ["ConcreteTree"]

_OTHER_NAMES = {
    "BinOp": "BinaryOperation",
    "UnaryOp": "UnaryOperation",
    "Compare": "Comparison",
    "BoolOp": "BooleanOperation",
}
"""Where ast and libcst differ in the name of one thing. Others have the same name, or are taken by their span alone."""


class ConcreteTree:
    """Finds the libcst node that stands where an ast node does, parsing as little as that needs."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self._segments = _segments(tree)
        self._starts = [first for first, _ in self._segments]
        self._parsed: dict[int, dict[Span, list[cst.CSTNode]]] = {}
        self._spans: dict[int, Span] = {}
        """By the node's id, for hashing a node hashes all below it."""
        self._alive: list[MetadataWrapper] = []
        """Keeps the nodes alive, and so their ids their own."""

    def node_at(self, node: ast.expr | ast.stmt) -> cst.CSTNode | None:
        """The concrete node of an abstract one; None when libcst does not read the statement as ast does."""
        candidates = self._candidates(node)
        kind = type(node).__name__
        kind = _OTHER_NAMES.get(kind, kind)
        return next(
            (found for found in candidates if type(found).__name__ == kind), candidates[0] if candidates else None
        )

    def is_statement(self, node: ast.expr | ast.stmt) -> bool:
        """Is the expression a statement of its own?"""
        return any(type(found).__name__ == "Expr" for found in self._candidates(node))

    def _candidates(self, node: ast.expr | ast.stmt) -> list[cst.CSTNode]:
        """The concrete nodes of exactly that span."""
        index = bisect_right(self._starts, node.lineno) - 1
        return self._nodes(index).get(self.source.span(node), []) if index >= 0 else []

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node of this tree stands, without the whitespace and parentheses around it."""
        return self._spans[id(node)]

    def _nodes(self, index: int) -> dict[Span, list[cst.CSTNode]]:
        nodes = self._parsed.get(index)
        if nodes is None:
            nodes = self._parsed[index] = self._parse(*self._segments[index])
        return nodes

    def _parse(self, first: int, last: int) -> dict[Span, list[cst.CSTNode]]:
        import libcst as cst
        from libcst.metadata import MetadataWrapper, PositionProvider

        lines = self.source.lines[first - 1 : last]
        try:
            # Nothing else holds the tree, so it need not be copied; the copy takes as long as the parse.
            wrapper = MetadataWrapper(cst.parse_module("\n".join(lines) + "\n"), unsafe_skip_copy=True)
        except cst.ParserSyntaxError:
            return {}
        nodes: dict[Span, list[cst.CSTNode]] = {}
        shift = first - 1
        for node, position in wrapper.resolve(PositionProvider).items():
            start, end = position.start, position.end
            span = Span(start.line + shift, start.column, end.line + shift, end.column)
            nodes.setdefault(span, []).append(node)
            self._spans[id(node)] = span
        self._alive.append(wrapper)
        return nodes


def _segments(tree: ast.Module) -> list[tuple[int, int]]:
    """The first and last lines of the top-level statements; those that share a line go together."""
    segments: list[tuple[int, int]] = []
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        last = statement.end_lineno or statement.lineno
        if segments and first <= segments[-1][1]:
            segments[-1] = (segments[-1][0], max(last, segments[-1][1]))
        else:
            segments.append((first, last))
    return segments
