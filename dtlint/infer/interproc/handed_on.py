"""Functions that a file hands on as values: callbacks, entries of tables, what `partial` is made of. Who calls these is not known,
nor what they are given."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes, parts
from dtlint.source.definitions import functions, nested_classes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.source.definitions import FunctionNode

__all__ = ["handed_on"]

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@lru_cache(maxsize=64)
def handed_on(tree: ast.Module) -> frozenset[FunctionNode]:
    """The functions and methods of a module that it reads otherwise than to call them; and the `__call__` of the classes that it
    makes objects of, for these are handed on."""
    every_node = list(nodes([tree]))
    called = {id(node.func) for node in every_node if isinstance(node, ast.Call)}
    attributes = {
        node.attr
        for node in every_node
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and id(node) not in called
    }
    free = list(_free(tree, frozenset()))
    names = {node.id for node in free if id(node) not in called}
    every = {node.id for node in free}
    found = {one for one in functions(tree.body) if one.name in names}
    for cls in nested_classes(tree.body):
        for one in functions(cls.body):
            if one.name in attributes or (one.name == "__call__" and cls.name in every):
                found.add(one)
    return frozenset(found)


def _free(node: ast.AST, bound: frozenset[str]) -> Iterator[ast.Name]:
    """The names that are read in a node and stand for what the module binds to them."""
    if isinstance(node, _SCOPES):
        bound |= _bound_in(node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in bound:
        yield node
    for part in parts(node):
        yield from _free(part, bound)


def _bound_in(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The names that a function binds: its parameters, and what it assigns."""
    within = list(nodes([function]))
    stored = {one.id for one in within if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return frozenset(stored.union(one.arg for one in within if isinstance(one, ast.arg)))
