"""What a dtype keeps of a number: rounding to nearest, ties to even, as IEEE 754-2019 has it."""

from __future__ import annotations

import math

from dtlint.dtypes.dtype import DTYPES, Category

__all__ = ["rounded"]


def rounded(number: float, dtype: str) -> float:
    """The number of a floating dtype next to another; infinite beyond its largest. Integer dtypes cut the fraction off."""
    info = DTYPES[dtype]
    if number == 0 or math.isinf(number) or math.isnan(number):
        return number
    if info.category is Category.INTEGER:
        return float(math.trunc(number))
    if not info.eps:
        return number
    exponent = math.frexp(number)[1] - 1
    gap = max(math.ldexp(info.eps, max(exponent, -1074)), info.smallest)
    kept = round(number / gap) * gap if gap else number
    return math.copysign(math.inf, number) if abs(kept) > info.max else kept
