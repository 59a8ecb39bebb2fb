"""Numbers of Python that are hardly ever whole, by what computes them: how long something took, a logarithm, what is drawn."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.names import path_of
from dtlint.infer.values import Number
from dtlint_rules._assignments import assignments
from dtlint_rules._known import known

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["has_fraction", "tells_fractions"]

_CLOCKS = frozenset({"time", "perf_counter", "monotonic", "process_time"})
"""Functions that give seconds. Alone they are a time of day, which is kept in whole seconds on purpose; the difference of
two is how long something took."""
_OF_MATH = frozenset({"log", "exp", "sin", "cos", "tan", "erf", "random", "gauss", "normalvariate"})
"""Functions of `math` and `random` whose results are hardly ever whole, as `math.sqrt(n)` and `math.log2(n)` may be."""


def tells_fractions(called: set[str]) -> bool:
    """May a function that calls these compute such numbers? Ask it before anything else."""
    return not (_CLOCKS.isdisjoint(called) and _OF_MATH.isdisjoint(called))


def has_fraction(node: ast.expr, flow: Flow) -> bool:
    """Is a number surely one with a fraction: `end - start` of `time.time()`, `math.log(n)`?"""
    made = _made(node, flow, node.lineno)
    if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Sub):
        seconds = [_called(_made(side, flow, made.lineno)) in _CLOCKS for side in (made.left, made.right)]
        return all(seconds) and _is_number(node, made, flow)
    return _called(made) in _OF_MATH


def _made(node: ast.expr, flow: Flow, line: int) -> ast.expr:
    """What a name was assigned last above a line; the expression itself where it is none."""
    if not isinstance(node, ast.Name):
        return node
    above = [value for at, value in assignments(flow.scope).get(node.id, ()) if at < line]
    return above[-1] or node if above else node


def _called(node: ast.expr) -> str:
    """The function of Python's own library that is called, by its last name, however it was imported."""
    base, _, name = (path_of(node.func) or "").rpartition(".") if isinstance(node, ast.Call) else ("", "", "")
    if base == "math" and isinstance(node, ast.Call) and not any(map(_has_variable, node.args)):
        return ""  # `math.exp(0)`
    return name if base in (("math", "random") if name in _OF_MATH else ("", "time")) else ""


def _has_variable(node: ast.expr) -> bool:
    """Is it more than literals and the constants of `math`?"""
    return any(isinstance(part, ast.Name) and part.id != "math" for part in ast.walk(node))


def _is_number(node: ast.expr, difference: ast.BinOp, flow: Flow) -> bool:
    """Does inference have it for a float of Python, or, of a difference that stands there, what is subtracted?"""
    held = node if isinstance(node, ast.Name) else difference.left
    value = known(flow, held)
    return isinstance(held, ast.Call) or (isinstance(value, Number) and value.category == Category.FLOAT)
