"""What is compared with a dtype, and is none itself: a tensor, or what the function has used before as no dtype can be."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint.infer.walk import SCOPES, parts
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._statements import around, block_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow
    from dtlint.infer.values import Value

__all__ = ["why_no_dtype"]

_OF_DTYPES = frozenset(
    {
        *("abbr", "is_complex", "is_floating_point", "is_signed", "itemsize", "to_complex", "to_real"),
        *("alignment", "base", "byteorder", "char", "kind", "name", "newbyteorder", "num", "str", "type"),
        *("value", "names", "fields", "metadata"),
    }
)
"""Attributes of the dtypes of torch and NumPy, and of enumerations of dtypes."""
_PLAIN = frozenset({"int", "str", "dict", "list", "Tensor", "torch.Tensor"})
"""Annotations of what is equal to no dtype."""
_TYPES = ("type", "dt", "precision")
"""In the names of classes of dtypes and their like, which may well equal those of torch."""


def why_no_dtype(node: ast.expr, value: Value, flow: Flow) -> str | None:
    """What shows that a name is no dtype of torch; None where nothing does."""
    if not isinstance(node, ast.Name):
        return None
    if isinstance(value, Tensor):
        return "is a tensor"
    if any(part in node.id.lower() for part in _TYPES) or not _is_as_given(node.id, flow.scope):
        return None
    for expression in _run_before(flow):
        for part, parent in _surely(expression, None):
            if isinstance(part, ast.Name) and part.id == node.id and (used := _use(part, parent)) is not None:
                return used
    return None


def _use(name: ast.Name, parent: ast.AST | None) -> str | None:
    """How something is used here as no dtype can be."""
    if isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load):
        known = parent.attr in _OF_DTYPES or parent.attr.startswith("__") or "type" in parent.attr
        return None if known else f"has `{parent.attr}`"
    return "is subscripted" if isinstance(parent, ast.Subscript) and parent.value is name else None


def _is_as_given(name: str, scope: ast.AST) -> bool:
    """Is it a parameter that is bound nowhere in the function, and of no class of its own, which may say what it equals?"""
    parameter = next((each for each in parameters(scope) if each.arg == name), None)
    if parameter is None or (parameter.annotation is not None and path_of(parameter.annotation) not in _PLAIN):
        return False
    return not any(_binds(node, name) for node in own_nodes(scope))


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) in (name, "*")
    if isinstance(
        node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    ):
        return node.name == name or (
            isinstance(node, SCOPES) and any(name in each.names for each in _reaching_out(node))
        )
    return isinstance(node, ast.MatchMapping) and node.rest == name


def _reaching_out(function: ast.AST) -> Iterator[ast.Nonlocal]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Nonlocal))


def _run_before(flow: Flow) -> Iterator[ast.AST]:
    """The expressions that have been computed wherever the running statement is reached."""
    inner: ast.AST | None = flow.statement
    if inner is None:
        return
    for outer in around(inner, flow.scope):
        for statement in block_of(inner, outer) if isinstance(inner, ast.stmt) else ():
            if statement is inner:
                break
            yield from _heads(statement)
        if outer is not flow.scope and isinstance(outer, (ast.If, ast.While)):
            yield outer.test
        inner = outer


def _heads(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement computes in any case."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)):
        if statement.value is not None:
            yield statement.value
    elif isinstance(statement, (ast.If, ast.While, ast.Assert)):
        yield statement.test
    elif isinstance(statement, (ast.For, ast.AsyncFor)):
        yield statement.iter


def _surely(node: ast.AST, parent: ast.AST | None) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Each node that is computed in any case, with what it is a part of: not what stands behind `and` or in a branch, nor
    what a comprehension computes for each item, whose names are its own."""
    yield node, parent
    if isinstance(node, (*SCOPES, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    if isinstance(node, ast.IfExp):
        yield from _surely(node.test, node)
    elif isinstance(node, ast.BoolOp):
        yield from _surely(node.values[0], node)
    else:
        for part in parts(node):
            yield from _surely(part, node)
