"""What `dtlint infer` says beside each line of a program: where a value is bound or returned, its dtype; elsewhere the
widest tensor expressions go by their text.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.claims.account import Note, shown, text
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from dtlint.diagnostic import Span
    from dtlint.infer.claims.reading import Reading

__all__ = ["notes"]

CROWDED = 3
"""More expressions than this on one line say nothing to a person."""
LONGEST = 40
"""Characters of an expression that a note names, beyond which there is no note."""

_BINDING = (ast.Assign, ast.AnnAssign, ast.Return)
"""What binds or returns the very value that stands there; `x += y` makes another of it."""


def notes(reading: Reading) -> dict[int, Note]:
    """For each line, what to say of the tensor expressions that end on it."""
    statements = [node for node in nodes([reading.tree]) if isinstance(node, (*_BINDING, ast.Expr))]
    whole = {id(node.value) for node in statements}
    bound = {node.end_lineno for node in statements if isinstance(node, _BINDING)}
    found = {
        reading.main.span(node).end_line: Note(words, None)
        for node, words in reading.symbolic.items()
        if id(node) in whole and not reading.knows(node)
    }
    for line, spanned in _widest(reading).items():
        values = [node for _, node in spanned if id(node) in whole]
        dtypes = reading.tensors[values[-1] if values else spanned[-1][1]][1]
        written = {text(reading.main, span): shown(reading.tensors[node][1]) for span, node in spanned}
        told = [f"{expression}: {has}" for expression, has in written.items() if len(expression) <= LONGEST]
        if values:
            found[line] = Note(shown(dtypes), dtypes)
        elif line not in bound and 0 < len(told) <= CROWDED:
            found[line] = Note("; ".join(told), dtypes)
    return found


def _widest(reading: Reading) -> dict[int, list[tuple[Span, ast.expr]]]:
    """For each line of the main file, the expressions ending there of whose dtype something is known, but for those that
    are part of another; in order of place."""
    known = [
        (reading.span(node), node)
        for node in reading.tensors
        if reading.knows(node) and reading.file(node) == reading.path
    ]
    widest: dict[int, list[tuple[Span, ast.expr]]] = {}
    for span, node in sorted(known, key=lambda spanned: _outermost_first(spanned[0])):
        others = widest.setdefault(span.end_line, [])
        if not any(other.contains(span) for other, _ in others):
            others.append((span, node))
    return widest


def _outermost_first(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, -span.end_line, -span.end_column
