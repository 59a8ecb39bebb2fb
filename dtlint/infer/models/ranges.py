"""What the elements of a result can be, from those of the operands: a row for each operator that bounds them.

Operands have at least one element: the mean of none is NaN, and is left out of account.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.infer.domain.interval import ANY, Range, point
from dtlint.infer.domain.lattice import number_of
from dtlint.infer.domain.values import Const, Many, Tensor, Tuple, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["as_whole_numbers", "elements", "of_op", "range_of"]

_INF = math.inf
_MOVES = """
    reshape view expand repeat permute transpose contiguous flatten unflatten unsqueeze squeeze t clone detach roll flip
    fliplr flipud rot90 narrow select index_select gather cat concat concatenate stack hstack vstack dstack movedim moveaxis
    swapaxes swapdims diagonal requires_grad cpu cuda view_as expand_as reshape_as broadcast_to amax amin cummax cummin
    take take_along_dim masked_select repeat_interleave tile ravel atleast_1d max_pool1d max_pool2d max_pool3d
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d resolve_conj resolve_neg median nanmedian
    channel_shuffle pixel_shuffle pixel_unshuffle Flatten Unflatten Identity PixelShuffle PixelUnshuffle ChannelShuffle
    float double half bfloat16
"""
"""What moves elements, or picks some of them."""
_MOVED = frozenset(_MOVES.split())


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


def of_op(op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Range:
    """The range of an op's result, by its qualified name; of a layer, the weight, or None, stands first."""
    package, _, last = op.rpartition(".")
    if package == "torch.masked":
        return ANY
    if package == "torch.nn" and last[:1].isupper():
        args = args[1:]
    if not args and isinstance(keywords.get("input"), Tensor):
        args = [keywords["input"]]
    if op in ("torch.Tensor.unfold", "torch.Tensor.type", "torch.Tensor.to"):
        return ANY if not op.endswith("unfold") else elements(args[0])
    return range_of(last.rstrip("_") if not last.startswith("_") else last, args, keywords)


def range_of(op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Range:
    """The range of an op's result, by the last part of its name."""
    made = _CREATED.get(op)
    if made is not None:
        return made
    if op in ("full", "new_full", "full_like"):
        return elements(args[-1]) if len(args) > 1 else elements(keywords.get("fill_value", Tuple(())))
    if not args:
        return ANY
    first = elements(args[0])
    if op in _MOVED:
        return first
    if op == "linspace" and len(args) > 1:
        return first.join(elements(args[1]))
    if (
        op == "normalize"
        and "p" not in keywords
        and (len(args) == 1 or ((number := number_of(args[1])) is not None and number.range.low > 0))
    ):
        return _OF_LENGTH_1
    one = _OF_ONE.get(op)
    if one is not None:
        return one(first)
    two = _OF_TWO.get(op)
    if two is not None and len(args) == 2 and not keywords:
        return two(first, elements(args[1]))
    if op in ("add", "sub") and len(args) == 2 and set(keywords) == {"alpha"}:
        return _OF_TWO[op](first, elements(args[1]).multiply(elements(keywords["alpha"])))
    if op in ("max", "min"):
        other = len(args) > 1 and isinstance(args[1], Tensor)
        return _OF_TWO[f"{op}imum"](first, elements(args[1])) if other else first
    if op in _CLAMPS:
        return _clamped(op, first, args, keywords)
    if op == "where" and len(args) == 3:
        return elements(args[1]).join(elements(args[2]))
    if op in ("masked_fill", "index_fill") and len(args) > 2:
        return first.join(elements(args[-1]))
    if op == "pow" and len(args) > 1 and isinstance(args[1], Const) and type(args[1].value) in (int, float):
        return first.power(float(args[1].value))
    return ANY


def as_whole_numbers(value: Range) -> Range:
    """What a cast to an integer dtype leaves: the fraction goes. What does not fit is anything."""
    if not value.bounded or value.magnitude >= 2**31 or value.inf or value.nan:
        return ANY
    low, high = float(math.trunc(value.low)), float(math.trunc(value.high))
    return Range(low, high, low <= 0 <= high, False, False)


_UNIT = Range(0.0, 1.0, True, False, False)
_OF_LENGTH_1 = Range(-1.001, 1.001, True, False, True)
"""What is divided by its norm, which is no less; NaN where that is 0. Rounding takes it a little beyond 1."""
_NORMAL = Range(-_INF, _INF, False, False, False)
"""Numbers of a normal distribution, of which about one in a million is 0."""
_CREATED = {
    "rand": _UNIT,
    "rand_like": _UNIT,
    **dict.fromkeys(("randn", "randn_like"), _NORMAL),
    **dict.fromkeys(("one_hot", "eye", "bernoulli"), _UNIT),
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), point(0.0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), point(1.0)),
}


def _within(low: float, high: float, *, zero: bool = True, of_inf: bool = False) -> Callable[[Range], Range]:
    """Results between two bounds, and NaN of NaN; `of_inf`: of an infinity, too."""
    return lambda value: Range(low, high, zero, False, value.nan or (of_inf and value.inf))


def _not_negative(value: Range) -> Range:
    return Range(0.0, _INF, True, True, True)


def _relu(value: Range) -> Range:
    return Range(max(value.low, 0.0), max(value.high, 0.0), value.zero or value.low < 0, value.inf, value.nan)


def _exp(value: Range) -> Range:
    return value.monotone(math.exp, zero=value.low < -87)


def _log(value: Range) -> Range:
    least = Range(max(value.low, 0.0), max(value.high, 0.0), value.zero, value.inf, value.nan)
    result = least.monotone(lambda bound: -_INF if bound == 0 else math.log(bound))
    return Range(result.low, result.high, True, value.inf or value.zero, value.nan or value.low < 0)


def _log1p(value: Range) -> Range:
    least = Range(max(value.low, -1.0), max(value.high, -1.0), value.zero, value.inf, value.nan)
    result = least.monotone(lambda bound: -_INF if bound == -1 else math.log1p(bound))
    return Range(result.low, result.high, value.zero, value.inf or value.low <= -1, value.nan or value.low < -1)


def _log_softmax(value: Range) -> Range:
    return Range(-_INF, 0.0, True, True, value.nan or value.inf)


def _sqrt(value: Range) -> Range:
    low, high = max(value.low, 0.0), max(value.high, 0.0)
    most = math.sqrt(high) if high < _INF else _INF
    least = math.sqrt(low) if low < _INF else _INF
    return Range(least, most, value.zero, value.inf and value.high == _INF, value.nan or value.low < 0)


def _reciprocal(value: Range) -> Range:
    return point(1.0).divide(value)


def _total(value: Range) -> Range:
    """A sum of any number of these."""
    low = value.low if value.low >= 0 else -_INF
    high = value.high if value.high <= 0 else _INF
    nan = value.nan or (value.inf and value.low == -_INF and value.high == _INF)
    return Range(low, high, value.zero or low < 0 < high, value.inf, nan)


def _mean(value: Range) -> Range:
    return Range(value.low, value.high, value.low <= 0 <= value.high, value.inf, value.nan or value.inf)


def _dropped(value: Range) -> Range:
    """Elements that are scaled up, or zero."""
    low, high = (-_INF if value.low < 0 else 0.0), (_INF if value.high > 0 else 0.0)
    return Range(low, high, True, value.inf, value.nan or value.inf)


def _with_zero(value: Range) -> Range:
    return value.join(point(0.0))


def _larger(one: Range, other: Range) -> Range:
    return Range(
        max(one.low, other.low),
        max(one.high, other.high),
        one.zero or other.zero,
        one.inf or other.inf,
        one.nan or other.nan,
    )


def _smaller(one: Range, other: Range) -> Range:
    return _larger(one.negate(), other.negate()).negate()


_OF_ONE: dict[str, Callable[[Range], Range]] = {
    **dict.fromkeys(("sigmoid", "Sigmoid", "hardsigmoid", "Hardsigmoid", "expit"), _within(0.0, 1.0)),
    **dict.fromkeys(("softmax", "Softmax", "softmin", "Softmin"), _within(0.0, 1.0, of_inf=True)),
    **dict.fromkeys(("tanh", "Tanh", "erf", "sign", "sgn"), _within(-1.0, 1.0)),
    **dict.fromkeys(("softsign", "Softsign"), _within(-1.0, 1.0, of_inf=True)),
    **dict.fromkeys(("atan", "arctan"), _within(-1.6, 1.6)),
    **dict.fromkeys(("asin", "arcsin"), lambda value: Range(-1.6, 1.6, True, False, value.nan or value.magnitude > 1)),
    **dict.fromkeys(("acos", "arccos"), lambda value: Range(0.0, 3.15, True, False, value.nan or value.magnitude > 1)),
    **dict.fromkeys(("sin", "cos"), _within(-1.0, 1.0, of_inf=True)),
    **dict.fromkeys(("log_softmax", "LogSoftmax"), _log_softmax),
    **dict.fromkeys(("logsigmoid", "LogSigmoid"), lambda value: Range(-_INF, 0.0, True, value.inf, value.nan)),
    **dict.fromkeys(("norm", "vector_norm", "matrix_norm", "std", "var", "cdist", "pdist", "dist"), _not_negative),
    **dict.fromkeys(("softplus", "Softplus"), _not_negative),
    **dict.fromkeys(("relu", "ReLU"), _relu),
    **dict.fromkeys(("relu6", "ReLU6"), lambda value: _relu(value).clamp(0.0, 6.0)),
    **dict.fromkeys(("abs", "absolute", "__abs__"), Range.absolute),
    **dict.fromkeys(("neg", "negative", "__neg__"), Range.negate),
    "square": Range.square,
    "exp": _exp,
    "log": _log,
    "log1p": _log1p,
    "expm1": lambda value: value.monotone(math.expm1),
    "sqrt": _sqrt,
    "rsqrt": lambda value: _reciprocal(_sqrt(value)),
    "reciprocal": _reciprocal,
    "mean": _mean,
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"), _mean),
    **dict.fromkeys(("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d"), _mean),
    "sum": _total,
    "cumsum": _total,
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d"), _dropped),
    **dict.fromkeys(("Dropout", "Dropout1d", "Dropout2d", "Dropout3d"), _dropped),
    **dict.fromkeys(("tril", "triu", "diag", "diagflat", "diag_embed"), _with_zero),
}
_OF_TWO: dict[str, Callable[[Range, Range], Range]] = {
    "add": Range.add,
    "sub": Range.subtract,
    **dict.fromkeys(("mul", "multiply", "outer", "ger", "kron"), Range.multiply),
    "div": Range.divide,
    "true_divide": Range.divide,
    **dict.fromkeys(("atan2", "arctan2"), lambda one, other: Range(-3.15, 3.15, True, False, one.nan or other.nan)),
    "cosine_similarity": lambda one, other: Range(-1.01, 1.01, True, False, True),
    "maximum": _larger,
    "minimum": _smaller,
}
_CLAMPS: dict[str, tuple[float, float]] = {
    "clamp": (-_INF, _INF),
    "clip": (-_INF, _INF),
    "clamp_min": (-_INF, _INF),
    "clamp_max": (-_INF, _INF),
    "hardtanh": (-1.0, 1.0),
}
"""What clamps, and its bounds where they are not given."""


def _clamped(op: str, value: Range, args: Sequence[Value], keywords: Mapping[str, Value]) -> Range:
    """Between the bounds, which may be tensors; where they cross, torch gives the upper one."""
    given = [*args[1:], None, None]
    low = given[0] if op != "clamp_max" else None
    high = given[1] if op != "clamp_max" else given[0]
    low, high = low or keywords.get("min"), high or keywords.get("max")
    low = keywords.get("min_val") or low
    high = keywords.get("max_val") or high
    least, most = (_bound(one, usual) for one, usual in zip((low, high), _CLAMPS[op], strict=True))
    if least is not None:
        value = _larger(value, least)
    return value if most is None else _smaller(value, most)


def _bound(value: Value | None, usual: float) -> Range | None:
    """A bound's range; None where there is none."""
    if value is None:
        return None if math.isinf(usual) else point(usual)
    return None if isinstance(value, Const) and value.value is None else elements(value)
