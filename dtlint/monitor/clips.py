"""Tells monitors that torch's functions are about to clip gradients, which are those of the backward until then.

The functions are replaced as long as any monitor listens.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import Tensor, nn

from dtlint.trace.patches import Patches

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Listener", "listen", "stop_listening"]

NAMES = ("clip_grad_norm_", "clip_grad_value_")
"""Of `torch.nn.utils`."""


class Listener(Protocol):
    """Hears of it."""

    def about_to_clip(self, parameters: list[Tensor]) -> None:
        """The gradients of these are to be clipped."""


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
    @functools.wraps(clip)
    def clipped(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(parameters, Tensor):
            parameters = [*parameters]
        for listener in [*_Clips.listeners]:
            listener.about_to_clip([parameters] if isinstance(parameters, Tensor) else parameters)
        return clip(parameters, *args, **kwargs)

    return clipped
