"""In which precision two runs were, and by which scale a gradient was kept in range: what is meant to differ."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.compare.roundoff import MIXING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.compare.align import Aligned
    from dtlint.compare.run import Line

__all__ = ["Precision", "precision_of", "without_scale"]


@dataclass(frozen=True, slots=True)
class Precision:
    """The dtypes in which most products of matrices were; where there are none, most results."""

    one: str
    other: str

    @property
    def same(self) -> bool:
        """Were both runs meant to round alike? Then one that rounds more at some operator is no honest rounding."""
        return self.one == self.other


def precision_of(first: Sequence[Line], second: Sequence[Line], aligned: Aligned) -> Precision:
    """The dtypes of most pairs of products."""
    pairs = [(first[one], second[other]) for other, one in aligned.pairs.items() if second[other].floating]
    products = [(one, other) for one, other in pairs if other.op in MIXING]
    counts = Counter((one.dtype, other.dtype) for one, other in products or pairs)
    return Precision(*(counts.most_common(1)[0][0] if counts else ("float32", "float32")))


def without_scale(first: Sequence[Line], second: Sequence[Line], aligned: Aligned) -> None:
    """Where a GradScaler scaled the loss, take the scale out of the second run's gradients: a power of 2, which rounds nothing.

    What a backward computes of forward values alone, as `x ** 1` for the square of `x`, was never scaled: a result is taken for
    a gradient if that brings its norm nearer to the other run's.
    """
    factor = None
    for other, one in sorted(aligned.pairs.items()):
        line, its = second[other], first[one]
        if not line.backward or line.sketch is None or its.sketch is None:
            continue
        if factor is None:
            if not (line.sketch.norm and its.sketch.norm and line.sketch.finite and its.sketch.finite):
                continue
            factor = 2.0 ** -round(math.log2(line.sketch.norm / its.sketch.norm))
        if _is_nearer(line.sketch.norm * factor, line.sketch.norm, its.sketch.norm):
            line.sketch = line.sketch.scaled(factor)


def _is_nearer(scaled: float, given: float, other: float) -> bool:
    """Is the scaled norm at least as near to that of the other run as the given one, by their ratios?"""
    if not all(math.isfinite(norm) and norm > 0 for norm in (scaled, given, other)):
        return True
    return abs(math.log2(scaled / other)) <= abs(math.log2(given / other))
