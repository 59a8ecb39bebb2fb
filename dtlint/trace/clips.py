"""Tells listeners that torch's functions are about to clip gradients, which are those of the backward until then.

The functions are replaced as long as anybody listens.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch
from torch import Tensor, nn

from dtlint.trace.patches import Patches

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["Clip", "Listener", "listen", "stop_listening"]

NAMES = {"clip_grad_norm_": "max_norm", "clip_grad_value_": "clip_value"}
"""Of `torch.nn.utils`, each with its limit."""


@dataclass(frozen=True, slots=True)
class Clip:
    """One call."""

    parameters: list[Tensor]
    limit: Any
    """The number or tensor that the norm or the values are clipped to; None if it was not seen."""
    by_value: bool
    frame: FrameType
    """Of the caller."""


Afterwards = Callable[[Any], None]
"""Takes what the function returned: the norm, or None of clip_grad_value_."""


class Listener(Protocol):
    """Hears of it."""

    def about_to_clip(self, clip: Clip) -> Afterwards | None:
        """Gradients are to be clipped; what is returned is called once they are."""


class _Clips:
    listeners: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()
    patches: ClassVar[Patches] = Patches()


def listen(listener: Listener) -> None:
    """Tell `listener` from now on."""
    if not _Clips.listeners:
        _Clips.patches.undo()
        for owner in (nn.utils, nn.utils.clip_grad):
            for name in NAMES:
                _Clips.patches.set(owner, name, _telling(getattr(owner, name)))
    _Clips.listeners.add(listener)


def stop_listening(listener: Listener) -> None:
    """Tell it no more."""
    _Clips.listeners.discard(listener)
    if not _Clips.listeners:
        _Clips.patches.undo()


def _telling(clip: Callable[..., Any]) -> Callable[..., Any]:
    limit = NAMES[clip.__name__]

    @functools.wraps(clip)
    def clipped(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return clip(parameters, *args, **kwargs)
        if not isinstance(parameters, Tensor):
            parameters = [*parameters]
        listed = [parameters] if isinstance(parameters, Tensor) else parameters
        of = Clip(listed, args[0] if args else kwargs.get(limit), limit == "clip_value", sys._getframe(1))
        after = [listener.about_to_clip(of) for listener in [*_Clips.listeners]]
        result = clip(parameters, *args, **kwargs)
        for done in filter(None, after):
            done(result)
        return result

    return clipped
