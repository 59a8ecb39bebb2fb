"""Private names: in a class, Python writes `__x` as `_Class__x`, so that a subclass's `__x` is another.

Source: Python's language reference, chapter 6.2.1, "Private name mangling".
"""

from __future__ import annotations

import ast
import re

__all__ = ["mangled"]

_PRIVATE = r"\b__(?!\w*__\b)\w"
_IN_TEXT, _IN_BYTES = re.compile(_PRIVATE), re.compile(_PRIVATE.encode())


def mangled(tree: ast.Module, source: str | bytes) -> ast.Module:
    """The tree of a source, with its private names as Python has them."""
    if _IN_TEXT.search(source) if isinstance(source, str) else _IN_BYTES.search(source):
        for part in tree.body:
            _mangle(part, "")
    return tree


def _mangle(tree: ast.AST, owner: str) -> None:
    """Write the private names below a node out for the innermost class around it."""
    waiting = [(tree, owner)]
    while waiting:
        node, inside = waiting.pop()
        if isinstance(node, ast.ClassDef):  # what stands before its body is of the class around
            waiting += [(child, node.name.lstrip("_")) for child in node.body]
            waiting += [(child, inside) for child in (*node.bases, *node.keywords, *node.decorator_list)]
        else:
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
        if inside:
            _rename(node, inside)


def _rename(node: ast.AST, owner: str) -> None:
    for field in _FIELDS.get(type(node), ()):
        name = getattr(node, field)
        if isinstance(name, list):
            setattr(node, field, [_private(each, owner) for each in name])
        elif isinstance(name, str):
            setattr(node, field, _private(name, owner))


def _private(name: str, owner: str) -> str:
    return f"_{owner}{name}" if name.startswith("__") and not name.endswith("__") and "." not in name else name


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Name: ("id",),
    ast.Attribute: ("attr",),
    ast.FunctionDef: ("name",),
    ast.AsyncFunctionDef: ("name",),
    ast.ClassDef: ("name",),
    ast.arg: ("arg",),
    ast.keyword: ("arg",),
    ast.alias: ("name", "asname"),
    ast.Global: ("names",),
    ast.Nonlocal: ("names",),
    ast.ExceptHandler: ("name",),
    ast.MatchAs: ("name",),
    ast.MatchStar: ("name",),
    ast.MatchMapping: ("rest",),
    ast.MatchClass: ("kwd_attrs",),
}
