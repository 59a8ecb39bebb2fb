"""Numbers of a sampled step that wait on their devices, and come to Python by one transfer for each device."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dtlint.trace.site import PLAIN
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Key", "Waiting", "own_work", "readable", "some_of"]

Key = tuple[str, str]
"""What a number is, and of which module or parameter."""

VALUES = 1 << 14
"""Values of a tensor from which shares are estimated, evenly spaced."""


class Waiting:
    """Numbers of 0 dimensions, under their keys."""

    def __init__(self) -> None:
        self._on: dict[torch.device, dict[Key, Tensor]] = {}

    def largest(self, key: Key, value: Tensor) -> None:
        """Of all that is given under this key, the largest is told; NaN is larger than all."""
        held = self._on.setdefault(value.device, {})
        value = _wide(value)
        held[key] = torch.maximum(held[key], value) if key in held else value

    def sum(self, key: Key, value: Tensor) -> None:
        """What is given under this key is added up."""
        held = self._on.setdefault(value.device, {})
        value = _wide(value)
        held[key] = held[key] + value if key in held else value

    def read(self) -> dict[Key, list[float]]:
        """All of them, with one number for each device; they wait no longer."""
        waiting, self._on = self._on, {}
        found: dict[Key, list[float]] = {}
        for held in waiting.values():
            for key, value in zip(held, fetch(torch.stack([*held.values()])).tolist(), strict=True):
                found.setdefault(key, []).append(value)
        return found


def _wide(x: Tensor) -> Tensor:
    wide = torch.float32 if x.device.type == "mps" else torch.float64  # MPS has no float64
    return x.detach().reshape(()).to(wide, copy=True)


@contextmanager
def own_work() -> Iterator[None]:
    """Operators in here belong to no graph, and neither a tracer nor autocast sees them."""
    with torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast():
        yield


def readable(x: object) -> bool:
    """Is it a tensor of real floating numbers whose values can be looked at now?"""
    return (
        type(x) in PLAIN
        and isinstance(x, Tensor)
        and x.dtype.is_floating_point
        and x.layout is torch.strided
        and not x.is_meta
        and x.numel() > 0
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
        and not (x.is_cuda and torch.cuda.is_current_stream_capturing())
    )


def some_of(x: Tensor) -> Tensor:
    """Some of its magnitudes, evenly spaced, as float32 or wider."""
    flat = x.detach().reshape(-1)
    some = flat[:: max(flat.numel() // VALUES, 1)][:VALUES]
    return (some if some.dtype is torch.float64 else some.float()).abs()
