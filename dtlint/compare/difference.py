"""How far two tensors are apart, by their sketches.

The sketches hold PROJECTIONS sums of the same values under the same signs. The square of the difference of two such sums
has the squared norm of the tensors' difference for its mean, so that the mean of them estimates it with a relative
standard error of at most sqrt(2 / PROJECTIONS); the norm itself is within a factor of 2 but once in some 10,000 tensors
(Johnson and Lindenstrauss; with signs: Achlioptas, Database-friendly random projections, 2003). Of a tensor that has more
than SAMPLE values the sample is meant: a difference in fewer than one in `numel / SAMPLE` values may not show.
Sketches are stored in float32: differences below FLOOR are not told from none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.compare.run import Sketch

__all__ = ["FLOOR", "relative"]

FLOOR = 4e-7
"""A relative difference that float32 sums of 512 values may show of tensors that are equal."""


def relative(one: Sketch, other: Sketch) -> float:
    """The norm of the difference over the larger norm: 0 of equal tensors, about sqrt(2) of unrelated ones.

    Infinite where only one of them is finite.
    """
    if one.finite != other.finite:
        return math.inf
    largest = max(one.norm, other.norm)
    if not largest:
        return 0.0
    squares = sum((x - y) ** 2 for x, y in zip(one.sums, other.sums, strict=True))
    return math.sqrt(squares / len(one.sums)) / largest
