"""What the elements of a result can be, from those of the operands: a row for each operator that bounds them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.infer.domain.interval import ANY, Range
from dtlint.infer.domain.lattice import number_of
from dtlint.infer.domain.values import Const, Many, Tensor, Tuple, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["elements", "range_of"]

_INF = math.inf
UNIT = Range(0.0, 1.0, True, False, False)
_POSITIVE = Range(0.0, _INF, True, True, True)
_MOVES = frozenset(
    {"reshape", "view", "expand", "repeat", "permute", "transpose", "contiguous", "flatten", "unflatten", "unsqueeze"}
    | {"squeeze", "t", "clone", "detach", "roll", "flip", "narrow", "select", "index_select", "gather", "cat", "stack"}
    | {
        "split",
        "chunk",
        "unbind",
        "to",
        "amax",
        "amin",
        "max",
        "min",
        "sort",
        "movedim",
        "swapaxes",
        "diagonal",
        "float",
    }
    | {
        "double",
        "half",
        "bfloat16",
        "requires_grad",
        "cpu",
        "cuda",
        "type_as",
        "view_as",
        "expand_as",
        "cummax",
        "unfold",
    }
)
"""What moves elements, or picks some of them."""


def elements(value: Value) -> Range:
    """The range of a tensor's elements, or of a number."""
    if isinstance(value, Tensor):
        return value.range
    if isinstance(value, (Tuple, Many)):
        items = value.items if isinstance(value, Tuple) else (value.item,)
        result: Range | None = None
        for item in items:
            result = elements(item) if result is None else result.join(elements(item))
        return ANY if result is None else result
    number = number_of(value)
    return ANY if number is None else number.range


def range_of(op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Range:
    """The range of an op's result, by the last part of its name."""
    constant = _CONSTANT.get(op)
    if constant is not None:
        return constant
    if op == "full":
        return elements(args[1]) if len(args) > 1 else elements(keywords.get("fill_value", Tuple(())))
    if op in ("zeros", "zeros_like", "new_zeros"):
        return Range(0.0, 0.0, True, False, False)
    if op in ("ones", "ones_like", "new_ones"):
        return Range(1.0, 1.0, False, False, False)
    if not args:
        return ANY
    first = elements(args[0])
    if op in _MOVES:
        return first
    one = _OF_ONE.get(op)
    if one is not None:
        return one(first)
    two = _OF_TWO.get(op)
    if two is not None and len(args) > 1:
        return two(first, elements(args[1]))
    if op in ("clamp", "clamp_min", "clamp_max", "hardtanh"):
        return _clamped(op, first, args, keywords)
    if op == "where" and len(args) == 3:
        return elements(args[1]).join(elements(args[2]))
    if op == "masked_fill" and len(args) == 3:
        return first.join(elements(args[2]))
    if op == "pow" and len(args) > 1 and isinstance(args[1], Const) and isinstance(args[1].value, (int, float)):
        return first.power(float(args[1].value))
    return ANY


_CONSTANT = {
    "sigmoid": UNIT,
    "softmax": UNIT,
    "Sigmoid": UNIT,
    "Softmax": UNIT,
    "hardsigmoid": UNIT,
    "rand": UNIT,
    "rand_like": UNIT,
    "tanh": Range(-1.0, 1.0, True, False, False),
    "Tanh": Range(-1.0, 1.0, True, False, False),
    "sin": Range(-1.0, 1.0, True, False, True),
    "cos": Range(-1.0, 1.0, True, False, True),
    "erf": Range(-1.0, 1.0, True, False, False),
    "log_softmax": Range(-_INF, 0.0, True, True, False),
    "logsigmoid": Range(-_INF, 0.0, True, True, False),
    "one_hot": UNIT,
    "norm": _POSITIVE,
    "std": _POSITIVE,
    "var": _POSITIVE,
}


def _relu(value: Range) -> Range:
    return Range(max(value.low, 0.0), max(value.high, 0.0), value.zero or value.low < 0, value.inf, value.nan)


def _exp(value: Range) -> Range:
    return value.monotone(math.exp, zero=value.low < -87)


def _log(value: Range) -> Range:
    made = Range(max(value.low, 0.0), value.high, value.zero, value.inf, value.nan)
    result = made.monotone(lambda bound: -_INF if bound == 0 else math.log(bound))
    return Range(result.low, result.high, True, value.inf or value.zero, value.nan or value.low < 0)


def _sqrt(value: Range) -> Range:
    return value.power(0.5)


_OF_ONE: dict[str, Callable[[Range], Range]] = {
    "relu": _relu,
    "ReLU": _relu,
    "abs": Range.absolute,
    "neg": Range.negate,
    "square": Range.square,
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "softplus": lambda value: _POSITIVE,
    "rsqrt": lambda value: Range(1.0).divide(_sqrt(value)) if not value.zero else _POSITIVE,
    "reciprocal": lambda value: Range(1.0, 1.0, False, False, False).divide(value),
    "mean": lambda value: Range(value.low, value.high, value.low <= 0 <= value.high, value.inf, value.nan),
    "dropout": lambda value: Range(-_INF if value.low < 0 else 0.0, _INF, True, value.inf, value.nan),
}
_OF_TWO: dict[str, Callable[[Range, Range], Range]] = {
    "add": Range.add,
    "sub": Range.subtract,
    "mul": Range.multiply,
    "div": Range.divide,
    "maximum": lambda one, other: Range(
        max(one.low, other.low),
        max(one.high, other.high),
        one.zero or other.zero,
        one.inf or other.inf,
        one.nan or other.nan,
    ),
    "minimum": lambda one, other: Range(
        min(one.low, other.low),
        min(one.high, other.high),
        one.zero or other.zero,
        one.inf or other.inf,
        one.nan or other.nan,
    ),
}


def _clamped(op: str, value: Range, args: Sequence[Value], keywords: Mapping[str, Value]) -> Range:
    low, high = keywords.get("min"), keywords.get("max")
    rest = list(args[1:])
    if op == "clamp_max":
        high = high or (rest[0] if rest else None)
    else:
        low = low or (rest[0] if rest else None)
        high = high or (rest[1] if len(rest) > 1 else None)
    least = elements(low).low if low is not None and number_of(low) is not None else -_INF
    most = elements(high).high if high is not None and number_of(high) is not None else _INF
    return value.clamp(least, most)
