"""A plain tensor for calls that are written here: no value in it is special to any op."""

from __future__ import annotations

import torch

__all__ = ["ramp"]


def ramp(*shape: int) -> torch.Tensor:
    """Twelve numbers from 0.25 to 0.75 in float32, where every function of torch is defined; three rows of four unless
    told otherwise."""
    return torch.linspace(0.25, 0.75, 12).reshape(shape or (3, 4))
