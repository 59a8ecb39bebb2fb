"""The blocks of a compound statement: its bodies, one after the other."""

from __future__ import annotations

import ast

__all__ = ["blocks_of"]

_SIMPLE = frozenset({ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Assert})
"""Most statements, which hold no others."""


def blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The statements in each of its blocks, empty ones left out; those of handlers and of cases last."""
    if type(statement) in _SIMPLE:
        return []
    blocks = [block for name in ("body", "orelse", "finalbody") if (block := getattr(statement, name, None))]
    return blocks + [part.body for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ()))]
