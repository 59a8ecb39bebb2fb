"""Free names: what a function finds under the names around it, as Python's own scopes say."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dtlint.infer.survey import around
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from dtlint.infer.scopes import FunctionNode

__all__ = ["free_names"]


@lru_cache(maxsize=8192)
def free_names(node: FunctionNode) -> frozenset[str]:
    """The names that a function, and those inside it, read or bind outside of it."""
    arguments = node.args
    given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    read, bound, outside = _names_in(node)
    return frozenset((read - (bound | {one.arg for one in given if one is not None})) | outside)


def _free_in(scope: ast.AST) -> frozenset[str]:
    """The free names of a function or class."""
    if isinstance(scope, ast.ClassDef):  # whose own names its methods do not see
        read, _, outside = _names_in(scope)
        return frozenset(read | outside)
    return free_names(scope)


def _names_in(scope: Any) -> tuple[set[str], set[str], set[str]]:
    """The names that a scope reads, binds for itself, and declares to be of another. What a comprehension binds is bound
    there alone, so it counts as read: elsewhere the same name may be another's."""
    read: set[str] = set()
    bound: set[str] = set()
    outside: set[str] = set()
    turning: set[ast.AST] = set()
    waiting: list[ast.AST] = list(scope.body) if isinstance(scope.body, list) else [scope.body]
    while waiting:
        inner: list[ast.AST] = []
        found = list(nodes(waiting, SCOPES))
        turning.update(name for part in found if isinstance(part, ast.comprehension) for name in ast.walk(part.target))
        for part in found:
            if isinstance(part, ast.Name):
                (read if isinstance(part.ctx, ast.Load) or part in turning else bound).add(part.id)
            elif isinstance(part, SCOPES):
                read |= _free_in(part)
                inner += filter(None, around(part))
                if not isinstance(part, ast.Lambda):
                    bound.add(part.name)
            elif isinstance(part, (ast.Global, ast.Nonlocal)):
                outside.update(part.names)
            elif isinstance(part, ast.alias):
                bound.add((part.asname or part.name).partition(".")[0])
            elif isinstance(part, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and part.name:
                bound.add(part.name)
            elif isinstance(part, ast.MatchMapping) and part.rest:
                bound.add(part.rest)
        waiting = inner
    return read, bound - outside, outside
