"""Ranges of numbers: an interval, and whether zero, an infinity or NaN may be in it.

The arithmetic is exact on the real line; what a dtype makes of it (overflow, underflow, rounding) is for who knows the
dtype to say: `Range.attains`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["ANY", "LANDMARKS", "Range", "point"]

_INF = math.inf
LANDMARKS = (0.0, 1.0, 57344.0, 65504.0, 3.3895313892515355e38, 3.4028234663852886e38)
"""Where widening stops on its way to infinity: 0, 1 and the largest numbers of float8_e5m2, float16, bfloat16, float32."""


@dataclass(unsafe_hash=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included.

    Attributes:
        low, high: the bounds; infinite where nothing is known.
        zero: may it be 0?
        inf: may it be an infinity?
        nan: may it be NaN?
    """

    low: float = -_INF
    high: float = _INF
    zero: bool = True
    inf: bool = True
    nan: bool = True

    @property
    def bounded(self) -> bool:
        """Are both bounds known?"""
        return self.low > -_INF and self.high < _INF

    @property
    def magnitude(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def join(self, other: Range) -> Range:
        """The least range that holds both."""
        if self is other or self == other:
            return self
        return Range(
            min(self.low, other.low),
            max(self.high, other.high),
            self.zero or other.zero,
            self.inf or other.inf,
            self.nan or other.nan,
        )

    def widen(self, grown: Range) -> Range:
        """A range above both, from a chain of finite length: bounds that still move jump to the next landmark."""
        joined = self.join(grown)
        if joined == self:
            return self
        low = self.low if joined.low >= self.low else -_landmark(-joined.low)
        high = self.high if joined.high <= self.high else _landmark(joined.high)
        return Range(low, high, joined.zero or low <= 0 <= high, joined.inf, joined.nan)

    def negate(self) -> Range:
        """Minus this."""
        return Range(-self.high, -self.low, self.zero, self.inf, self.nan)

    def add(self, other: Range) -> Range:
        """The sum. An infinity of each sign gives NaN."""
        low, high = _sum(self.low, other.low, -_INF), _sum(self.high, other.high, _INF)
        inf = self.inf or other.inf
        return Range(low, high, low <= 0 <= high, inf, self.nan or other.nan or (self.inf and other.inf))

    def subtract(self, other: Range) -> Range:
        """The difference of two values that have nothing to do with each other."""
        return self.add(other.negate())

    def multiply(self, other: Range) -> Range:
        """The product. Zero times infinity gives NaN."""
        corners = [_product(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        nan = self.nan or other.nan or (self.inf and other.zero) or (self.zero and other.inf)
        return Range(min(corners), max(corners), self.zero or other.zero, self.inf or other.inf, nan)

    def divide(self, other: Range) -> Range:
        """The quotient. What may be zero in the divisor may give infinities and, below a zero, NaN."""
        nan = self.nan or other.nan or (self.inf and other.inf) or (self.zero and other.zero)
        if other.zero or other.low <= 0 <= other.high:
            positive = self.low >= 0 and other.low >= 0
            return Range(0.0 if positive else -_INF, _INF, self.zero or other.inf, self.inf or other.zero, nan)
        corners = [_quotient(a, b) for a in (self.low, self.high) for b in (other.low, other.high)]
        return Range(min(corners), max(corners), self.zero or other.inf, self.inf, nan)

    def monotone(self, function: object, *, zero: bool = False) -> Range:
        """An increasing function of this, `math.exp` for one; where it overflows it is infinite.

        Args:
            function: from one float to another; called with finite bounds and with infinite ones.
            zero: may the result be 0 though its bounds do not tell?
        """
        low, high = _applied(function, self.low), _applied(function, self.high)
        return Range(low, high, zero or low < 0 < high or 0.0 in (low, high), self.inf and high == _INF, self.nan)

    def power(self, exponent: float) -> Range:
        """This to a constant power."""
        if not math.isfinite(exponent):
            return ANY
        if exponent == 2:
            return self.square()
        if exponent == 0.5:
            return Range(0.0, _root(self.high), self.zero, self.inf, self.nan or self.low < 0)
        if exponent < 0:
            return point(1.0).divide(self.power(-exponent))
        if exponent == 0:
            return point(1.0)
        base, whole = self, exponent.is_integer()
        if whole and exponent % 2 == 0:
            base = self.absolute()
        elif not whole and self.low < 0:
            return Range(0.0, _power(max(self.high, 0.0), exponent), self.zero, self.inf, True)
        return Range(_power(base.low, exponent), _power(base.high, exponent), self.zero, self.inf, self.nan)

    def square(self) -> Range:
        """This times itself: never negative."""
        top = _product(self.magnitude, self.magnitude)
        least = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high)) ** 2
        return Range(least, top, self.zero, self.inf, self.nan)

    def absolute(self) -> Range:
        """Its absolute value."""
        least = 0.0 if self.low <= 0 <= self.high else min(abs(self.low), abs(self.high))
        return Range(least, self.magnitude, self.zero, self.inf, self.nan)

    def clamp(self, low: float, high: float) -> Range:
        """What `clamp` leaves: NaN stays."""
        least, most = max(self.low, low), min(self.high, high)
        least, most = min(least, high), max(most, low)
        return Range(least, most, least <= 0 <= most, self.inf and (low == -_INF or high == _INF), self.nan)


ANY = Range()
"""Nothing is known."""


def point(value: float) -> Range:
    """One number."""
    number = float(value)
    if math.isnan(number):
        return Range(-_INF, _INF, False, False, True)
    return Range(number, number, number == 0, math.isinf(number), False)


def _landmark(bound: float) -> float:
    """The next landmark above an upper bound."""
    if bound <= 0:
        return 0.0 if bound > -1 else -1.0
    return next((mark for mark in LANDMARKS if bound <= mark), _INF)


def _sum(left: float, right: float, otherwise: float) -> float:
    total = left + right
    return otherwise if math.isnan(total) else total


def _product(left: float, right: float) -> float:
    return 0.0 if left == 0 or right == 0 else left * right


def _quotient(left: float, right: float) -> float:
    if math.isinf(right):
        return 0.0 if not math.isinf(left) else math.copysign(_INF, left) * math.copysign(1.0, right)
    try:
        return left / right
    except OverflowError:
        return math.copysign(_INF, left) * math.copysign(1.0, right)


def _applied(function: object, bound: float) -> float:
    try:
        return float(function(bound))  # type: ignore[operator]
    except OverflowError:
        return _INF
    except ValueError:
        return -_INF


def _power(base: float, exponent: float) -> float:
    try:
        return float(base**exponent)
    except (OverflowError, ZeroDivisionError):
        return math.copysign(_INF, base)


def _root(value: float) -> float:
    return math.sqrt(value) if 0 <= value < _INF else (_INF if value > 0 else 0.0)
