"""How many dimensions a tensor has, where the expression that makes it shows them; unknown is silent."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint_rules._assignments import assignments
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["rank_of"]

_OF_SIZES = frozenset({"randn", "rand", "zeros", "ones", "empty"})
_SIZE_AT = {"full": 0, "randint": 2, "normal": 2}
"""Factories that are told the sizes in one tuple, with its position."""
_SAME = frozenset(
    {
        *("float", "half", "double", "bfloat16", "long", "int", "to", "cuda", "cpu", "type", "clone", "detach"),
        *("requires_grad_", "contiguous", "exp", "log", "sigmoid", "softmax", "log_softmax", "abs", "relu", "tanh"),
    }
)
"""Methods that keep the dimensions."""


def rank_of(node: ast.expr, flow: Flow) -> int | None:
    """The number of dimensions of a tensor; None where it is not certain."""
    if isinstance(node, ast.Name):
        bound = assignments(flow.scope).get(node.id, ())
        value = bound[0][1] if len(bound) == 1 else None
        if value is None or value.end_lineno is None or value.end_lineno >= node.lineno:
            return None  # `x = x.float()` says nothing of what `x` was before
        return rank_of(value, flow)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name = node.func.attr
    if isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
        return _made(name, node)
    return rank_of(node.func.value, flow) if name in _SAME else None


def _made(name: str, node: ast.Call) -> int | None:
    args = node.args
    if not args or any(isinstance(argument, ast.Starred) for argument in args):
        return None
    if name == "tensor":
        return _depth(args[0])
    if name in _SIZE_AT:
        return _length(args[_SIZE_AT[name]]) if len(args) > _SIZE_AT[name] else None
    if name in _OF_SIZES:
        if len(args) > 1:
            return len(args)
        return 1 if isinstance(args[0], ast.Constant) else _length(args[0])
    return 1 if last_name(node) in ("arange", "randperm") else None


def _length(sizes: ast.expr) -> int | None:
    if not isinstance(sizes, (ast.Tuple, ast.List)) or any(isinstance(size, ast.Starred) for size in sizes.elts):
        return None
    return len(sizes.elts)


def _depth(values: ast.expr) -> int | None:
    """How deep lists of numbers lie in one another: an item that is no number may be a tensor."""
    depth = 0
    while isinstance(values, (ast.List, ast.Tuple)):
        if not values.elts or isinstance(values.elts[0], ast.Starred):
            return None
        depth, values = depth + 1, values.elts[0]
    if isinstance(values, ast.UnaryOp):
        values = values.operand
    return depth if isinstance(values, ast.Constant) else None
