"""Code as messages and fixes quote it."""

from __future__ import annotations

import ast

__all__ = ["as_operand", "short"]

_LONGEST = 40
_ALONE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def as_operand(node: ast.expr, text: str | None = None) -> str:
    """An expression as a method can be called on it or an operator stand before it: `(a + b)` of `(a + b).float()`.

    The parentheses around an expression are no part of its node. `text` is how it is written, where that matters.
    """
    written = ast.unparse(node) if text is None else text
    return written if isinstance(node, _ALONE) else f"({written})"


def short(what: ast.expr | str) -> str:
    """An expression as it is written, its end left away where it is long."""
    text = what if isinstance(what, str) else ast.unparse(what)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
