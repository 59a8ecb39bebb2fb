"""How many dimensions a function's parameters have at least, by its syntax alone: `x.shape[2]` is the size of a third one.

A function that asks a parameter for the number of its dimensions may be given any.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.interproc.parameter_uses import unbound
from dtlint.infer.walk import nodes
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.interproc.functions import FunctionNode

__all__ = ["least_dimensions"]

_OF_DIMENSIONS = frozenset({"transpose", "swapaxes", "swapdims", "movedim", "moveaxis"})
"""Methods whose arguments are dimensions."""
_ALONG_ONE = frozenset(
    {"sum", "mean", "prod", "std", "var", "amax", "amin", "softmax", "log_softmax", "cumsum", "argmax"}
)
"""Ops that go along the dimension that is given next to the tensor."""
_ASKING = frozenset({"dim", "ndimension", "ndim"})


@lru_cache(maxsize=4096)
def least_dimensions(function: FunctionNode) -> Mapping[str, int]:
    """The dimensions that parameters have at least, of those that are used so before anything else is bound to their names."""
    if isinstance(function, ast.Lambda):
        return {}
    names = {one.arg for one in named_parameters(function)}
    inside = list(nodes(function.body))
    known = unbound(inside, names)
    found: dict[str, int] = {}
    asked: set[str] = set()
    for node in inside:
        asked.update(_asked(node))
        for name, count in _shown(node):
            if id(name) in known and name.id in names:
                found[name.id] = max(found.get(name.id, 0), count)
    return {name: count for name, count in found.items() if name not in asked and count}


def _asked(node: ast.AST) -> Iterator[str]:
    """The variables that a node asks for the number of their dimensions."""
    if isinstance(node, ast.Attribute) and node.attr in _ASKING and isinstance(node.value, ast.Name):
        yield node.value.id
    elif isinstance(node, ast.Call) and getattr(node.func, "id", None) == "len" and len(node.args) == 1:
        sized = _sized(node.args[0])
        if sized is not None:
            yield sized.id


def _shown(node: ast.AST) -> Iterator[tuple[ast.Name, int]]:
    """The variables whose dimensions a node names, and how many there are at least."""
    if isinstance(node, ast.Subscript):
        sized = _sized(node.value)
        if sized is not None:
            yield sized, _count(node.slice)
        elif isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Tuple):
            places = (getattr(one, "value", one) for one in node.slice.elts)
            yield node.value, sum(one is not None and one is not Ellipsis for one in places)
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
        sized = _sized(node.value)
        if sized is not None:
            yield sized, sum(not isinstance(one, ast.Starred) for one in node.targets[0].elts)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        receiver, name = node.func.value, node.func.attr
        if name == "size" and node.args:
            yield receiver, _count(node.args[0])
        elif name in _OF_DIMENSIONS:
            yield receiver, max(map(_count, node.args), default=0)
        elif name == "permute":
            yield receiver, len(node.args) if len(node.args) > 1 and not _has_starred(node) else 0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from _along(node, node.func)


def _along(call: ast.Call, func: ast.Attribute) -> Iterator[tuple[ast.Name, int]]:
    """The variables that an op goes along a dimension of: `torch.sum(x, dim=[1, 2])`, `x.softmax(-1)`."""
    along = [word.value for word in call.keywords if word.arg in ("dim", "axis")]
    for place, one in enumerate((func.value, *call.args[:1])):
        dims = along or (call.args[place : place + 1] if func.attr in _ALONG_ONE else [])
        if isinstance(one, ast.Name) and dims:
            yield one, max(map(_count, getattr(dims[0], "elts", dims)), default=0)


def _sized(node: ast.expr) -> ast.Name | None:
    """The variable of `x.shape` and `x.size()`."""
    if (
        isinstance(node, ast.Call)
        and not node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "size"
    ):
        return node.func.value if isinstance(node.func.value, ast.Name) else None
    if isinstance(node, ast.Attribute) and node.attr == "shape" and isinstance(node.value, ast.Name):
        return node.value
    return None


def _count(node: ast.expr) -> int:
    """The dimensions that there are if this is one of them: three for 2 and for -3."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    number = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if not isinstance(number, ast.Constant) or type(number.value) is not int:
        return 0
    return number.value if negative else number.value + 1


def _has_starred(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args)
