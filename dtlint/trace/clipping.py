"""Gradients that were clipped while they still had the GradScaler's scale.

That is known once the scaler divides the very gradients by its scale that were clipped before: nothing is guessed.
"""

from __future__ import annotations

import math
import weakref
from dataclasses import dataclass, replace
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.clips import listen, stop_listening
from dtlint.trace.site import PLAIN
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from dtlint.trace.clips import Afterwards, Clip
    from dtlint.trace.mode import Tracer
    from dtlint.trace.site import Site

__all__ = ["Clipped", "Clipping"]

MEANT = 1 / 64
"""A limit of at least so much of the scale may be made for gradients that have it, as `max_norm * scaler.get_scale()`."""

SAME = 1e-3
"""Limits follow the scale where the shares of it that they are differ by no more than this, relatively."""


@dataclass(slots=True)
class Clipped:
    """Calls at one place that clipped gradients with their scale."""

    site: Site
    by_value: bool
    step: int
    """Of the first call, counted from 0; so are the next three."""
    size: float
    """The norm, or the largest magnitude, of the gradients as they were."""
    limit: float
    scale: float
    times: int = 0


class _Place:
    """What one line of the program clipped."""

    def __init__(self) -> None:
        self._sure: Clipped | None = None
        """The calls whose limit is too small to be made for the scale."""
        self._doubtful: Clipped | None = None
        """The others."""
        self._limits: dict[float, float] = {}
        """The first limit with each scale."""
        self._constant = self._follows = False

    def limited(self, limit: float, scale: float) -> None:
        """A call had this limit while the gradients had this scale: is it that of other scales, or does it follow them?"""
        for other, before in self._limits.items():
            if other != scale:
                self._constant |= limit == before
                self._follows |= limit != before and math.isclose(limit / scale, before / other, rel_tol=SAME)
        self._limits.setdefault(scale, limit)

    def clipped(self, new: Clipped) -> None:
        """A call did clip."""
        if new.limit / new.scale < MEANT:
            self._sure = _with(self._sure, new)
        else:
            self._doubtful = _with(self._doubtful, new)

    @property
    def told(self) -> Clipped | None:
        """The calls whose limit was not made for gradients with the scale; None if there are none."""
        if self._follows:
            return None
        return _with(self._sure, self._doubtful) if self._constant else self._sure


@dataclass(slots=True)
class _Call:
    """A call that has run, whose gradients are not known to have been unscaled."""

    site: Site
    by_value: bool
    step: int
    gradients: list[weakref.ref[Tensor]]
    size: Tensor
    limit: Tensor
    told: bool = False

    def is_of(self, gradients: Iterable[Tensor]) -> bool:
        """Were these clipped?"""
        mine = {id(x) for x in (reference() for reference in self.gradients) if x is not None}
        return any(id(x) in mine for x in gradients)


class Clipping:
    """Hears of clipping and of unscaling, while a trace runs."""

    def __init__(self, tracer: Tracer, judging: Callable[[], AbstractContextManager[None]]) -> None:
        """`judging` is the context of the tracer's own work, which no error leaves."""
        self.tracer, self._judging = tracer, judging
        self._places: dict[int, _Place] = {}
        """By id of the site."""
        self._calls: list[_Call] = []
        """In this step."""
        self._unscaled: dict[int, weakref.ref[Tensor]] = {}
        """By id: gradients that the scaler has divided in this step."""
        self._found: list[tuple[_Call, Tensor]] = []
        """Calls on gradients that were divided after them, each with 1 / scale, on their device."""

    @property
    def all(self) -> list[Clipped]:
        """What was clipped with the scale on it, by place."""
        return [told for told in (place.told for place in self._places.values()) if told is not None]

    def install(self) -> None:
        """Hear from now on."""
        listen(self)

    def remove(self) -> None:
        """Undo `install`."""
        stop_listening(self)

    def about_to_clip(self, clip: Clip) -> Afterwards | None:
        """Gradients are to be clipped."""
        if self.tracer.resting or clip.limit is None or get_ident() != self.tracer.thread:
            return None
        gradients = [p.grad for p in clip.parameters if p.grad is not None and type(p.grad) in PLAIN]
        gradients = [x for x in gradients if x.numel() and x.layout is torch.strided and not self._is_unscaled(x)]
        if not gradients:
            return None
        site, largest = self.tracer.sites.where(clip.frame, None), None
        with self._judging():
            largest = _largest(gradients) if clip.by_value else None

        def clipped(norm: Any) -> None:
            with self._judging():
                size = (norm if largest is None else largest).detach().clone().float()
                limit = torch.as_tensor(clip.limit, dtype=torch.float32, device=size.device)
                references = [weakref.ref(x) for x in gradients]
                self._calls.append(_Call(site, clip.by_value, self.tracer.flow.step, references, size, limit))

        return clipped

    def unscaled(self, gradients: list[Tensor], inverse: Tensor) -> None:
        """The GradScaler has divided these: `inverse` is 1 / scale, or 1 where it left that to the optimizer."""
        self._divided(gradients, inverse)
        for x in gradients:
            self._unscaled[id(x)] = weakref.ref(x)

    def stepping(self, optimizer: Any) -> None:
        """An optimizer steps, which may divide by the scale itself, as fused ones do."""
        scale = getattr(optimizer, "grad_scale", None)
        if isinstance(scale, Tensor) and self._calls:
            gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
            self._divided(gradients, scale.reciprocal())

    def _divided(self, gradients: list[Tensor], inverse: Tensor) -> None:
        for call in self._calls:
            if call.is_of(gradients):
                self._found.append((call, inverse.detach().clone().float()))

    def step_ended(self) -> None:
        """Gradients are new from here on."""
        self._calls.clear()
        self._unscaled.clear()

    def settle(self) -> None:
        """Read what waits, by one transfer per device."""
        found, self._found = self._found, []
        waiting: dict[torch.device, list[tuple[_Call, Tensor]]] = {}
        for call, inverse in found:
            numbers = torch.stack([x.reshape(()).to(call.size.device) for x in (call.size, call.limit, inverse)])
            waiting.setdefault(call.size.device, []).append((call, numbers))
        for added in waiting.values():
            read = fetch(torch.stack([numbers for _, numbers in added])).tolist()
            for (call, _), (size, limit, inverse_) in zip(added, read, strict=True):
                if not call.told and inverse_ != 1:
                    self._take(call, size, limit, 1 / inverse_)

    def _take(self, call: _Call, size: float, limit: float, scale: float) -> None:
        place = self._places.setdefault(id(call.site), _Place())
        place.limited(limit, scale)
        if limit < size < math.inf:
            call.told = True
            place.clipped(Clipped(call.site, call.by_value, call.step, size, limit, scale, times=1))

    def _is_unscaled(self, x: Tensor) -> bool:
        reference = self._unscaled.get(id(x))
        return reference is not None and reference() is x


def _with(first: Clipped | None, other: Clipped | None) -> Clipped | None:
    """The calls of both, as the earlier one describes them."""
    if first is None or other is None:
        return first or other
    return replace(min(first, other, key=lambda clipped: clipped.step), times=first.times + other.times)


def _largest(gradients: list[Tensor]) -> Tensor:
    """The largest magnitude."""
    return torch.stack([x.abs().amax().float().to(gradients[0].device) for x in gradients]).amax()
