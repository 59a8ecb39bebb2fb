"""Where judgements wait on their device: each result is reduced to (min, max) in a preallocated slot.

All slots of a device are read in one transfer, once a step: nothing synchronises as operators run.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from dtlint.trace.transfer import fetch

__all__ = ["SLOTS", "Range", "Slots"]

SLOTS = 4096
"""Results judged between two flushes, per dtype and device: 32 KiB of float32."""

ROOM = 512
"""Slots made at once: a slot is a tensor of its own, and most programs need few."""


class Range(NamedTuple):
    """The values of a tensor: smallest and largest."""

    low: float
    high: float

    @property
    def finite(self) -> bool:
        """Is there neither an inf nor a NaN?"""
        return self.low > -math.inf and self.high < math.inf

    @property
    def nan(self) -> bool:
        """Is there a NaN? aminmax hands it on."""
        return self.low != self.low


class Rounded:
    """What slots hold, rounded to a narrower dtype: a cast of what was judged has that range, as rounding keeps order."""

    __slots__ = ("highs", "lows")

    def __init__(self) -> None:
        self.lows: list[float] = []
        self.highs: list[float] = []


class Slots:
    """(min, max) pairs on one device, of one dtype."""

    __slots__ = ("_rounded", "both", "captures", "free", "highs", "lows", "nowhere", "pairs", "room")

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.nowhere = device.type == "meta"
        """Are there no values to judge?"""
        self.captures = device.type == "cuda"
        """May operators be recorded here, to be replayed unseen?"""
        with torch.inference_mode(False):
            self.both = torch.zeros(2, SLOTS, dtype=dtype, device=device)
        self.pairs: list[tuple[Tensor, Tensor]] = []
        """By number of a slot: where its min and its max go."""
        self.room = 0
        self.lows: list[float] = []
        self.highs: list[float] = []
        """What the slots held at the last `read`: bare numbers, since a tuple for each would wake the collector."""
        self._rounded: dict[torch.dtype, Rounded] = {}
        self.grow()

    def rounded(self, dtype: torch.dtype) -> Rounded:
        """The same slots, of which `read` will also tell what their values are in `dtype`."""
        found = self._rounded.get(dtype)
        if found is None:
            found = self._rounded[dtype] = Rounded()
        return found

    def grow(self) -> None:
        """Make more slots."""
        with torch.inference_mode(False):
            low, high = self.both[:, self.room : self.room + ROOM].unbind()
            self.pairs += zip(low.unbind(), high.unbind(), strict=True)
        taken, self.room = self.room, len(self.pairs)
        self.free = enumerate(self.pairs[taken:], taken)
        """The slots that nothing waits in, with their numbers."""

    def read(self) -> None:
        """Bring the values here, in one transfer, and free the slots."""
        used = next(self.free, (self.room, None))[0]
        self.free = enumerate(self.pairs)
        if used:
            here = fetch(self.both[:, :used])
            self.lows, self.highs = here.tolist()
            for dtype, rounded in self._rounded.items():
                rounded.lows, rounded.highs = here.to(dtype).tolist()
