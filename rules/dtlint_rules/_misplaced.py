"""An epsilon on the wrong side of a division: `x / v.sqrt() + eps` adds it to the quotient, and what is divided by may
be 0 still."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import UNKNOWN
from dtlint.infer.walk import nodes
from dtlint_rules._edges import Edge, keeps
from dtlint_rules._functions import parameters
from dtlint_rules._guards import is_guarded
from dtlint_rules._names import last_name
from dtlint_rules._numbers import number_at
from dtlint_rules._tensors import is_tensor
from dtlint_rules._texts import short
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["RECIPROCALS", "beside_quotient", "beside_reciprocal"]

RECIPROCALS = frozenset({"rsqrt", "rsqrt_"})

_CALLED_SO = re.compile(r"^(?:\w+_)?(?:eps|epsilon)\d?$")
_LARGEST = 1e-4
"""A greater number may be meant to be added to the quotient."""
_SPREADS = frozenset({"sqrt", "sqrt_", "std", "norm", "vector_norm"})
"""What is 0 where all values are, or are equal."""
_ADDING = frozenset({"add", "add_"})


def beside_quotient(quotient: ast.BinOp, divisor: ast.expr, flow: Flow) -> tuple[ast.expr, Edge] | None:
    """`x / v.sqrt() + eps`, where `divisor` is what the name below the line was assigned."""
    if not _is_spread(divisor) or not is_tensor(divisor, UNKNOWN, flow):
        return None
    if any(_is_spread(part) for part in nodes([quotient.left])):
        return None  # `v.sqrt() / correction + eps` is what something is to be divided by
    return _beside(quotient, divisor, flow, short(quotient))


def beside_reciprocal(root: ast.Call, variance: ast.expr, flow: Flow) -> tuple[ast.expr, Edge] | None:
    """`v.rsqrt() + eps` and `v.rsqrt().add_(eps)`."""
    return _beside(root, variance, flow, short(root))


def _beside(node: ast.expr, divisor: ast.expr, flow: Flow, shown: str) -> tuple[ast.expr, Edge] | None:
    added = _added(node, flow)
    if added is None:
        return None
    whole, epsilon = added
    if not _is_epsilon(epsilon, flow) or any(map(keeps, nodes([divisor]))):
        return None
    around = parents_at(whole, flow)
    if is_guarded(whole, flow) or isinstance(around.get(whole), ast.Compare):
        return None  # it keeps the quotient from 0, or is a tolerance
    happens = f"The epsilon is added to `{shown}`, not to the divisor, which may be 0"
    return whole, Edge(happens, f"Write `x / (divisor + {ast.unparse(epsilon)})`")


def _added(node: ast.expr, flow: Flow) -> tuple[ast.expr, ast.expr] | None:
    """The sum that a quotient is a part of at once, and what is added to it."""
    around = parents_at(node, flow)
    parent = around.get(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add):
        return parent, parent.right if parent.left is node else parent.left
    call = around.get(parent) if isinstance(parent, ast.Attribute) and parent.attr in _ADDING else None
    if isinstance(call, ast.Call) and call.func is parent and len(call.args) == 1 and not call.keywords:
        return call, call.args[0]
    return None


def _is_epsilon(node: ast.expr, flow: Flow) -> bool:
    """Is it a small number, by its value or its name? What is called `eps` alone may be noise: that has to be a number."""
    number = number_at(node, flow)
    if number is not None and not 0 < number.value <= _LARGEST:
        return False
    if number is not None and number.literal:
        return True
    if isinstance(node, ast.Subscript):  # `group["eps"]`
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return isinstance(key, str) and _CALLED_SO.search(key) is not None
    if _CALLED_SO.search(last_name(node).lower()) is None:
        return False
    return isinstance(node, ast.Attribute) or number is not None or _is_float(node, flow)


def _is_float(node: ast.expr, flow: Flow) -> bool:
    """Is it a parameter that says so, `eps: float`?"""
    return any(
        each.arg == last_name(node) and each.annotation is not None and path_of(each.annotation) == "float"
        for each in parameters(flow.scope)
    )


def _is_spread(node: ast.AST) -> bool:
    """`v.sqrt()`, `v ** 0.5`, `x.std()`, `x.norm()`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 0.5
    return isinstance(node, ast.Call) and last_name(node) in _SPREADS
