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

__all__ = ["Precision", "loss_and_scale", "precision_of", "without_scale"]


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


def loss_and_scale(lines: Sequence[Line], line: Line) -> tuple[Line, Line] | None:
    """What `scaler.scale(loss)` multiplies, if that is what a line of these is; the scale alone is made of nothing."""
    if line.op != "mul" or line.shape != () or line.place is None or "scale(" not in line.place.expression:
        return None
    of = [lines[source] for source in line.sources if lines[source].shape == ()]
    computed = [bool(one.sources) for one in of]
    if sorted(computed) != [False, True]:
        return None
    return of[computed.index(True)], of[computed.index(False)]


def without_scale(
    first: Sequence[Line], second: Sequence[Line], aligned: Aligned, scaled: tuple[bool, bool] = (True, True)
) -> None:
    """Where a GradScaler scaled the loss of one of two runs, or of both, take the scale out of the second run's gradients.

    What a backward computes of forward values alone, as `x ** 1` for the square of `x`, was never scaled: a result is taken for
    a gradient if that brings its norm nearer to the other run's.
    """
    scales = [_scale(lines) if its else 1.0 for lines, its in zip((first, second), scaled, strict=True)]
    factor = scales[0] / scales[1] if scales[0] and scales[1] else None
    for other, one in sorted(aligned.pairs.items()):
        line, its = second[other], first[one]
        if not line.backward or line.sketch is None or its.sketch is None:
            continue
        if factor is None:  # it was not seen: then it is the power of 2 that the first gradient shows
            if not (line.sketch.norm and its.sketch.norm and line.sketch.finite and its.sketch.finite):
                continue
            factor = 2.0 ** -round(math.log2(line.sketch.norm / its.sketch.norm))
        if _is_nearer(line.sketch.norm * factor, line.sketch.norm, its.sketch.norm):
            line.sketch = line.sketch.scaled(factor)


def _scale(lines: Sequence[Line]) -> float | None:
    """The scale of a step, where it is finite and was seen."""
    for line in lines:
        found = loss_and_scale(lines, line)
        if found is not None and found[1].sketch is not None and 0 < found[1].sketch.high < math.inf:
            return found[1].sketch.high
    return None


def _is_nearer(scaled: float, given: float, other: float) -> bool:
    """Is the scaled norm at least as near to that of the other run as the given one, by their ratios?"""
    if not all(math.isfinite(norm) and norm > 0 for norm in (scaled, given, other)):
        return True
    return abs(math.log2(scaled / other)) <= abs(math.log2(given / other))
