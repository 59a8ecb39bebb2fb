"""Is a value kept from zero: is it divided by, or given to a logarithm or a root, at once or by its name?

A small number that is added to such a value is there for that.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._names import last_name
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["is_guarded"]

_NEEDS_MORE_THAN_ZERO = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log_", "sqrt_", "rsqrt_"})
"""Of 0 they are infinite, or have an infinite gradient."""
_DIVIDES = frozenset({"div", "div_", "true_divide", "divide"})


def is_guarded(node: ast.expr | ast.stmt, flow: Flow) -> bool:
    """Is what `node` computes divided by, or given to a logarithm or a root: at once, or by the name that it gets?"""
    around = parents_in(flow.scope)
    reached = _reached(node, around)
    if reached is None:
        return True
    if not isinstance(reached, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return False
    targets = reached.targets if isinstance(reached, ast.Assign) else [reached.target]
    return any(_is_used_guarded(target, reached, flow.scope, around) for target in targets)


def _reached(node: ast.AST, around: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """Where a value gets through sums, products and methods; None when that is a divisor, a logarithm or a root."""
    child = node
    while True:
        parent = around.get(child)
        if _needs_more_than_zero(parent, child, around):
            return None
        if isinstance(parent, ast.Attribute) and isinstance(around.get(parent), ast.Call):
            child = around[parent]
        elif isinstance(parent, (ast.Subscript, ast.UnaryOp)) or (
            isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.Add))
        ):
            child = parent
        else:
            return child if isinstance(child, ast.stmt) else parent


def _is_below_one(power: ast.expr) -> bool:
    """Is it the exponent of a root, or of a divisor?"""
    negative = isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub)
    return negative or (isinstance(power, ast.Constant) and power.value == 0.5)


def _is_power_below_one(call: ast.AST | None) -> bool:
    """`x.pow(-0.5)` and `torch.pow(x, 0.5)`."""
    return isinstance(call, ast.Call) and bool(call.args) and _is_below_one(call.args[-1])


def _needs_more_than_zero(parent: ast.AST | None, child: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    if isinstance(parent, ast.BinOp):
        if isinstance(parent.op, ast.Div):
            return parent.right is child
        return isinstance(parent.op, ast.Pow) and parent.left is child and _is_below_one(parent.right)
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, ast.Div) and parent.value is child
    if isinstance(parent, ast.Attribute):
        return parent.attr in _NEEDS_MORE_THAN_ZERO or (
            parent.attr == "pow" and _is_power_below_one(around.get(parent))
        )
    if isinstance(parent, ast.Call):
        name = last_name(parent)
        return child in parent.args and (
            name in _NEEDS_MORE_THAN_ZERO
            or (name in _DIVIDES and parent.args[-1] is child)
            or (name == "pow" and child is parent.args[0] and _is_power_below_one(parent))
        )
    return False


def _is_used_guarded(target: ast.expr, statement: ast.stmt, scope: ast.AST, around: dict[ast.AST, ast.AST]) -> bool:
    path = path_of(target)
    if path is None:
        return False
    for node in nodes([scope]):
        if getattr(node, "lineno", 0) <= statement.lineno or not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        if path_of(node) == path and isinstance(node.ctx, ast.Load) and _reached(node, around) is None:
            return True
    return False
