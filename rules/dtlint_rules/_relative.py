"""Relative differences, `(a - b).abs() / (a.abs() + b.abs())`: where both values are 0 the quotient is 0/0."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import UNKNOWN
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import source_of
from dtlint_rules._edges import Edge, behind, is_compared, is_mended, is_tested, keeps
from dtlint_rules._functions import own_nodes
from dtlint_rules._imports import imports
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver, same
from dtlint_rules._tensors import is_tensor, is_used_as_tensor
from dtlint_rules._texts import short
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["relative_difference"]

_ABSOLUTE = frozenset({"abs", "absolute"})
_OF_TORCH = frozenset({"torch", "th"})
_SAME_VALUES = frozenset(
    {"view", "reshape", "view_as", "reshape_as", "flatten", "squeeze", "unsqueeze", "detach", "float"}
)
_MOST_FACTORS = 4


def relative_difference(node: ast.BinOp, flow: Flow) -> Edge | None:
    """The quotient of what lies between two values and what they add up to, in which nothing keeps the sum from 0."""
    total = _unscaled(node.right, flow)
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add):
        return None
    difference = _unscaled(node.left, flow)
    apart = _between(difference, flow)
    first, second = _absolute(total.left, flow), _absolute(total.right, flow)
    if apart is None or first is None or second is None:
        return None  # `(a - b) ** 2 / (a + b)` may be of what is never 0, as probabilities are
    if "loss" in ast.unparse(apart).lower() or not _is_result(node, flow):
        return None
    if not _are_of(first, second, apart) or not _are_tensors(node, apart, flow):
        return None
    if any(map(keeps, behind(node.right, flow))) or is_tested(node.right, flow) or is_mended(flow.scope):
        return None
    if is_compared(node.right, flow):
        return None
    return Edge(
        f"This is 0/0, NaN, where `{short(apart.left)}` and `{short(apart.right)}` are both 0",
        "Add a small number to the divisor, 1e-6 in float32 and 1e-3 in float16, or clamp it",
    )


def _unscaled(node: ast.expr, flow: Flow) -> ast.expr:
    """What is left without the numbers that it is multiplied with, or divided by: `a + b`, of `(a + b) / 2`."""
    node = source_of(node, flow) or node
    for _ in range(_MOST_FACTORS):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Div)):
            break
        if isinstance(node.right, ast.Constant):
            node = node.left
        elif isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
            node = node.right
        else:
            break
        node = source_of(node, flow) or node
    return node


def _between(node: ast.expr, flow: Flow) -> ast.BinOp | None:
    """`a - b`, of itself and of `(a - b).abs()`."""
    inner = _absolute(node, flow) or node
    inner = source_of(inner, flow) or inner
    if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
        return None if any(isinstance(side, ast.Constant) for side in (inner.left, inner.right)) else inner
    return None


_ADDING = frozenset({"sum", "mean", "nansum", "append"})


def _is_result(node: ast.expr, flow: Flow) -> bool:
    """Is the quotient returned, summed or averaged, at once or by the name it is given, and compared nowhere? A test for
    convergence asks whether it is small, which NaN is not."""
    statement, name = flow.statement, None
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        name = statement.targets[0].id
    known = parents_in(flow.scope)
    reads = [part for part in own_nodes(flow.scope) if isinstance(part, ast.Name) and part.id == name]
    used = False
    for part in (node, *(read for read in reads if isinstance(read.ctx, ast.Load) and read.lineno > node.lineno)):
        inner: ast.AST | None = part
        while inner is not None and not isinstance(inner, ast.stmt):
            if isinstance(inner, ast.Compare):
                return False
            used |= isinstance(inner, ast.Call) and last_name(inner) in _ADDING
            inner = known.get(inner)
        used |= isinstance(inner, ast.Return)
    return used


def _absolute(node: ast.expr, flow: Flow) -> ast.expr | None:
    """`x`, of `x.abs()`, `torch.abs(x)` and `abs(x)`; None of anything else."""
    made = source_of(node, flow) or node
    if not isinstance(made, ast.Call) or last_name(made) not in _ABSOLUTE:
        return None
    held = receiver(made)
    if held is None or path_of(held) in _OF_TORCH:
        return made.args[0] if len(made.args) == 1 else None
    return None if made.args or path_of(held) in ("np", "numpy", "math") else held


def _are_of(first: ast.expr, second: ast.expr, apart: ast.BinOp) -> bool:
    """Are the two that are added up those that are subtracted, in any order?"""
    left, right, one, other = map(_plain, (apart.left, apart.right, first, second))
    return (same(left, one) and same(right, other)) or (same(left, other) and same(right, one))


def _plain(node: ast.expr) -> ast.expr:
    """`y`, of `y.view_as(x)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_VALUES:
        node = node.func.value
    return node


def _are_tensors(node: ast.BinOp, apart: ast.BinOp, flow: Flow) -> bool:
    parts = (node.left, node.right, apart.left, apart.right)
    if is_used_as_tensor(node, flow) or any(is_tensor(part, UNKNOWN, flow) for part in parts):
        return True
    by_method = any(
        isinstance(part, ast.Call) and last_name(part) in _ABSOLUTE and receiver(part) for part in nodes([node])
    )
    return by_method and "pandas" not in imports(flow.tree)  # whose series have the method, too
