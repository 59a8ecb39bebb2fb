"""Means and sums of squares: what overflows first in float16, where the square of 256 is inf."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._calls import calls_of
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name
from dtlint_rules._parts import given, receiver, same
from dtlint_rules._statements import statements
from dtlint_rules._subjects import flat

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["WIDE_INTEGERS", "is_widened", "mean_of_squares", "squared"]

_WIDE = frozenset({"float32", "float64", "float", "double", "FloatTensor", "DoubleTensor"})
WIDE_INTEGERS = frozenset({"int16", "int32", "int64", "short", "int", "long"})
"""Methods and dtypes that widen bytes, besides the floating ones."""


def mean_of_squares(node: ast.expr, flow: Flow) -> ast.expr | None:
    """`x` of `x.pow(2).mean(-1)` and `torch.mean(x * x, dim=1)`; None for anything else, and with a `dtype=`."""
    if not isinstance(node, ast.Call) or last_name(node) != "mean" or any(key.arg == "dtype" for key in node.keywords):
        return None
    of_torch = path_of(node.func) in ("torch.mean", "th.mean")
    of = node.args[0] if of_torch and node.args else receiver(node)
    if of is None or (not of_torch and path_of(node.func) in ("np.mean", "numpy.mean")):
        return None
    return squared(source_of(of, flow) or of)


def squared(node: ast.expr) -> ast.expr | None:
    """`x` of `x ** 2`, `x * x`, `x.pow(2)`, `x.square()`, `torch.pow(x, 2)`, `torch.square(x)`."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            return node.left if _is_two(node.right) else None
        return node.left if isinstance(node.op, ast.Mult) and same(node.left, node.right) else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    of_torch = path_of(node.func.value) in ("torch", "th")
    if path_of(node.func.value) in ("np", "numpy", "math"):
        return None
    given = node.args if of_torch else [node.func.value, *node.args]
    if node.func.attr == "square" and len(given) == 1:
        return given[0]
    return given[0] if node.func.attr == "pow" and len(given) == 2 and _is_two(given[1]) else None


def is_widened(node: ast.expr, flow: Flow, also: frozenset[str] = frozenset()) -> bool:
    """Has the expression been cast to float32: where it stands, in some assignment of a name in it, or by whoever calls
    the running function in this file? `also` are further dtypes that count."""
    wide = _WIDE | also
    queue: list[ast.expr] = [node]
    asked: set[str] = set()
    while queue:
        for part in nodes([queue.pop()]):
            if _widens(part, wide):
                return True
            if not isinstance(part, ast.Name) or part.id in asked:
                continue
            asked.add(part.id)
            queue += [source for _, source in assignments(flow.scope).get(part.id, ()) if source is not None]
    handed = any(parameter.arg in asked for parameter in parameters(flow.scope))
    return handed and flow.function is not None and _is_called_wide(flow.tree, flow.function.name)


def _widens(node: ast.AST, wide: frozenset[str] = _WIDE) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return last_name(node) in wide or any(
        (part.value if isinstance(part, ast.Constant) else (path_of(part) or "").rpartition(".")[2]) in wide
        for part in flat(given(node))  # `reduce(torch.promote_types, (x.dtype, torch.float32))`
    )


def _is_called_wide(tree: ast.Module, name: str) -> bool:
    """Does the file call a function of that name with `x.float()`, as LLaMA's norm calls its `_norm`, or with an attribute
    that it has cast so?"""
    given = [argument for call in calls_of(name, tree) for argument in call.args]
    if any(map(_widens, given)):
        return True
    kept = {path_of(argument) for argument in given if isinstance(argument, ast.Attribute)} - {None}
    return bool(kept) and any(
        isinstance(part, ast.Assign) and _widens(part.value) and not kept.isdisjoint(map(path_of, part.targets))
        for part in statements(tree)
    )


def _is_two(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 2
