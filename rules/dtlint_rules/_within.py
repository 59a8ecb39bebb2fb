"""What a node is directly a part of, in the running statement or function alone: the map of a whole module costs more
than the rest of a rule, and most questions end at the statement."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.around import mapped, parents
from dtlint.infer.walk import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.events import Flow

__all__ = ["parents_at", "parents_in", "statement_of", "within"]

_BLOCKS = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
_OWN = {
    kind: tuple(name for name in names if not (issubclass(kind, ast.stmt) and name in _BLOCKS))
    for kind, names in PARTS.items()
}
"""The fields of each kind of node that hold nodes, of statements without those for further statements."""


def parents_at(node: ast.AST, flow: Flow) -> Mapping[ast.AST, ast.AST]:
    """What each expression of the running statement is a part of; of the whole module, where the node is none of them."""
    known = _of_statement(flow.statement)
    return known if node in known else parents(flow.tree)


def within(node: ast.AST, flow: Flow) -> Iterator[ast.AST]:
    """What a node of the running statement stands in, innermost first, below its statement."""
    if getattr(flow.statement, "value", None) is node:
        return
    known = parents_at(node, flow)
    parent = known.get(node)
    while parent is not None and not isinstance(parent, ast.stmt):
        yield parent
        parent = known.get(parent)


def statement_of(node: ast.AST, scope: ast.AST) -> ast.AST:
    """The innermost statement of a function that a node stands in; the function, where that is a lambda."""
    known = parents_in(scope)
    while not isinstance(node, ast.stmt) and node in known:
        node = known[node]
    return node


@lru_cache(maxsize=4)
def _of_statement(statement: ast.stmt) -> dict[ast.AST, ast.AST]:
    return mapped(statement, _OWN)


@lru_cache(maxsize=4)
def parents_in(scope: ast.AST) -> dict[ast.AST, ast.AST]:
    """What each node in a function is a part of."""
    return mapped(scope)
