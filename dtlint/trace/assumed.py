"""What float16 would have made of a run in wider dtypes: `--assume float16`.

What would overflow shows in the ranges that every flow keeps; what would vanish is counted here, on sampled calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dtlint.trace.flow import Flow
from dtlint.trace.lost import due

if TYPE_CHECKING:
    from torch import Tensor

    from dtlint.trace.signature import Signature

__all__ = ["Assumed"]

WIDER = frozenset((torch.bfloat16, torch.float32, torch.float64))
"""dtypes that hold numbers which are 0 in float16."""


class Assumed(Flow):
    """A flow that also asks of each computed result how much of it would be 0 in float16."""

    def watch(self, signature: Signature, sources: list[Tensor], out: Tensor) -> None:
        """As any flow does, and launch the counting on calls that are sampled."""
        super().watch(signature, sources, out)
        if out.dtype in WIDER and not signature.carries and due(signature.count):
            self.lost.sample(signature, out, out.to(torch.float16))
            if signature.backward:
                self.lost.sample_octaves(signature, out)
