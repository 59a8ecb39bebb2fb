"""The dicts behind attributes: what has `x.__dict__` or `vars(x)` in hand may change any attribute of x under its name.

Most only read it, in a handful of ways; whatever does anything else with it is taken to change it.
"""

from __future__ import annotations

import ast
from functools import lru_cache

__all__ = ["ATTRIBUTE_TABLES", "reading_places", "updated_object"]

ATTRIBUTE_TABLES = frozenset({"__dict__", "_buffers", "_modules", "_parameters"})
"""Attributes that are such dicts; all but the first are those of torch.nn.Module."""

_READING_METHODS = frozenset({"__contains__", "__getitem__", "__len__", "copy", "get", "items", "keys", "values"})
_READERS = frozenset(
    {"copy", "deepcopy", "dict", "dumps", "isinstance", "len", "list", "print", "repr", "set", "sorted", "str", "tuple"}
)


@lru_cache(maxsize=64)
def reading_places(tree: ast.Module) -> frozenset[ast.expr]:
    """Every expression of a file whose value is no more than read where it stands."""
    return frozenset(read for node in ast.walk(tree) for read in _read_by(node))


def updated_object(call: ast.Call) -> ast.expr | None:
    """The object of `x.__dict__.update(...)` and `vars(x).update(...)`; None for any other call."""
    function = call.func
    if not isinstance(function, ast.Attribute) or function.attr != "update":
        return None
    table = function.value
    if isinstance(table, ast.Attribute) and table.attr == "__dict__":
        return table.value
    if isinstance(table, ast.Call) and isinstance(table.func, ast.Name) and table.func.id == "vars":
        return table.args[0] if len(table.args) == 1 else None
    return None


def _read_by(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Attribute):
        return [node.value] if node.attr in _READING_METHODS else []
    if isinstance(node, ast.Subscript):
        inner = isinstance(node.slice, ast.Constant) and node.slice.value in ATTRIBUTE_TABLES  # vars(x)["_buffers"]
        return [node.value] if isinstance(node.ctx, ast.Load) and not inner else []
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Dict):
        return [value for key, value in zip(node.keys, node.values, strict=True) if key is None]
    if isinstance(node, (ast.For, ast.comprehension)):
        return [node.iter]
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
        spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
        return [*spread, *node.args] if name in _READERS else spread
    return []
