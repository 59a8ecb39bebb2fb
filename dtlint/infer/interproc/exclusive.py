"""Objects of which only one is there: those that one call has made in one class or another, or that the two arms of an `if`
have made."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.walk import parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address

__all__ = ["are_exclusive"]


def are_exclusive(ctx: Context, one: Address, other: Address) -> bool:
    """Where one of two objects is there, is the other not? Each address stands for one object: a loop that comes again to
    where they are made makes several of both."""
    if one == other or one.path is not other.path or ctx.store.is_several(one) or ctx.store.is_several(other):
        return False
    if one.site is other.site:
        return True
    if not isinstance(one.site, ast.Call) or not isinstance(other.site, ast.Call):
        return False
    arms = _arms(ctx.frame.module.tree)
    mine, its = arms.get(one.site, {}), arms.get(other.site, {})
    return any(its.get(branch, arm) != arm for branch, arm in mine.items())


@lru_cache(maxsize=64)
def _arms(tree: ast.Module) -> dict[ast.Call, dict[ast.AST, bool]]:
    """The calls that stand in an `if`, with each `if` around them, the innermost function's, and whether they stand in its
    first arm."""
    found: dict[ast.Call, dict[ast.AST, bool]] = {}
    waiting: list[tuple[ast.AST, dict[ast.AST, bool]]] = [(tree, {})]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.Call) and around:
            found[node] = around
        for child, arm in _children(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                waiting.append((child, {}))
            else:
                waiting.append((child, around if arm is None else {**around, node: arm}))
    return found


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, bool | None]]:
    """The nodes right below one; of an `if` with the arm that they stand in."""
    if not isinstance(node, (ast.If, ast.IfExp)):
        yield from ((child, None) for child in parts(node))
        return
    yield node.test, None
    for arm, part in ((True, node.body), (False, node.orelse)):
        yield from ((child, arm) for child in (part if isinstance(part, list) else [part]))
