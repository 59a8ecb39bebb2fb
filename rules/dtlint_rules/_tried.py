"""Calls that are made for what they raise, or where that is caught."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.around import around
from dtlint_rules._names import names_in, said

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call

__all__ = ["is_tried"]

_EXPECTING = frozenset({"raises", "assertRaises", "assertRaisesRegex", "suppress"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_ALL = frozenset({"Exception", "BaseException"})
_TRIES: tuple[type[ast.AST], ...] = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))


def is_tried(call: Call, raised: Iterable[str] = ()) -> bool:
    """Is a call run for what it raises, or is that caught? Where the names of what it raises are given, a handler of
    anything else does not count."""
    part: ast.AST = call.node
    for parent in around(call.node, call.flow.tree):
        if isinstance(parent, _FUNCTIONS):
            return False
        if isinstance(parent, (ast.With, ast.AsyncWith)):
            if any(not _EXPECTING.isdisjoint(said(item.context_expr)) for item in parent.items):
                return True
        elif isinstance(parent, _TRIES) and part in parent.body and _catches(parent.handlers, raised):  # type: ignore[attr-defined]
            return True
        part = parent
    return False


def _catches(handlers: list[ast.ExceptHandler], raised: Iterable[str]) -> bool:
    if not raised:
        return bool(handlers)
    wanted = _ALL.union(raised)
    return any(each.type is None or not wanted.isdisjoint(names_in(each.type)) for each in handlers)
