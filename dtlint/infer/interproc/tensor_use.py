"""Parameters without an annotation that are tensors by what a function does with them: methods that nothing but a tensor has are
called on them, whatever happens.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes, parts
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["used_as_tensors"]

_METHODS = frozenset(
    {"unsqueeze", "unsqueeze_", "masked_fill", "masked_fill_", "contiguous", "permute", "index_select", "expand_as"}
    | {"view_as", "type_as", "is_floating_point", "new_zeros", "new_ones", "new_tensor", "new_empty", "new_full"}
    | {"repeat_interleave", "triu", "tril", "bmm", "addmm", "baddbmm", "scatter_", "scatter_add_", "index_add_"}
    | {"index_copy_", "dim", "numel", "element_size", "data_ptr", "is_contiguous"}
)
"""Methods of torch.Tensor that arrays, modules, containers and groups of processes have not."""
_ASKING = frozenset({"isinstance", "hasattr", "type", "is_tensor", "callable"})
"""Functions by which a program tells kinds of values apart."""


@lru_cache(maxsize=4096)
def used_as_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The parameters of a function on which it certainly calls such a method, and whose kind it does not ask for."""
    if isinstance(function, ast.Lambda):
        return frozenset()
    names = {one.arg for one in named_parameters(function)}
    statements = list(_certain(function.body))
    calls = [names.intersection(_called_on(statement)) for statement in statements]
    if not any(calls):
        return frozenset()
    used: set[str] = set()
    bound: set[str] = set()
    for statement, called in zip(statements, calls, strict=True):
        used |= called - bound
        bound |= {node.id for node in nodes([statement]) if isinstance(node, ast.Name) and _binds(node)}
    return frozenset(used.difference(*map(_asked_for, nodes([function]))))


def _certain(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run whenever the function does, as far as none before them leaves it."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield from _certain(statement.body)


def _called_on(statement: ast.stmt) -> Iterator[str]:
    """The variables on which a statement certainly calls such a method: in no branch, loop or function of its own."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _METHODS and isinstance(called.value, ast.Name):
            yield called.value.id
        if isinstance(node, _SIMPLE) or (isinstance(node, ast.expr) and not isinstance(node, _BRANCHING)):
            waiting += parts(node)


_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.keyword)
_BRANCHING = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _binds(name: ast.Name) -> bool:
    return isinstance(name.ctx, (ast.Store, ast.Del))


def _asked_for(node: ast.AST) -> Iterator[str]:
    """The variables whose kind a node asks for, or that it looks into as a mapping."""
    if isinstance(node, ast.Call):
        last = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if last in _ASKING:
            yield from (one.id for one in node.args if isinstance(one, ast.Name))
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        yield from (one.id for one in (node.left, *node.comparators) if isinstance(one, ast.Name))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        yield from (one.id for one in (node.value,) if isinstance(one, ast.Name))
