"""This thread's stack of dispatch modes: a mode is taken off it while nothing is to be seen, and put back where it stood.

A mode that is off costs nothing. Modes that the program has entered above it stay in their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["put_back", "take_off"]

_depth = torch._C._len_torch_dispatch_stack
_pop = torch._C._pop_torch_dispatch_stack
_push = torch._C._push_on_torch_dispatch_stack


def take_off(mode: TorchDispatchMode) -> int | None:
    """Take `mode` off. Returns how many modes are below it, for `put_back`; None if it is not on this thread's stack."""
    above: list[TorchDispatchMode] = []
    below = None
    while _depth():
        top = _pop(None)
        if top is mode:
            below = _depth()
            break
        above.append(top)
    for other in reversed(above):
        _push(other)
    return below


def put_back(mode: TorchDispatchMode, below: int) -> None:
    """Put `mode` on top of the `below` lowest modes; what the program has entered since stays above it."""
    above = [_pop(None) for _ in range(_depth() - below)]
    for other in (mode, *reversed(above)):
        _push(other)
