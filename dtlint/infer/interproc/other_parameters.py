"""Parameters that are no floating tensors by what a function does with them, though nothing declares them so: sizes and other
numbers, dtypes and devices, indices, lengths and counts."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["no_floating_tensors"]

_FACTORIES = frozenset({"arange", "linspace", "logspace", "range", "zeros", "ones", "empty", "rand", "randn", "eye"})
"""Functions whose arguments are numbers."""
_INTEGERS = frozenset({"int", "long", "short", "int8", "int16", "int32", "int64"})
_KEEPING = frozenset({"sum", "cumsum", "max", "min", "amax", "amin", "item", "cpu", "detach"})
"""What gives whole numbers of whole ones."""
_OPTIONS = frozenset({"dtype", "device"})


@lru_cache(maxsize=4096)
def no_floating_tensors(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The parameters of a function that are whole numbers, tensors of them, dtypes or devices by their use; and where some
    number is given to it, those that stand in arithmetic alone and have no annotation: these are numbers as well."""
    if isinstance(function, ast.Lambda):
        return frozenset()
    given = function.args
    named = (*given.posonlyargs, *given.args, *given.kwonlyargs)
    names = frozenset(one.arg for one in named)
    inside = list(nodes(function.body))
    numbers = names.intersection(name for node in inside for name in _numbers(node))
    whole = names.intersection(name for node in inside for name in _whole(node))
    passed_on = names.intersection(_always(inside, _options))
    alike = names.intersection(_always(inside, _arithmetic)) if numbers else frozenset()
    bare = {one.arg for one in named if one.annotation is None}
    return numbers | whole | passed_on | (alike & bare)


def _numbers(node: ast.AST) -> Iterator[str]:
    """The variables that a node takes for numbers: sizes, bounds of a range."""
    if not isinstance(node, ast.Call) or _last(node.func) not in _FACTORIES:
        return
    for one in (*node.args, *(word.value for word in node.keywords if word.arg not in _OPTIONS)):
        yield from _within_arithmetic(one)


def _whole(node: ast.AST) -> Iterator[str]:
    """The variables that a node takes for whole numbers, or tensors of them: as an index, by a cast."""
    if isinstance(node, ast.Subscript):
        for one in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(one, ast.Slice):
                yield from _bounds(one)
            elif isinstance(one, ast.Name):
                yield one.id
    elif isinstance(node, ast.Call):
        func, last = node.func, _last(node.func)
        if isinstance(func, ast.Name):
            yield from _kept(node.args[0]) if last == "int" and len(node.args) == 1 else ()
        elif isinstance(func, ast.Attribute) and (
            (last in ("int", "long") and not node.args)
            or (last in ("to", "type") and any(_last(one) in _INTEGERS for one in _given(node)))
        ):
            yield from _kept(func.value)


def _bounds(node: ast.Slice) -> Iterator[str]:
    """The variables that bound a slice: `x[:n]`, `x[: lengths[i]]`."""
    for one in (node.lower, node.upper, node.step):
        while isinstance(one, ast.Subscript):
            one = one.value
        if isinstance(one, ast.Name):
            yield one.id


def _kept(node: ast.expr) -> Iterator[str]:
    """The variable whose elements, or the sum or the largest of them, an expression is."""
    while not isinstance(node, ast.Name):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _KEEPING:
            return
        of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        if of_torch and not node.args:
            return
        node = node.args[0] if of_torch else node.func.value
    yield node.id


def _options(node: ast.AST) -> Iterator[ast.expr]:
    """What a node passes on as a dtype or a device."""
    if isinstance(node, ast.Call):
        yield from (word.value for word in node.keywords if word.arg in _OPTIONS)
        if (_last(node.func) == "to" and isinstance(node.func, ast.Attribute)) or _last(node.func) == "device":
            yield from node.args


def _arithmetic(node: ast.AST) -> Iterator[ast.expr]:
    """What a node reckons with."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand


def _always(inside: Iterable[ast.AST], used: Callable[[ast.AST], Iterator[ast.expr]]) -> Iterator[str]:
    """The variables that are used so wherever they are read, and read at all."""
    places = {id(one) for node in inside for one in used(node)}
    read = [one for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)]
    otherwise = {one.id for one in read if id(one) not in places}
    yield from {one.id for one in read} - otherwise


def _within_arithmetic(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.UnaryOp):
        yield from _within_arithmetic(node.operand)
    elif isinstance(node, ast.BinOp):
        yield from _within_arithmetic(node.left)
        yield from _within_arithmetic(node.right)


def _given(node: ast.Call) -> Iterator[ast.expr]:
    yield from node.args
    yield from (word.value for word in node.keywords if word.arg == "dtype")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
