"""What a training loop does besides operators: optimizer steps, GradScaler updates, compiled functions, forks.

All of it is seen from torch's own hooks and from the dispatch stream; the program is not changed.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from dtlint.trace.site import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from dtlint.trace.flow import Event, Flow
    from dtlint.trace.site import Site, Sites

__all__ = ["Scaler", "Steps"]


class Scaler:
    """What the GradScaler did, as its updates tell."""

    def __init__(self) -> None:
        self.updates = self.skipped = self.leading = self.since = 0
        self.scale: float | None = None
        self.causes: dict[int, tuple[Event, int]] = {}
        """By id of the event: the event, and how many skips it caused."""
        self.site: Any = None
        self._pending: list[tuple[torch.Tensor, torch.Tensor]] = []

    def updated(self, scale: torch.Tensor, found: torch.Tensor) -> None:
        """Keep what an update read and wrote, on the device; `settle` reads it at the next flush."""
        self._pending.append((scale.detach().clone().float(), found.detach().clone().float()))

    def settle(self, events: list[Event], step: int) -> None:
        """Read the updates since the last flush and find the event behind each skip."""
        if not self._pending:
            return
        pairs, self._pending = self._pending, []
        scales, founds = torch.stack([torch.cat([s.view(1), f.view(1)]) for s, f in pairs]).t().tolist()
        for scale, found in zip(scales, founds, strict=True):
            if not found and self.skipped == self.updates:
                self.leading = self.skipped
            self.updates += 1
            self.scale = scale
            if found:
                self.skipped += 1
                self._blame(events)
        if self.skipped == self.updates:
            self.leading = self.skipped
        self.since = step

    def _blame(self, events: list[Event]) -> None:
        recent = [event for event in events if event.last_step >= self.since and _spoils_gradients(event)]
        cause = next((event for event in recent if event.forward), recent[0] if recent else None)
        if cause is None:
            return
        for event in recent:
            event.skipped += 1
        self.causes[id(cause)] = (cause, self.causes.get(id(cause), (cause, 0))[1] + 1)


def _spoils_gradients(event: Event) -> bool:
    born_there = event.signature is not None and event.signature.backward
    return born_there or not event.reached.isdisjoint(("gradients", "the loss"))


class Steps:
    """Counts steps, silences the optimizer's own operators, and judges each weight once after them."""

    def __init__(self, flow: Flow, sites: Sites) -> None:
        self.flow, self.sites = flow, sites
        self.scaler = Scaler()
        self.muted = False
        """Inside optimizer.step() without a closure: what it did is judged on the weights, once."""
        self.silenced = 0
        """Operators that ran there."""
        self._step: CodeType | None = None
        self.compiled = 0
        self._stepped = False
        self._hooks: list[Any] = []

    def install(self) -> None:
        """Register torch's global optimizer hooks, and make torch.compile run eagerly."""
        self._hooks = [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]
        self._compile = torch.compile
        self._stance = False
        self._counted = torch.compile = self._counting(torch.compile)
        if "torch._dynamo" in sys.modules:
            self._run_eagerly()

    def remove(self) -> None:
        """Undo `install`."""
        for hook in self._hooks:
            hook.remove()
        if torch.compile is self._counted:
            torch.compile = self._compile
        if self._stance:
            torch.compiler.set_stance("default")

    def _counting(self, compile: Callable[..., Any]) -> Any:
        @functools.wraps(compile)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.compiled += 1
            self._run_eagerly()
            return compile(*args, **kwargs)

        return counted

    def _run_eagerly(self) -> None:
        # Compiled code would hide every operator, and fullgraph=True fails under a dispatch mode.
        if not self._stance and hasattr(torch.compiler, "set_stance"):  # torch 2.6
            torch.compiler.set_stance("force_eager")
            self._stance = True

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        closure = any(callable(a) for a in args[1:]) or callable(kwargs.get("closure"))
        self.muted = not closure
        self._step = sys._getframe(1).f_code

    def inside(self, frame: FrameType | None) -> bool:
        """Does `frame` run in the step that mutes? A step that raised has ended without a word."""
        while frame is not None and frame.f_code is not self._step:
            frame = frame.f_back
        self.muted = frame is not None
        self.silenced += self.muted
        return self.muted

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.muted, self._stepped = False, True
        site = self.sites.where(sys._getframe(1), None)
        try:
            with torch._C._DisableTorchDispatch():
                self._weigh(optimizer, site)
                self.end()
        except Exception as error:  # whatever is wrong here, the program goes on as if it were not traced
            self.flow.miss(f"optimizer steps that could not be judged ({type(error).__name__})")

    def _weigh(self, optimizer: Any, site: Site) -> None:
        flow = self.flow
        for number, group in enumerate(optimizer.param_groups):
            eps = group.get("eps")
            for index, p in enumerate(group["params"]):
                if type(p) not in PLAIN:
                    flow.miss(f"weights of the tensor subclass {type(p).__name__} after a step")
                elif p.dtype in flow.watched and p.layout is torch.strided:
                    flow.weight(number, index, p, site, eps if isinstance(eps, float) else None)

    def updated(self, scale: torch.Tensor, found: torch.Tensor, site: Any) -> None:
        """GradScaler.update(): a step that the scaler skipped ends here, since the optimizer was not called."""
        self.scaler.site = site
        self.scaler.updated(scale, found)
        if not self._stepped:
            self.end()
        self._stepped = False

    def end(self) -> None:
        """A step ends: read everything."""
        self.flow.flush()
        self.scaler.settle(self.flow.events, self.flow.step)
        self.flow.step += 1
