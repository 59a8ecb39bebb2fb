"""How small the values of gradients are that float16 turns into 0: counted by octave, to be judged at any loss scale.

A loss scale of 2**k moves every gradient up by k octaves. Only values that matter beside the largest of the same tensor
count: a softmax that is sure of itself gives gradients of any smallness.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MATTERS", "OCTAVES", "SMALLEST", "add_up", "lost_at"]

SMALLEST = -25
"""What is below 2**SMALLEST becomes 0 in float16."""

OCTAVES = 24
"""Octaves below that which are told apart; what is smaller still is lost at any scale."""

MATTERS = 20
"""A value matters if it is at least 2**-MATTERS, a millionth, of the largest of its tensor."""


def lost_at(scale: int, tiny: Sequence[int]) -> int:
    """How many values still become 0 when they are multiplied by 2**scale.

    `tiny[i]` of them lie between 2**(SMALLEST - i - 1) and 2**(SMALLEST - i); the last number is of all smaller ones.
    """
    return sum(tiny[scale:])


def add_up(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """Counts by octave of two samples; an empty list is none."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0)]
