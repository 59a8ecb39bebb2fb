"""What the GradScaler did: its scale, the steps that it skipped, and the event that is to blame for each.

Each update of a step that was traced is settled before the next step runs, so that no later event is blamed for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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


class Update(NamedTuple):
    """One call of `update()`, with what it read and wrote on its device."""

    scale: torch.Tensor
    found: torch.Tensor
    step: int
    traced: bool
    """Was its step traced?"""


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
        self._pending: list[Update] = []

    def updated(self, scale: torch.Tensor, found: torch.Tensor, step: int, traced: bool) -> None:
        """Keep what an update of this step read and wrote, on the device; `settle` reads it."""
        self._pending.append(Update(scale.detach().clone().float(), found.detach().clone().float(), step, traced))

    @property
    def waiting(self) -> int:
        """Updates that have not been read."""
        return len(self._pending)

    def settle(self, events: list[Event]) -> None:
        """Read the updates that wait, and find the event behind each skip, after a flush of what ran before them."""
        if not self._pending:
            return
        updates, self._pending = self._pending, []
        numbers = torch.stack([torch.cat([update.scale.view(1), update.found.view(1)]) for update in updates])
        scales, founds = fetch(numbers).t().tolist()
        for update, scale, found in zip(updates, scales, founds, strict=True):
            if not found and self.skipped == self.updates:
                self.leading = self.skipped
            if scale != self.scale and len(self.changes) < MOST_CHANGES:
                self.changes.append((self.updates, scale))
            self.updates += 1
            self.scale = scale
            self.lowest = scale if self.lowest is None else min(scale, self.lowest)
            if found:
                self.skipped += 1
                cause = self._blame(events) if update.traced else None
                if len(self.skips) < MOST_SKIPS:
                    self.skips.append((update.step, cause))
            if update.traced:
                for event in events:
                    event.spoils = False
        if self.skipped == self.updates:
            self.leading = self.skipped

    def _blame(self, events: list[Event]) -> Event | None:
        recent = [event for event in events if event.spoils]
        cause = next((event for event in recent if event.forward), recent[0] if recent else None)
        if cause is not None:
            for event in recent:
                event.skipped += 1
            self.causes[id(cause)] = (cause, self.causes.get(id(cause), (cause, 0))[1] + 1)
        return cause
