"""How many values a narrower dtype turns into 0, on a sample of the calls.

The definition is TransformerEngine's: 1 - nonzero after / nonzero before. Counted on the device, read at the flush.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dtlint.trace.octaves import MATTERS, OCTAVES, SMALLEST, add_up
from dtlint.trace.transfer import Counts

if TYPE_CHECKING:
    from torch import Tensor

    from dtlint.trace.signature import Signature

__all__ = ["Lost", "due", "octaves"]

EACH = 64
"""Each so many-th call is sampled, and before it those whose number is a power of 2: an early loss is seen at once."""


def due(count: int) -> bool:
    """Is the `count`-th call, from 1, one to sample?"""
    return not (count & (count - 1) if count < EACH else count % EACH)


def octaves(x: Tensor, beside: Tensor | None = None) -> list[Tensor]:
    """How many values of `x` matter, and how many of these lie in each octave below float16's smallest: see `octaves`.

    They matter beside the largest of `x`, and of another tensor if there is one. All are 0-dim tensors.
    """
    logarithms = x.detach().abs().double().log2()  # in double, so that float32's smallest have one too
    largest = logarithms.max() if x.numel() else logarithms.sum()
    if beside is not None:
        largest = torch.maximum(largest, beside.detach().abs().max().double().log2())
    matter = (logarithms >= largest - MATTERS) & logarithms.isfinite()
    at = (SMALLEST - logarithms).ceil().clamp(0, OCTAVES + 1)  # 0 of those that float16 holds
    counts = torch.histc(at.where(matter, -1.0), OCTAVES + 2, -0.5, OCTAVES + 1.5)
    return [torch.count_nonzero(matter), *counts[1:].long().unbind()]


class Lost:
    """Counts of values before and after, waiting on their device for the flush."""

    def __init__(self) -> None:
        self._counts: Counts[Signature] = Counts()
        self._octaves: Counts[Signature] = Counts()

    def sample(self, signature: Signature, before: Tensor, after: Tensor) -> None:
        """Launch the counting of one call: `after` is `before` in the narrower dtype."""
        if before.is_meta or (before.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        self._counts.add(signature, torch.count_nonzero(before), torch.count_nonzero(after))

    def sample_octaves(self, signature: Signature, x: Tensor) -> None:
        """Launch the counting by octave of what float16 loses of a gradient."""
        if not (x.is_meta or (x.is_cuda and torch.cuda.is_current_stream_capturing())):
            self._octaves.add(signature, *octaves(x))

    def settle(self) -> None:
        """Read what is waiting."""
        for signature, (matter, *tiny) in self._octaves.read():
            signature.matter += matter
            signature.tiny = add_up(signature.tiny, tiny)
        for signature, (before, after) in self._counts.read():
            signature.sampled += before
            signature.lost += max(before - after, 0)
