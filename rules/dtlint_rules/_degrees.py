"""Roots and reciprocals of the degrees of a graph: that of a node without neighbours is 0, and one over it is inf."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._edges import Edge, behind, is_mended, is_tested, keeps
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._numbers import number_at
from dtlint_rules._parts import below, keyword, receiver
from dtlint_rules._statements import statements
from dtlint_rules._texts import short
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["COUNTING", "GATHERING", "INVERTING", "inverse_degree"]

COUNTING = frozenset({"degree"})
"""What counts the neighbours of nodes, in packages for graphs."""
INVERTING = frozenset({"pow", "pow_", "rsqrt", "rsqrt_", "reciprocal", "reciprocal_"})
"""Functions and methods that may compute one over something."""
GATHERING = frozenset({"scatter_add", "scatter_add_", "scatter", "scatter_", "scatter_sum", "index_add", "index_add_"})
_DEGREE = re.compile(r"(?:^|_)deg(?:s|ree|rees)?(?:_|$)")
_ADJACENCY = re.compile(r"(?:^|_)(?:adj(?:acency)?|edges?)(?:_|$)")
_OF_GRAPHS = re.compile(r"(?:^|\.|_)(?:utils?|geometric|graphs?)(?:\.|$)")
"""Modules that may have a function for degrees: `torch_geometric.utils`."""
_CASTS = ("float", "double", "to", "type", "type_as", "view", "squeeze", "unsqueeze", "flatten", "cuda", "to_dense")
_LOOPS = re.compile(r"loop|^eye(?:_|$)|^fill_diagonal_?$", re.IGNORECASE)
"""What joins each node with itself, so that no degree is 0."""


def inverse_degree(node: ast.expr, flow: Flow) -> Edge | None:
    """What is wrong with `deg.pow(-0.5)`, `deg.rsqrt()`, `deg ** -1` or `1 / deg.sqrt()`, where `deg` counts neighbours."""
    degrees = _inverted(node, flow)
    made = None if degrees is None else _made(degrees, flow)
    if degrees is None or made is None or not _counts(degrees, made, flow):
        return None
    if any(_keeps(part) for part in behind(degrees, flow)) or is_tested(degrees, flow) or is_mended(flow.scope):
        return None
    if not _is_used_apart(made, flow) or _joins_with_itself(flow.tree):
        return None
    return Edge(
        f"`{short(degrees)}` is 0 for a node without neighbours, where this is inf",
        "Clamp the degrees, `.clamp(min=1)`, or use `x.masked_fill(x == float('inf'), 0)`",
        made if made.lineno != node.lineno else None,
        by_name=last_name(made) not in COUNTING,
    )


_ROOTS = frozenset({"sqrt", "sqrt_"})


def _inverted(node: ast.expr, flow: Flow) -> ast.expr | None:
    """`deg`, of one over it and of one over its root."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Pow):
            return node.left if _is_negative(node.right, flow) else None
        if not isinstance(node.op, ast.Div) or not isinstance(node.left, ast.Constant):
            return None
        below_line = source_of(node.right, flow) or node.right
        rooted = last_name(below_line) in _ROOTS and isinstance(below_line, ast.Call)
        return _operand(below_line) if rooted else node.right
    if not isinstance(node, ast.Call):
        return None
    if last_name(node) in ("pow", "pow_"):
        return _operand(node) if node.args and _is_negative(node.args[-1], flow) else None
    return _operand(node) if last_name(node) in INVERTING else None


def _operand(node: ast.expr) -> ast.expr | None:
    """`x`, of `x.sqrt()` and `torch.sqrt(x)`."""
    held = receiver(node)
    if held is not None and path_of(held) in ("torch", "th"):
        return node.args[0] if isinstance(node, ast.Call) and node.args else None
    return None if path_of(held or node) in ("np", "numpy", "math") else held


def _is_negative(power: ast.expr, flow: Flow) -> bool:
    number = number_at(power, flow)
    return number is not None and number.value < 0


def _made(node: ast.expr, flow: Flow) -> ast.Call | None:
    """The call that computes a value, casts and shapes aside."""
    node = below(node, _CASTS)
    made = below(source_of(node, flow) or node, _CASTS)
    return made if isinstance(made, ast.Call) else None


def _counts(node: ast.expr, made: ast.Call, flow: Flow) -> bool:
    """Are these degrees: by the function that gives them, or a sum by what is added up and how it is called?"""
    name = last_name(made)
    if name in COUNTING:
        return path_of(made.func) in _functions(flow.tree)
    called = _DEGREE.search(last_name(below(node, _CASTS)).lower()) is not None
    if name in GATHERING:
        return called
    if name != "sum" or not called:
        return False
    of_torch = path_of(made.func) in ("torch.sum", "th.sum")
    if len(made.args) <= of_torch and keyword(made, "dim") is None:
        return False
    summed = made.args[0] if of_torch and made.args else receiver(made)
    if not isinstance(summed, ast.Name) or summed.id in assignments(flow.scope):
        return False  # `adj = adj + torch.diag(torch.ones(n))`, `adj = torch.softmax(scores, -1)`
    return _ADJACENCY.search(summed.id.lower()) is not None


@kept
def _functions(tree: ast.Module) -> frozenset[str]:
    """How a file calls the functions for degrees that it defines, or imports from a package for graphs."""
    found: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef) and node.name in COUNTING:
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            of_graphs = _OF_GRAPHS.search(node.module or "") is not None
            for alias in node.names:
                name = alias.asname or alias.name
                if of_graphs and alias.name in COUNTING:
                    found.add(name)
                elif of_graphs or _OF_GRAPHS.search(alias.name) is not None:
                    found.update(f"{name}.{each}" for each in COUNTING)
        elif isinstance(node, ast.Import):
            found.update(
                f"{alias.asname or alias.name}.{each}"
                for alias in node.names
                if _OF_GRAPHS.search(alias.name) is not None
                for each in COUNTING
            )
    return frozenset(found)


def _keeps(part: ast.AST) -> bool:
    """Does a part of an expression keep degrees from 0: a clamp, an epsilon, or a number that is added?"""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add):
        return any(isinstance(side, ast.Constant) for side in (part.left, part.right))
    return keeps(part)


def _is_used_apart(made: ast.Call, flow: Flow) -> bool:
    """Is the result left as it is where it is inf, and read for other nodes than those that were counted? Of `deg[row]`,
    where `deg` counts `row`, none is 0."""
    statement = flow.statement
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return not isinstance(statement, ast.Assign)  # `g.ndata["norm"] = ...` is read along the edges
    name, counted = statement.targets[0].id, [ast.dump(part) for part in made.args]
    apart = False
    around = parents_in(flow.scope)
    for part in nodes([flow.scope]):
        if not isinstance(part, ast.Name) or part.id != name or part.lineno <= statement.lineno:
            continue
        held = around.get(part)
        if not isinstance(held, ast.Subscript) or held.value is not part:
            apart = True
        elif isinstance(held.ctx, ast.Store):
            return False  # `inverse[inverse == inf] = 0`
        elif ast.dump(held.slice) not in counted:
            apart = True
    return apart


@kept
def _joins_with_itself(tree: ast.Module) -> bool:
    """Does a file join nodes with themselves anywhere, by a call, or in what it calls its edges?"""
    return any(
        _LOOPS.search(last_name(part) if isinstance(part, ast.expr) else part.arg) is not None
        for part in nodes([tree])
        if isinstance(part, (ast.Name, ast.Attribute, ast.arg))
    )
