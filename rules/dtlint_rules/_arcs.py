"""Angles of cosines that are computed: rounding takes a dot product of unit vectors beyond 1, where the arc cosine, and
the root of one less its square, are NaN."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._assignments import source_of
from dtlint_rules._calls import calls_of
from dtlint_rules._edges import Edge, is_kept, is_mended, is_one
from dtlint_rules._functions import parameters
from dtlint_rules._parts import below, receiver
from dtlint_rules._squares import squared
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["ARCS", "arc", "sine"]

ARCS = frozenset({"acos", "arccos", "acos_", "arccos_"})

_PRODUCTS = frozenset({"dot", "vdot", "bmm", "matmul", "mm", "mv", "inner"})
"""Products of vectors and matrices, functions and methods."""
_FUNCTIONS = _PRODUCTS | {"einsum", "linear", "cosine_similarity"}
_OF_TORCH = frozenset({"torch", "th", "F", "torch.nn.functional", "nn.functional"})
_SHAPING = ("unsqueeze", "squeeze", "view", "reshape", "flatten", "transpose", "permute", "contiguous", "t")
_KEEPING = (*_SHAPING, "float", "double", "to", "type", "type_as", "detach", "clone")
"""Methods that give the same numbers."""


def arc(node: ast.expr, name: str, flow: Flow) -> Edge | None:
    """`torch.acos(a @ b)`."""
    if not _is_cosine(node, flow) or is_kept(node, flow) or is_mended(flow.scope):
        return None
    return Edge(
        f"Rounding takes the cosine `{short(node)}` beyond 1, where `{name}` is NaN",
        "Clamp it: `x.clamp(-1 + 1e-6, 1 - 1e-6)`",
    )


def sine(node: ast.expr, flow: Flow) -> Edge | None:
    """`torch.sqrt(1 - cos ** 2)`."""
    made = source_of(node, flow) or node
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, ast.Sub) or not is_one(made.left):
        return None
    cosine = squared(source_of(made.right, flow) or made.right)
    if cosine is None or not (_is_cosine(cosine, flow) or _is_called_cosine(cosine, flow)):
        return None
    if is_kept(node, flow, above=True) or is_mended(flow.scope, above=cosine):
        return None
    return Edge(
        f"Rounding takes the cosine `{short(cosine)}` beyond 1, where this root is NaN",
        f"Clamp it: `({short(made)}).clamp(min=1e-6).sqrt()`",
        made if made is not node else None,
        by_name=not _is_cosine(cosine, flow),
    )


def _is_cosine(node: ast.expr, flow: Flow) -> bool:
    """Is it a product of vectors that stands in view, perhaps divided by their norms?"""
    made = below(source_of(node, flow) or node, _KEEPING)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Div):
        made = made.left
        made = below(source_of(made, flow) or made, _KEEPING)
    return _is_product(made)


_COSINES = frozenset({"cosine", "cos_theta", "cos_sim", "cosine_similarity"})
"""Names of cosines of vectors. Schedules of diffusion have a `cos_t` of their own, of an angle that is known."""


def _is_called_cosine(node: ast.expr, flow: Flow) -> bool:
    """Is it given to the running function, and called a cosine there? Who gives it has computed it."""
    if not isinstance(node, ast.Name) or node.id not in _COSINES or calls_of("cos", flow.tree):
        return False  # a file that takes the cosine of angles gives none beyond 1
    made = below(source_of(node, flow) or node, _KEEPING)
    return isinstance(made, ast.Name) and any(each.arg == made.id for each in parameters(flow.scope))


def _is_product(node: ast.expr) -> bool:
    """`a @ b`, `torch.bmm(a, b)`, `F.linear(x, w)`, `a.dot(b)` and `(a * b).sum(-1)`."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    name, of_torch = node.func.attr, path_of(node.func.value) in _OF_TORCH
    if name == "sum":
        summed = node.args[0] if of_torch and node.args else receiver(node)
        return isinstance(summed, ast.BinOp) and isinstance(summed.op, ast.Mult)
    # `geometry.dot(a, b)` is a function that nobody knows
    return name in _FUNCTIONS if of_torch else name in _PRODUCTS and len(node.args) == 1 and not node.keywords
