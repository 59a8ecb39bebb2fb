"""Python numbers that a program computes: nobody knows which, but promotion asks only for their category."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.array_promotion import array_operator
from dtlint.infer.symbols import category_of
from dtlint.infer.values import UNKNOWN, Array, Constant, Dtypes, Iteration, Number, Tensor, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "LIMITS",
    "NUMBERS",
    "NUMBER_FUNCTIONS",
    "Categories",
    "Limits",
    "computed",
    "folded",
    "negated",
    "number_member",
    "number_method",
]

_INTEGER, _FLOAT = Number(Category.INTEGER), Number(Category.FLOAT)

NUMBER_FUNCTIONS: dict[str, Value] = {
    "builtins.len": _INTEGER,
    "builtins.int": _INTEGER,
    "builtins.ord": _INTEGER,
    "builtins.id": _INTEGER,
    "builtins.float": _FLOAT,
    "builtins.range": Iteration(_INTEGER),
    **dict.fromkeys(
        (
            f"math.{name}"
            for name in ("sqrt", "log", "log2", "log10", "exp", "sin", "cos", "tan", "pow", "radians", "erf")
        ),
        _FLOAT,
    ),
    **dict.fromkeys((f"math.{name}" for name in ("ceil", "floor", "gcd", "comb", "factorial", "isqrt")), _INTEGER),
    **dict.fromkeys((f"time.{name}" for name in ("time", "perf_counter", "monotonic", "process_time")), _FLOAT),
    **dict.fromkeys((f"random.{name}" for name in ("random", "uniform", "gauss", "normalvariate")), _FLOAT),
    **dict.fromkeys((f"random.{name}" for name in ("randint", "randrange")), _INTEGER),
}
"""Functions of Python's own library that give a number, or many."""

NUMBERS: dict[str, Value] = {
    f"{module}.{name}": Constant(value)
    for module in ("math", "numpy", "torch")
    for name, value in (("inf", math.inf), ("pi", math.pi), ("e", math.e), ("nan", math.nan))
}
"""Numbers that have a name."""


@dataclass(slots=True)
class Limits(Value):
    """`torch.finfo(dtype)`, `torch.iinfo(dtype)`: numbers of that category."""

    category: Category


LIMITS: dict[str, Value] = {
    f"{module}.{name}": Limits(category)
    for module in ("torch", "numpy")
    for name, category in (("finfo", Category.FLOAT), ("iinfo", Category.INTEGER))
}
"""Functions that give the limits of a dtype."""
_EXTREMES = frozenset({"min", "max", "eps", "tiny", "smallest_normal", "resolution"})


@dataclass(slots=True)
class Categories(Value):
    """`torch.distributions.Categorical(probs)`: of what dtype the probabilities are."""

    dtypes: Dtypes

    def result(self, method: str) -> Value:
        """What a method gives. Source: torch/distributions/categorical.py."""
        if method == "sample":
            return Tensor(frozenset({"int64"}))
        return Tensor(self.dtypes) if method in ("log_prob", "entropy") else UNKNOWN


_COUNTS = frozenset({"ndim", "itemsize", "nbytes"})


def number_member(base: Value, name: str) -> Value:
    """An attribute of a tensor or array that is a number: its rank, its sizes."""
    if isinstance(base, Limits):
        return Number(base.category) if name in _EXTREMES else UNKNOWN
    if not isinstance(base, (Tensor, Array)):
        return UNKNOWN
    if name == "shape":
        return Iteration(_INTEGER)
    return _INTEGER if name in _COUNTS or (name == "size" and isinstance(base, Array)) else UNKNOWN


def number_method(tensor: Tensor, method: str, args: Sequence[Value]) -> Value | None:
    """A method of a tensor that gives a Python number."""
    if method == "size":
        return _INTEGER if args else Iteration(_INTEGER)
    if method in ("dim", "numel", "nelement", "element_size", "ndimension", "get_device"):
        return _INTEGER
    if method == "item" and tensor.dtypes is not None:
        categories = {DTYPES[dtype].category for dtype in tensor.dtypes}
        return Number(categories.pop()) if len(categories) == 1 else None
    return None


def computed(operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
    """Arithmetic on numbers of which at least one is computed, and on arrays."""
    if isinstance(left, Array) or isinstance(right, Array):
        return array_operator(operator, left, right, node)
    one, other = category_of(left), category_of(right)
    if one is None or other is None:
        return UNKNOWN
    category = max(one, other, Category.INTEGER)
    if isinstance(operator, ast.Div):
        return Number(max(category, Category.FLOAT))
    if isinstance(operator, ast.Pow):  # 2 ** -1 is a float, 2 ** 1 is not
        return Number(category) if category >= Category.FLOAT else UNKNOWN
    return Number(category)


_FOLDS: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def folded(operator: ast.operator, left: object, right: object) -> Value:
    """Arithmetic on constant numbers; powers only of small exponents, for `10**1000000` has no place in a checker."""
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        complex_ = isinstance(left, (int, float, complex)) and isinstance(right, (int, float, complex))
        return Number(Category.COMPLEX) if complex_ and type(operator) in _FOLDS else UNKNOWN
    try:
        if isinstance(operator, ast.Pow):
            return Constant(left**right) if abs(right) <= 64 and abs(left) <= 1e6 else UNKNOWN
        fold = _FOLDS.get(type(operator))
        return UNKNOWN if fold is None else Constant(fold(left, right))
    except (ArithmeticError, ValueError):
        return UNKNOWN


def negated(operator: ast.unaryop, value: object) -> Value:
    """`-x`, `+x` and `not x` of a constant."""
    if isinstance(operator, ast.Not):
        return Constant(not value)
    if isinstance(value, (int, float)) and isinstance(operator, (ast.USub, ast.UAdd)):
        return Constant(-value if isinstance(operator, ast.USub) else +value)
    return UNKNOWN
