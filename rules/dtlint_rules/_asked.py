"""What a test asks for by the names in it: bfloat16, of a setting, a switch or a table of settings."""

from __future__ import annotations

import ast
import re

from dtlint.infer.names import path_of

__all__ = ["asks_bfloat16", "asks_float16"]

_BFLOAT16 = re.compile(r"(?:^|_)(?:bf16|bfloat16)(?:_(?:enabled|supported|available))?$", re.IGNORECASE)
"""How a switch or a value is called that asks for bfloat16, and a method that says whether it is asked for, or there."""
_FLOAT16 = re.compile(r"(?:^|_)(?:fp16|float16)(?:_(?:enabled|supported|available))?$", re.IGNORECASE)


def asks_bfloat16(test: ast.expr) -> str | None:
    """The part of a test that holds where bfloat16 is asked for: `args.bf16`, `precision == "bf16"`."""
    return _asks(test, _BFLOAT16)


def asks_float16(test: ast.expr) -> str | None:
    """The part of a test that holds where float16 is asked for, and bfloat16 is not: `args.fp16`, `is_fp16_supported()`."""
    return _asks(test, _FLOAT16) if _asks(test, _BFLOAT16) is None else None


def _asks(test: ast.expr, half: re.Pattern[str]) -> str | None:
    if isinstance(test, ast.BoolOp):
        return next(filter(None, (_asks(value, half) for value in test.values)), None)
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.In)):
            return None
        values = [part.value for part in ast.walk(test.comparators[0]) if isinstance(part, ast.Constant)]
        named = any(isinstance(value, str) and half.search(value) for value in values)
        return ast.unparse(test) if named else None
    if isinstance(test, ast.Subscript):  # `config["bf16"]["enabled"]`
        keys = [part.value for part in ast.walk(test) if isinstance(part, ast.Constant)]
        return ast.unparse(test) if any(isinstance(key, str) and half.search(key) for key in keys) else None
    if isinstance(test, ast.Call) and not (test.args or test.keywords):
        return f"{asked}()" if (asked := _asks(test.func, half)) is not None else None
    path = path_of(test)
    return path if path is not None and half.search(path.rpartition(".")[2]) else None
