"""The names in code: the last of a path, and those that a test, a function or a module mentions.

Where code is not in view, its names are what shows who scales a loss, which tensor is a mask, what a test asks for.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes
from dtlint_rules._kept import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["last_name", "names", "names_in", "said", "words"]

_NAMES: dict[type[ast.AST], Callable[..., str]] = {
    ast.Name: lambda node: node.id,
    ast.Attribute: lambda node: node.attr,
    ast.arg: lambda node: node.arg,
    ast.keyword: lambda node: node.arg or "",
    ast.alias: lambda node: f"{node.name} {node.asname}",
    ast.ImportFrom: lambda node: node.module or "",
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), lambda node: node.name),
}
"""What has a name, and which."""


def last_name(node: ast.AST) -> str:
    """The last name of a path or of what is called: `amax` of `x.abs().amax(-1)`, "" where there is none."""
    if type(node) is ast.Call:
        node = node.func
    if type(node) is ast.Attribute:
        return node.attr
    return node.id if type(node) is ast.Name else ""


def names_in(node: ast.AST) -> Iterator[str]:
    """The variables and attributes that a piece of code mentions."""
    for part in nodes([node]):
        if isinstance(part, (ast.Name, ast.Attribute)):
            yield last_name(part)


def said(node: ast.AST) -> Iterator[str]:
    """Every name and every string in a piece of code: of variables, attributes, arguments, and what it imports."""
    for part in nodes([node]):
        named = _NAMES.get(type(part))
        if named is not None:
            yield named(part)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


@kept
def names(tree: ast.Module) -> frozenset[str]:
    """Every name that stands in a module, whatever it names; strings are not among them."""
    return frozenset(named(node) for node in nodes([tree]) if (named := _NAMES.get(type(node))) is not None)


@kept
def words(tree: ast.Module) -> str:
    """The names of a module in lower case, in one string to look for parts of names in."""
    return " ".join(names(tree)).lower()
