"""How many values a narrower dtype turns into 0, on a sample of the calls.

The definition is TransformerEngine's: 1 - nonzero after / nonzero before. Counted on the device, read at the flush.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dtlint.trace.transfer import Counts

if TYPE_CHECKING:
    from torch import Tensor

    from dtlint.trace.signature import Signature

__all__ = ["Lost", "due"]

EACH = 64
"""Each so many-th call is sampled, and before it those whose number is a power of 2: an early loss is seen at once."""


def due(count: int) -> bool:
    """Is the `count`-th call, from 1, one to sample?"""
    return not (count & (count - 1) if count < EACH else count % EACH)


class Lost:
    """Counts of values before and after, waiting on their device for the flush."""

    def __init__(self) -> None:
        self._counts: Counts[Signature] = Counts()

    def sample(self, signature: Signature, before: Tensor, after: Tensor) -> None:
        """Launch the counting of one call: `after` is `before` in the narrower dtype."""
        if before.is_meta or (before.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        self._counts.add(signature, torch.count_nonzero(before), torch.count_nonzero(after))

    def settle(self) -> None:
        """Read what is waiting."""
        for signature, (before, after) in self._counts.read():
            signature.sampled += before
            signature.lost += max(before - after, 0)
