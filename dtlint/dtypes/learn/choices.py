"""Which dtypes and ranks the tensors of a call are asked in: all together, in pairs, in triples, one beside the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from dtlint.dtypes.dtype import ARITHMETIC
from dtlint.dtypes.form import SCALAR
from dtlint.dtypes.pattern import ALONE

__all__ = ["EXOTIC", "FEW", "USUAL", "Choice", "alike", "dtype_choices"]

USUAL = ("bool", "int64", "float16", "bfloat16", "float32", "float64")
"""One dtype of each kind that programs mix, and every floating one: asked in pairs and triples."""

FEW = ("int64", "float16", "float32", "float64")
"""What is asked where all dtypes, or the usual ones, would be too many questions."""

EXOTIC = tuple(sorted(ALONE))
"""Dtypes that are asked with their like only."""

Choice = Sequence[tuple[str, "int | None"]]
"""For each group of tensors a dtype, and a rank: SCALAR, or None for as it is."""


def alike(own: Sequence[str], base: str, dtype: str, rank: int | None = None) -> Choice:
    """One dtype for all tensors of the call's own, `base`; those of another dtype are indices and masks, and keep theirs.

    Args:
        own: the dtype of each group of tensors.
        base: the dtype that the call was made for.
        dtype: the dtype to give them.
        rank: the rank to give to all.
    """
    return [(dtype if mine == base else mine, rank) for mine in own]


def dtype_choices(own: Sequence[str], base: str, full: bool) -> Iterator[Choice]:
    """The dtypes and ranks to ask of a call's tensors, the plainest first; `own` and `base` are those of `alike`."""
    for dtype in (*ARITHMETIC, *EXOTIC):
        yield alike(own, base, dtype)
    for dtype in ARITHMETIC if full else ():
        yield alike(own, base, dtype, SCALAR)
    if len(own) == 2:
        yield from _pairs(full)
    elif len(own) == 3:
        yield from _triples(own, base, full)
    elif 3 < len(own) < 9:
        yield from _one_or_two_beside_the_rest(own, base, full)


def _pairs(full: bool) -> Iterator[Choice]:
    for pair in product(ARITHMETIC if full else USUAL, repeat=2):
        for ranks in product((None, SCALAR), repeat=2) if full else ((None, None),):
            yield list(zip(pair, ranks, strict=True))


def _triples(own: Sequence[str], base: str, full: bool) -> Iterator[Choice]:
    for triple in product((*USUAL, "complex64") if full else ("int64", "float16", "float32"), repeat=3):
        yield [(one, None) for one in triple]
    if full:
        for place, triple in product(range(3), product(FEW, repeat=3)):
            yield _with({place: (triple[place], SCALAR)}, [(one, None) for one in triple])
        for place, dtype, rest in product(range(3), ARITHMETIC, ("float32", "float16")):
            yield _with({place: (dtype, None)}, alike(own, base, rest))


def _one_or_two_beside_the_rest(own: Sequence[str], base: str, full: bool) -> Iterator[Choice]:
    rests = ("float32", "float16", "bfloat16", "float64")
    for place, dtype, rest in product(range(len(own)), ARITHMETIC if full else FEW, rests):
        yield _with({place: (dtype, None)}, alike(own, base, rest))
    for left, right in combinations(range(len(own)), 2) if full else ():
        for a, b, rest in product(FEW, FEW, ("float32", "float16")):
            yield _with({left: (a, None), right: (b, None)}, alike(own, base, rest))


def _with(others: Mapping[int, tuple[str, int | None]], choice: Choice) -> Choice:
    """The choice with others at some places."""
    return [others.get(place, one) for place, one in enumerate(choice)]
