"""What rounding explains of the difference of an operator's results: a model of first order, in relative norms.

    explained = SAFETY * sqrt(own**2 + sum((gain * incoming)**2)) + FLOOR

- *own*: the result is rounded once, by half the gap above 1 of its dtype (the unit roundoff u) and where it is very small
  by half of the least positive number, and sums of L products are kept in float32 or wider, whose errors are independent
  of one another: u + smallest / (2 * rms(result)) + sqrt(L) * u(float32) * condition.
- *incoming*: the measured relative difference of each operand, and u of each cast on its way.
- *gain*: by how much the operator makes a relative difference larger, from the root mean squares of its operands and of its
  result. A sum keeps absolute differences, so that cancellation is explained: rms(operand) / rms(result). A product of
  matrices has the condition rms(a) * rms(b) * sqrt(L) / rms(result). exp and softmax turn the absolute difference into a
  relative one: the largest magnitude. Quotients, logarithms and norms of layers stand in OPERATORS. What is in none of its
  rows has a gain of UNKNOWN.
- A *decision* (the gradient of relu or of a maximum, a mask computed from values) goes the other way where a value lies
  within its difference of the boundary: a share of about the incoming difference, whose root is the relative norm.

Assumptions: rounding errors are independent of each other and of the values, spread over the tensor as the values are, and
small. Kernels keep their sums at least in float32. Indices computed from values are not judged at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.compare.difference import FLOOR
from dtlint.dtypes.dtype import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.compare.run import Line

__all__ = ["SAFETY", "Explained", "Incoming", "explained", "roundoff", "unit_roundoff"]

SAFETY = 6.0
"""How far above the model honest rounding may be. The largest seen in first steps of GPT-2, Llama, BERT, T5, ResNets and
diffusion UNets, of float32 against bfloat16, float16 and float64, is 4."""

UNKNOWN = 4.0
"""The gain of an operator of which nothing is known."""

WIDEST = 1e6
"""The largest gain: what is above has no digits left."""

ACCUMULATED = 2.0**-24
"""The unit roundoff in which kernels keep sums."""


def unit_roundoff(dtype: str) -> float:
    """Half the gap between 1 and the next number; 0 of what is no float."""
    return DTYPES[dtype].eps / 2 if dtype in DTYPES else 0.0


def roundoff(dtype: str, rms: float) -> float:
    """The relative rounding of values of this root mean square, of which the smallest are subnormal."""
    if dtype not in DTYPES or not rms:
        return unit_roundoff(dtype)
    return unit_roundoff(dtype) + min(DTYPES[dtype].smallest / 2 / rms, 1.0)


@dataclass(frozen=True, slots=True)
class Incoming:
    """An operand: where it was last compared, and what has happened to it since."""

    line: Line
    """In the first run."""
    difference: float
    """Measured there."""
    rounded: float
    """The relative rounding by the casts on its way, added up."""
    decides: bool
    """Was it made to a truth value on its way?"""

    @property
    def relative(self) -> float:
        """Its relative difference as an operand."""
        found = math.hypot(self.difference, self.rounded)
        return math.sqrt(min(found, 1.0)) if self.decides else found


@dataclass(frozen=True, slots=True)
class Explained:
    """The difference that is to be expected of a result."""

    own: float
    """By rounding in the operator itself."""
    carried: float
    """By the differences of its operands."""

    @property
    def most(self) -> float:
        """The largest difference that is taken for rounding."""
        return SAFETY * math.hypot(self.own, self.carried) + FLOOR


def explained(line: Line, operands: Sequence[Incoming], dtype: str, rstd: float) -> Explained:
    """What rounding explains of the relative difference of a result.

    Args:
        line: the operator, in the first run.
        operands: what it is made of.
        dtype: the dtype to which its result is rounded.
        rstd: the largest reciprocal of a standard deviation that it took or gave, of an operator that normalises; else 0.
    """
    own = roundoff(dtype, line.rms)
    if not operands:
        return Explained(own, 0.0)
    seen = Seen(line, operands, rstd)
    gains = OPERATORS.get(line.op, unknown)(seen)
    gains = [min(gain, WIDEST) for gain in gains]
    own += ACCUMULATED * math.sqrt(seen.length) * max(1.0, *gains)
    squares = sum((gain * operand.relative) ** 2 for gain, operand in zip(gains, operands, strict=True))
    return Explained(own, math.sqrt(squares))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a gain is computed from."""

    line: Line
    operands: Sequence[Incoming]
    rstd: float

    @property
    def out(self) -> float:
        """The root mean square of the result; never 0."""
        return max(self.line.rms, 1e-30)

    def rms(self, number: int) -> float:
        """That of an operand."""
        return self.operands[number].line.rms

    @property
    def length(self) -> float:
        """How many terms are added up for each value of the result."""
        largest = sorted((operand.line.numel for operand in self.operands), reverse=True)
        if self.line.op in PRODUCTS and len(largest) > 1:
            return max(1.0, math.sqrt(largest[0] * largest[1] / max(self.line.numel, 1)))
        return max(1.0, largest[0] / max(self.line.numel, 1))


Gains = list[float]


def unknown(seen: Seen) -> Gains:
    """Nothing is known but that rounding is not blown up much."""
    return [UNKNOWN * max(1.0, seen.rms(n) / seen.out if len(seen.operands) == 1 else 1.0) for n in _each(seen)]


def linear(seen: Seen) -> Gains:
    """Absolute differences stay: sums of operands, choices among values, functions of slope 1."""
    return [1.2 * seen.rms(n) / seen.out for n in _each(seen)]


def total(seen: Seen) -> Gains:
    """Values are added up: sqrt(L) of independent differences, L of those that go one way; in between is taken."""
    return [seen.length**0.75 * seen.rms(n) / seen.out for n in _each(seen)]


def mean(seen: Seen) -> Gains:
    """As a total, over L."""
    return [max(1.0, seen.length**-0.25 * seen.rms(n) / seen.out) for n in _each(seen)]


def product(seen: Seen) -> Gains:
    """The condition of a product, of matrices or of values; a term that is added to it keeps its absolute difference."""
    if len(seen.operands) == 1:
        return [max(1.0, seen.rms(0) / seen.out) if seen.line.op != "mul" else 1.0]
    added, factors = _split(seen)
    condition = max(1.0, seen.rms(factors[0]) * seen.rms(factors[-1]) * math.sqrt(seen.length) / seen.out)
    return [seen.rms(n) / seen.out if n in added else condition for n in _each(seen)]


def _split(seen: Seen) -> tuple[list[int], list[int]]:
    """Which operands are added, and which are multiplied."""
    every, op = list(_each(seen)), seen.line.op
    if op in ("addmm", "baddbmm", "addmv", "addbmm", "addr", "addcmul") and len(every) > 2:
        return every[:-2], every[-2:]
    if op == "convolution" and len(every) > 2:
        return every[2:], every[:2]
    return [], every


def exponential(seen: Seen) -> Gains:
    """The relative difference is the absolute one of the exponent."""
    return [max(1.0, _reach(seen, n)) for n in _each(seen)]


def log_softmax(seen: Seen) -> Gains:
    """As of exp, relative to the result."""
    return [max(1.0, 2 * _reach(seen, n) / seen.out) for n in _each(seen)]


def attention(seen: Seen) -> Gains:
    """As of softmax, over scores that are of the size of the product of query and key."""
    scores = 4 * seen.rms(0) * seen.rms(min(1, len(seen.operands) - 1))
    return [max(2.0, scores) for _ in _each(seen)]


def quotient(seen: Seen) -> Gains:
    """A difference in a small divisor is large: the wider divisors spread, the more."""
    if len(seen.operands) == 1:
        return [1.0]
    spread = max(1.0, seen.out * seen.rms(1) / max(seen.rms(0), 1e-30))
    return [spread for _ in _each(seen)]


def power(exponent: float) -> Callable[[Seen], Gains]:
    """x to a power that is below 1: infinite slope at 0."""

    def gains(seen: Seen) -> Gains:
        return [max(1.0, seen.rms(n) * seen.out ** (-1 / exponent)) for n in _each(seen)]

    return gains


def logarithm(seen: Seen) -> Gains:
    """The absolute difference is the relative one of the smallest value, which the lowest result tells."""
    low = seen.line.sketch.low if seen.line.sketch is not None else 0.0
    return [max(1.0, seen.rms(n) * math.exp(min(-low, 60.0))) / seen.out for n in _each(seen)]


def normalised(seen: Seen) -> Gains:
    """The mean is subtracted, and what is left is divided by its deviation; twice so for the deviation itself."""
    if seen.line.output == 1:
        return [max(1.0, seen.rms(n) / seen.out) for n in _each(seen)]
    gain = max(1.0, seen.rms(0) * seen.rstd) * (2 if seen.line.output else 1)
    return [gain if n == 0 else 1.0 for n in _each(seen)]


def normalised_backward(seen: Seen) -> Gains:
    """The gradient loses its mean and its part along the input; those of weight and bias are sums over the batch."""
    if seen.line.output:
        gain = max(1.0, math.sqrt(seen.length) * seen.rms(0) / seen.out)
    else:
        gain = max(1.0, seen.rms(0) * max(seen.rstd, 1.0) / seen.out)
    spread = max(1.0, seen.rms(1) * seen.rstd) if len(seen.operands) > 1 else 1.0
    return [2 * gain * (spread if n else 1.0) for n in _each(seen)]


def softmax_backward(seen: Seen) -> Gains:
    """The gradient loses its mean under the probabilities."""
    factor = seen.rms(1) if len(seen.operands) > 1 and seen.line.op == "_softmax_backward_data" else 1.0
    reach = _reach(seen, 1) if len(seen.operands) > 1 and seen.line.op == "_log_softmax_backward_data" else 1.0
    gain = max(1.0, seen.rms(0) * factor / seen.out)
    return [2 * gain * (max(1.0, reach) if n else 1.0) for n in _each(seen)]


def deciding(seen: Seen) -> Gains:
    """The first operand goes through or not, as the others decide."""
    through = max(1.0, seen.rms(0) / seen.out)
    return [
        through if n == 0 else through / math.sqrt(max(operand.relative, 1e-12))
        for n, operand in enumerate(seen.operands)
    ]


def _each(seen: Seen) -> range:
    return range(len(seen.operands))


def _reach(seen: Seen, number: int) -> float:
    sketch = seen.operands[number].line.sketch
    return sketch.reach if sketch is not None else 0.0


def _table(**rows: Callable[[Seen], Gains]) -> dict[str, Callable[[Seen], Gains]]:
    return {name: gain for names, gain in rows.items() for name in names.split("__")}


PRODUCTS = frozenset(
    (
        *("mm", "bmm", "addmm", "baddbmm", "addmv", "addbmm", "mv", "dot", "vdot", "addr", "convolution", "linear"),
        *("convolution_backward", "mul", "addcmul", "_scaled_mm"),
    )
)

MIXING = PRODUCTS - {"mul", "addcmul"}
"""Operators each of whose results is made of many values."""

LINEAR = frozenset(
    (
        *("add", "sub", "rsub", "lerp", "cat", "stack", "where", "masked_fill", "masked_scatter", "copy", "clone"),
        *("index", "index_select", "index_put", "_index_put_impl", "gather", "scatter", "scatter_add", "index_add"),
        *("embedding", "slice_scatter", "select_scatter", "slice_backward", "select_backward", "constant_pad_nd"),
        *("repeat", "roll", "flip", "tril", "triu", "neg", "abs", "clamp", "clamp_min", "clamp_max", "maximum"),
        *("minimum", "max", "min", "amax", "amin", "sort", "topk", "relu", "leaky_relu", "gelu", "silu", "elu", "mish"),
        *("hardtanh", "hardswish", "hardsigmoid", "tanh", "sigmoid", "softplus", "sin", "cos", "erf", "atan", "round"),
        *("max_pool2d_with_indices", "nll_loss_forward", "nll_loss2d_forward", "cumsum", "logsumexp", "addcdiv"),
        *("upsample_nearest2d", "upsample_bilinear2d", "avg_pool2d", "_adaptive_avg_pool2d", "reflection_pad2d"),
        *("upsample_nearest2d_backward", "upsample_bilinear2d_backward", "avg_pool2d_backward", "masked_select"),
        *(
            "_adaptive_avg_pool2d_backward",
            "as_strided_scatter",
            "threshold",
            "lift_fresh",
            "l1_loss",
            "smooth_l1_loss",
        ),
    )
)

NORMALISING = frozenset(
    (
        *("native_layer_norm", "native_group_norm", "native_batch_norm", "cudnn_batch_norm", "_fused_rms_norm"),
        *("_batch_norm_with_update", "_native_batch_norm_legit", "rms_norm"),
    )
)

DECIDING = frozenset(
    ("threshold_backward", "hardtanh_backward", "leaky_relu_backward", "max_pool2d_with_indices_backward")
)

OPERATORS: dict[str, Callable[[Seen], Gains]] = {
    **dict.fromkeys(LINEAR, linear),
    **dict.fromkeys(PRODUCTS, product),
    **dict.fromkeys(("sum", "nansum", "embedding_dense_backward"), total),
    **dict.fromkeys(("mean", "nanmean", "mse_loss"), mean),
    **dict.fromkeys(("exp", "exp2", "expm1", "_softmax", "_safe_softmax", "cosh", "sinh"), exponential),
    "_log_softmax": log_softmax,
    **dict.fromkeys(("div", "div.Tensor"), quotient),
    "reciprocal": power(-1.0),
    "rsqrt": power(-0.5),
    "sqrt": power(0.5),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), logarithm),
    **dict.fromkeys(NORMALISING, normalised),
    **dict.fromkeys([f"{name.removeprefix('_fused_')}_backward" for name in NORMALISING], normalised_backward),
    "_fused_rms_norm_backward": normalised_backward,
    "_softmax_backward_data": softmax_backward,
    "_log_softmax_backward_data": softmax_backward,
    **dict.fromkeys(DECIDING, deciding),
    **dict.fromkeys(
        (
            *("scaled_dot_product_attention", "_scaled_dot_product_flash_attention"),
            *("_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention"),
            "_scaled_dot_product_cudnn_attention",
        ),
        attention,
    ),
}
"""The gains of operators, by name without the sign that it works in place."""
