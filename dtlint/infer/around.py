"""What stands around a piece of code: for each node of a module the node that it is a part of.

Kept for the module asked of last, for everybody who judges a file asks about the same one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes, parts

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

__all__ = ["around", "parents"]


@lru_cache(maxsize=2)
def parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """What each node of a module is directly a part of."""
    return {child: node for node in nodes([tree]) for child in parts(node)}


def around(node: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """What a node stands in, innermost first, up to the module."""
    known = parents(tree)
    parent = known.get(node)
    while parent is not None:
        yield parent
        parent = known.get(parent)
