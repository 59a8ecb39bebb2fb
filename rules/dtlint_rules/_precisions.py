"""What a test says of the precision that a program is asked for: `mixed_precision == "bf16"`, `args.bf16`."""

from __future__ import annotations

import ast

from dtlint.dtypes.dtype import named
from dtlint_rules._casts import SHORT

__all__ = ["asks_for_precision", "precision_of"]


def precision_of(name: object) -> str | None:
    """The dtype that a name stands for, `bf16` or `bfloat16`; None for other names."""
    return SHORT.get(name) or named(name) if isinstance(name, str) else None


def asks_for_precision(test: ast.expr) -> bool:
    """Does a test ask for a precision in any way: by a switch, by a text, or by a dtype?"""
    for node in ast.walk(test):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
        if name is None and isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
        if name is not None and (precision_of(name) or "dtype" in name or "precision" in name):
            return True
    return False
