"""A pair of logarithms, `torch.log(p + eps) + torch.log(1 - p)`, of which one is kept from 0 and its counterpart is
not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint_rules._edges import Edge, is_called_epsilon, is_kept, is_mended, is_one
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver, same
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from dtlint.infer.events import Call

__all__ = ["one_sided"]

_NEAR = 3
"""Lines that a formula takes."""


def one_sided(node: ast.expr, call: Call) -> Edge | None:
    """The logarithm of `node`, where that of its counterpart, `1 - p` of `p` and `p` of `1 - p`, has an epsilon."""
    flow = call.flow
    rest = _rest_of_one(node)
    plain = node if rest is None else rest
    if path_of(plain) is None:
        return None
    for other in facts(flow.scope).calls:
        if last_name(other) != "log" or other is call.node or abs(other.lineno - call.node.lineno) > _NEAR:
            continue
        given = other.args[0] if other.args else receiver(other)
        if not isinstance(given, ast.BinOp) or not isinstance(given.op, ast.Add) or not _is_small(given.right):
            continue
        counterpart = given.left if rest is not None else _rest_of_one(given.left)
        if counterpart is None or not same(counterpart, plain):
            continue
        if is_kept(plain, flow) or is_mended(flow.scope):
            return None
        return Edge(
            f"The logarithm is -inf where `{short(node)}` is 0: only its counterpart has an epsilon",
            f"Add the epsilon here too: `{short(node)} + {ast.unparse(given.right)}`",
            other,
        )
    return None


def _rest_of_one(node: ast.expr) -> ast.expr | None:
    """`p`, of `1 - p`."""
    return node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and is_one(node.left) else None


def _is_small(node: ast.expr) -> bool:
    """Is it a number that nobody adds but as an epsilon, or called one?"""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0 < node.value < 1e-2
    return is_called_epsilon(node)
