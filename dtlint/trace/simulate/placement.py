"""Where a tensor would be: a mark on its storage, which its views, `detach()` and `.data` share.

The tracer's own code is told the truth, so that it allocates and reads where the values really are.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

__all__ = ["HOME", "MARK", "PINNED", "asked_by_tracer", "is_placed", "place", "placed", "unplace"]

HOME = torch.device("cpu")
"""Where everything really is."""

MARK = "_dtlint_device"
PINNED = "_dtlint_pinned"

OURS = str(Path(__file__).parents[1]) + os.sep
MINE = str(Path(__file__).parent) + os.sep


def asked_by_tracer(depth: int = 2) -> bool:
    """Is the caller's caller, or the frame at `depth`, the tracer itself?"""
    file = sys._getframe(depth).f_code.co_filename
    return file.startswith(OURS) and not file.startswith(MINE)


def placed(x: Tensor) -> torch.device | None:
    """The simulated device that a tensor is on; None on the CPU, and for tensors of any other real device."""
    try:
        device: torch.device | None = _storage(x).__dict__.get(MARK)
    except (NotImplementedError, RuntimeError):  # sparse, nested and functorch's tensors have no storage
        return None
    return device


def is_placed(x: Tensor) -> bool:
    """Is it on the simulated device, as far as can be told? A tensor without a storage is where the program computes."""
    try:
        return MARK in _storage(x).__dict__
    except (NotImplementedError, RuntimeError):
        return True


def place(value: Any, device: torch.device) -> Any:
    """Put a tensor, or all in nested lists, on the simulated device; returns it."""
    if isinstance(value, Tensor):
        with contextlib.suppress(NotImplementedError, RuntimeError):
            setattr(_storage(value), MARK, device)
    elif isinstance(value, (list, tuple)):
        for item in value:
            place(item, device)
    return value


def unplace(x: Tensor) -> Tensor:
    """Put a tensor back on the CPU; returns it."""
    _storage(x).__dict__.pop(MARK, None)
    return x


def _storage(x: Tensor) -> torch.UntypedStorage:
    """The storage of a tensor; of the parameter of a lazy layer too, which refuses nearly everything until it has a shape."""
    try:
        return x.untyped_storage()
    except ValueError:
        with torch._C.DisableTorchFunctionSubclass():
            return x.untyped_storage()
