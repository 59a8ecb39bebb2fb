"""Code as messages quote it."""

from __future__ import annotations

import ast

__all__ = ["short"]

_LONGEST = 40


def short(what: ast.expr | str) -> str:
    """An expression as it is written, its end left away where it is long."""
    text = what if isinstance(what, str) else ast.unparse(what)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
