"""Numbers as the source writes them: what they are worth, and where they stand.

A limit or an epsilon is written at its use, or as a parameter's default, a constant of the module or an attribute of
the class; whoever mends it has to find that place.
"""

from __future__ import annotations

import ast
import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, named
from dtlint.infer.names import path_of
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import defaults, parameters
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.events import Flow

__all__ = ["HALF", "Number", "number_at", "spelled"]

HALF = DTYPES["float16"]
"""The range that these rules judge by: bfloat16 reaches as far as float32."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number and the expression that writes it. `literal`: it stands right where it is used."""

    value: float
    written: ast.expr
    literal: bool = True


def number_at(node: ast.expr | None, flow: Flow) -> Number | None:
    """The number that an expression is, followed to the one place that writes it; None when there are several."""
    if node is None:
        return None
    value = _literal(node)
    if value is not None:
        return Number(value, node)
    sign = 1.0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
        node = node.operand
    written = _written(node, flow)
    if isinstance(written, ast.Name) and written.id.isupper():  # `eps: float = EPS`, a constant of the module
        written = _names(flow.tree).get(written.id)
    if written is None:
        return None
    value = _literal(written)
    return None if value is None else Number(sign * value, written, literal=False)


def spelled(value: float) -> str:
    """The number as people write it: `-1e9`, not `-1000000000.0`."""
    text = f"{value:g}"
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if e else text


_LIMITS: dict[str, Callable[[str], float]] = {
    "min": lambda name: DTYPES[name].min,
    "max": lambda name: DTYPES[name].max,
    "eps": lambda name: DTYPES[name].eps,
    "tiny": lambda name: DTYPES[name].tiny,
    "smallest_normal": lambda name: DTYPES[name].tiny,
}
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def _literal(node: ast.expr) -> float | None:
    """The number that an expression writes out: with a sign, as arithmetic of numbers, as `float("-1e9")`, or as
    `torch.finfo(torch.float32).min`."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float) else None  # type: ignore[return-value]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _literal(node.operand)
        return -value if value is not None and isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        return _folded(node)
    if isinstance(node, ast.Attribute):
        return _limit(node)
    if isinstance(node, ast.Call) and path_of(node.func) in ("float", "int") and len(node.args) == 1:
        (given,) = node.args
        try:
            return float(given.value) if isinstance(given, ast.Constant) else _literal(given)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
    return None


def _folded(node: ast.BinOp) -> float | None:
    fold = _OPERATORS.get(type(node.op))
    left, right = (_literal(node.left), _literal(node.right)) if fold is not None else (None, None)
    if fold is None or left is None or right is None or (isinstance(node.op, ast.Pow) and abs(right) > 64):
        return None
    try:
        value = fold(left, right)
    except (ArithmeticError, ValueError):
        return None
    return value if isinstance(value, (int, float)) else None


def _limit(node: ast.Attribute) -> float | None:
    """`torch.finfo(torch.float32).min`, `np.finfo(float).eps`, `math.inf`."""
    if isinstance(node.value, ast.Call):
        call = node.value
        if last_name(call) != "finfo" or not call.args or node.attr not in _LIMITS:
            return None
        last = last_name(call.args[0])
        of_numpy = not (path_of(call.args[0]) or "").startswith("torch.")
        name = "float64" if last == "float" and of_numpy else named(last)
        return _LIMITS[node.attr](name) if name in ("float16", "bfloat16", "float32", "float64") else None
    path = path_of(node)
    if path in ("math.inf", "np.inf", "numpy.inf", "torch.inf"):
        return math.inf
    return DTYPES["float64"].eps if path == "sys.float_info.epsilon" else None


def _written(node: ast.expr, flow: Flow) -> ast.expr | None:
    """The expression that gives a name or an attribute of `self` its only value."""
    if isinstance(node, ast.Name):
        function = flow.function
        if function is not None:
            bound = _names(function.node)
            if node.id in bound:
                return bound[node.id]
        return _names(flow.tree).get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        owner = None if flow.function is None else flow.function.owner
        return None if owner is None else _attributes(owner.node).get(node.attr)
    return None


@kept
def _names(scope: ast.AST) -> dict[str, ast.expr | None]:
    """The names that a function or module binds itself, with the expression where there is one alone: the default of a
    parameter, or the right side of an assignment."""
    found: dict[str, ast.expr | None] = {}
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        rest = (arguments.vararg, arguments.kwarg)
        found = {part.arg: None for part in (*parameters(scope), *rest) if part is not None}
        found.update({parameter.arg: default for parameter, default in defaults(arguments)})
    found.update((name, None if name in found else _only(lines)) for name, lines in assignments(scope).items())
    return found


def _only(lines: list[tuple[int, ast.expr | None]]) -> ast.expr | None:
    return lines[0][1] if len(lines) == 1 else None


@kept
def _attributes(owner: ast.ClassDef) -> dict[str, ast.expr | None]:
    """The attributes of `self` that a class gives one value alone; that of a parameter is its default."""
    found = {name: _only(lines) for name, lines in assignments(owner).items()}
    for method in owner.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in reversed(statements(method)):
            if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and path_of(target.value) == "self":
                    given = None if isinstance(node, ast.AugAssign) else node.value
                    if isinstance(given, ast.Name):
                        given = _names(method).get(given.id)
                    found[target.attr] = None if target.attr in found else given
    return found
