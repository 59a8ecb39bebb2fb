"""Which dtypes and ranks the tensors of a call are asked in: all together, in pairs, in triples, one beside the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from dtlint.dtypes.dtype import ARITHMETIC
from dtlint.dtypes.pattern import ALONE

__all__ = ["EXOTIC", "FOUR", "MAIN", "SIX", "Choice", "dtype_choices"]

MAIN = ARITHMETIC

SIX = ("bool", "int64", "float16", "bfloat16", "float32", "float64")

FOUR = ("int64", "float16", "float32", "float64")

EXOTIC = tuple(sorted(ALONE))

Choice = Sequence[tuple[str, "int | None"]]
"""For each group of tensors a dtype, and a rank: 1 for 0-dim, None for as it is."""


def dtype_choices(own: Sequence[str], base: str, full: bool) -> Iterator[tuple[tuple[str, int | None], ...]]:
    """The dtypes and ranks to ask of a call's tensors. `own` is the dtype of each in the sample, `base` the one that the
    sample was made for: those of another dtype are indices and masks. A rank of None leaves the tensor as it is."""
    count = len(own)

    def alike(dtype: str) -> list[str]:
        return [dtype if mine == base else mine for mine in own]

    for dtype in (*MAIN, *EXOTIC):
        yield tuple((one, None) for one in alike(dtype))
    if full:
        for dtype in MAIN:
            yield tuple((one, 1) for one in alike(dtype))
    if count == 2:
        for pair in product(MAIN if full else SIX, repeat=2):
            for ranks in product((None, 1), repeat=2) if full else ((None, None),):
                yield tuple(zip(pair, ranks, strict=True))
    elif count == 3:
        for triple in product((*SIX, "complex64") if full else ("int64", "float16", "float32"), repeat=3):
            yield tuple((one, None) for one in triple)
        if full:
            for place, triple in product(range(3), product(FOUR, repeat=3)):
                yield tuple((one, 1 if number == place else None) for number, one in enumerate(triple))
            for place, dtype, rest in product(range(3), MAIN, ("float32", "float16")):
                yield tuple((dtype if number == place else one, None) for number, one in enumerate(alike(rest)))
    elif 3 < count < 9:
        for place, dtype, rest in product(
            range(count), MAIN if full else FOUR, ("float32", "float16", "bfloat16", "float64")
        ):
            yield tuple((dtype if number == place else one, None) for number, one in enumerate(alike(rest)))
        for left, right in product(range(count), repeat=2):
            for a, b, rest in product(FOUR, FOUR, ("float32", "float16")) if left < right and full else ():
                yield tuple((a if n == left else b if n == right else one, None) for n, one in enumerate(alike(rest)))
