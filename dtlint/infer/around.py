"""What stands around a piece of code: for each node of a module the node that it is a part of.

Kept for the module asked of last, for everybody who judges a file asks about the same one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.walk import PARTS, WITH_HOLES

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Mapping

__all__ = ["around", "forget", "mapped", "parents"]


@lru_cache(maxsize=1)
def parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """What each node of a module is directly a part of."""
    return mapped(tree)


def mapped(root: ast.AST, fields: Mapping[type, tuple[str, ...]] = PARTS) -> dict[ast.AST, ast.AST]:
    """What each node below one is directly a part of, where nodes are looked for in these fields."""
    known: dict[ast.AST, ast.AST] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        for name in fields[type(node)]:
            child = getattr(node, name, None)
            if type(child) is list:
                children = child if type(node) not in WITH_HOLES else list(filter(None, child))
                known.update(dict.fromkeys(children, node))
                stack += children
            elif child is not None:
                known[child] = node
                stack.append(child)
    return known


def forget() -> None:
    """Let go of the module that was asked of last."""
    parents.cache_clear()


def around(node: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """What a node stands in, innermost first, up to the module."""
    known = parents(tree)
    parent = known.get(node)
    while parent is not None:
        yield parent
        parent = known.get(parent)
