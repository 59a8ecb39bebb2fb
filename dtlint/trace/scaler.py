"""What the GradScaler did: its scale, the steps that it skipped, and the event that is to blame for each.

Its updates are kept on their device, and read when the step is flushed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from dtlint.trace.event import Event
    from dtlint.trace.site import Site

__all__ = ["Scaler"]

MOST_SKIPS = 100
"""Skipped steps of which the record keeps each; all are counted."""


MOST_CHANGES = 500
"""Changes of the scale of which the record keeps each."""


class Scaler:
    """What the GradScaler did, as its updates tell."""

    def __init__(self) -> None:
        self.updates = self.skipped = 0
        self.leading = 0
        """Skips before the first good step."""
        self.scale: float | None = None
        self.lowest: float | None = None
        self.causes: dict[int, tuple[Event, int]] = {}
        """By id of the event: the event, and how many skips it caused."""
        self.skips: list[tuple[int, Event | None]] = []
        """The first skips: the step, and the event behind it."""
        self.changes: list[tuple[int, float]] = []
        """The first update, and each that changed the scale, with what it was then."""
        self.site: Site | None = None
        """Where `update()` was called."""
        self._since = 0
        """The step of the last settling: events before it explain no later skip."""
        self._pending: list[tuple[torch.Tensor, torch.Tensor]] = []

    def updated(self, scale: torch.Tensor, found: torch.Tensor) -> None:
        """Keep what an update read and wrote, on the device; `settle` reads it at the next flush."""
        self._pending.append((scale.detach().clone().float(), found.detach().clone().float()))

    @property
    def waiting(self) -> int:
        """Updates that have not been read."""
        return len(self._pending)

    def settle(self, events: list[Event], step: int) -> None:
        """Read the updates since the last flush and find the event behind each skip."""
        if not self._pending:
            return
        pairs, self._pending = self._pending, []
        scales, founds = fetch(torch.stack([torch.cat([s.view(1), f.view(1)]) for s, f in pairs])).t().tolist()
        for scale, found in zip(scales, founds, strict=True):
            if not found and self.skipped == self.updates:
                self.leading = self.skipped
            if scale != self.scale and len(self.changes) < MOST_CHANGES:
                self.changes.append((self.updates, scale))
            self.updates += 1
            self.scale = scale
            self.lowest = scale if self.lowest is None else min(scale, self.lowest)
            if found:
                self.skipped += 1
                cause = self._blame(events)
                if len(self.skips) < MOST_SKIPS:
                    self.skips.append((step, cause))
        if self.skipped == self.updates:
            self.leading = self.skipped
        self._since = step

    def _blame(self, events: list[Event]) -> Event | None:
        recent = [event for event in events if event.last_step >= self._since and _spoils_gradients(event)]
        cause = next((event for event in recent if event.forward), recent[0] if recent else None)
        if cause is not None:
            for event in recent:
                event.skipped += 1
            self.causes[id(cause)] = (cause, self.causes.get(id(cause), (cause, 0))[1] + 1)
        return cause


def _spoils_gradients(event: Event) -> bool:
    born_there = event.signature is not None and event.signature.backward
    return born_there or not event.reached.isdisjoint(("gradients", "the loss"))
