"""Distances by hand, `((a - b) ** 2).sum(-1).sqrt()`: where two rows are equal, the infinite gradient of the root meets
the gradient 0 of the square, and the product is NaN."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import source_of
from dtlint_rules._edges import Edge, is_kept, is_mended
from dtlint_rules._functions import parameters
from dtlint_rules._gradients import OFF
from dtlint_rules._names import last_name, names_in
from dtlint_rules._parts import keyword, receiver
from dtlint_rules._squares import squared
from dtlint_rules._texts import short
from dtlint_rules._within import parents_in, within

if TYPE_CHECKING:
    from dtlint.infer.events import Call, Flow
    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["ROOTS", "distance", "is_measured", "is_trained"]

ROOTS = frozenset({"sqrt", "sqrt_"})

_TRAINED = re.compile(r"loss|criterion|penalty")
"""Functions whose results gradients flow through."""
_MEASURING = re.compile(
    r"metric|eval|test|val(?:_|idat|$)|score|extract|process|accuracy|predict|generate|sample|plot|optim|diagnos"
)
"""Code whose results nobody takes a gradient of."""

_CUTTING = frozenset(
    {"item", "detach", "numpy", "tolist", "bucketize", "argmin", "argmax", "topk", "sort", "searchsorted"}
)
"""Methods and functions that give numbers, orders and copies without a gradient."""


def distance(node: ast.expr, call: Call) -> Edge | None:
    """The root of a row-wise sum of squared differences, in code that gradients flow through."""
    flow = call.flow
    found = _difference(node, flow)
    if found is None or not is_trained(flow) or is_kept(node, flow) or is_mended(flow.scope) or is_measured(call):
        return None
    if _joins_neighbours(found, flow):
        return None
    return Edge(
        f"The gradient of `sqrt` is NaN where a row of `{short(found)}` is 0",
        "Add 1e-12 before the root in float32, or use `torch.linalg.vector_norm`",
        found if found.lineno != call.node.lineno else None,
    )


def _difference(node: ast.expr, flow: Flow) -> ast.BinOp | None:
    """`a - b`, whose squares are added up along an axis; each step may have a name."""
    summed = _summed_along(source_of(node, flow) or node)
    square = None if summed is None else squared(source_of(summed, flow) or summed)
    made = None if square is None else source_of(square, flow) or square
    if not isinstance(made, ast.BinOp) or not isinstance(made.op, ast.Sub):
        return None
    return None if any(isinstance(side, ast.Constant) for side in (made.left, made.right)) else made


_NEIGHBOURS = frozenset({"radius_graph", "knn_graph"})
"""What makes a graph of the points that lie near to each other, and, unless it is told to, joins none with itself."""


def _joins_neighbours(difference: ast.BinOp, flow: Flow) -> bool:
    """Is it `pos[i] - pos[j]`, along the edges of a graph of neighbours? Atoms do not lie in one place."""
    first, second = difference.left, difference.right
    if not isinstance(first, ast.Subscript) or not isinstance(second, ast.Subscript):
        return False
    if path_of(first.value) is None or path_of(first.value) != path_of(second.value):
        return False
    graphs = [call for call in facts(flow.scope).calls if last_name(call) in _NEIGHBOURS]
    return bool(graphs) and not any(_may_loop(graph) for graph in graphs)


def _may_loop(graph: ast.Call) -> bool:
    loop = keyword(graph, "loop")
    return loop is not None and not (isinstance(loop, ast.Constant) and loop.value is False)


def _summed_along(node: ast.expr) -> ast.expr | None:
    """`x`, of `x.sum(-1)` and `torch.sum(x, dim=1)`; None for the sum of all."""
    if not isinstance(node, ast.Call) or last_name(node) != "sum":
        return None
    of_torch = path_of(node.func) in ("torch.sum", "th.sum")
    if len(node.args) <= of_torch and keyword(node, "dim") is None:
        return None
    return (node.args[0] if node.args else None) if of_torch else receiver(node)


def is_trained(flow: Flow) -> bool:
    """Do gradients flow through it: is it the forward of a module, or a function that is named as losses are?"""
    function = flow.function
    if function is None:
        return False
    owner = function.owner
    if any(_MEASURING.search(each.lower()) for each in (function.name, owner.node.name if owner is not None else "")):
        return False
    if any(last_name(call) == "set_grad_enabled" for call in facts(flow.tree).calls):
        return False  # of the whole module
    is_forward = function.name == "forward" and owner is not None and (owner.is_module or _is_method(function, owner))
    return (is_forward or _TRAINED.search(function.name.lower()) is not None) and OFF.isdisjoint(names_in(flow.scope))


def _is_method(function: FunctionInfo, owner: ClassInfo) -> bool:
    """Is it a method of an instance, in a class that inherits: `forward` of an `autograd.Function` is static, and modules
    of a project often inherit from a base class of its own?"""
    first = next(iter(parameters(function.node)), None)
    return bool(owner.node.bases) and first is not None and first.arg == "self"


def is_measured(call: Call) -> bool:
    """Is the root, or the name that it gets, taken for a number, compared with one, or cut from the graph?"""
    if any(isinstance(part, ast.Compare) or _cuts(part) for part in within(call.node, call.flow)):
        return True
    bound = {last_name(target) for target in getattr(call.flow.statement, "targets", ())} - {""}
    known = parents_in(call.flow.scope) if bound else {}
    for node in nodes([call.flow.scope]) if bound else ():
        if isinstance(node, ast.Name) and node.id in bound and isinstance(node.ctx, ast.Load):
            around: ast.AST | None = node
            while isinstance(around, ast.expr):
                if isinstance(around, ast.Compare) or _cuts(around):
                    return True
                around = known.get(around)
    return False


def _cuts(node: ast.AST) -> bool:
    return isinstance(node, (ast.Attribute, ast.Call)) and last_name(node) in _CUTTING
