"""What a training loop does besides operators: optimizer steps, GradScaler updates, compiled functions.

All of it is seen from torch's own hooks, and from functions of torch's that are shadowed while the trace runs.
"""

from __future__ import annotations

import functools
import multiprocessing.spawn
import sys
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.profiler import record_function
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from dtlint.trace.site import PLAIN
from dtlint.trace.stack import put_back, take_off
from dtlint.trace.transfer import fetch
from dtlint.trace.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from dtlint.trace.flow import Event
    from dtlint.trace.mode import Tracer
    from dtlint.trace.site import Site

__all__ = ["Scaler", "Steps"]

MOST_SKIPS = 100
"""Skipped steps of which the record keeps each; all are counted."""

MOST_WAITING = 1000
"""Updates of the GradScaler that wait on their device while no step is traced."""


class Scaler:
    """What the GradScaler did, as its updates tell."""

    def __init__(self) -> None:
        self.updates = self.skipped = self.leading = self.since = 0
        self.scale: float | None = None
        self.lowest: float | None = None
        self.causes: dict[int, tuple[Event, int]] = {}
        """By id of the event: the event, and how many skips it caused."""
        self.skips: list[tuple[int, Event | None]] = []
        """The first skips: the step, and the event behind it."""
        self.site: Any = None
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
        self.since = step

    def _blame(self, events: list[Event]) -> Event | None:
        recent = [event for event in events if event.last_step >= self.since and _spoils_gradients(event)]
        cause = next((event for event in recent if event.forward), recent[0] if recent else None)
        if cause is not None:
            for event in recent:
                event.skipped += 1
            self.causes[id(cause)] = (cause, self.causes.get(id(cause), (cause, 0))[1] + 1)
        return cause


def _spoils_gradients(event: Event) -> bool:
    born_there = event.signature is not None and event.signature.backward
    return born_there or not event.reached.isdisjoint(("gradients", "the loss"))


class Steps:
    """Counts steps, keeps the tracer off inside the optimizer, and judges each weight once after it."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.flow = tracer, tracer.flow
        self.scaler = Scaler()
        self.weights = Weights(self.flow)
        self.silenced = 0
        """Optimizer steps whose operators were not looked at: what they did is judged on the weights, once."""
        self.compiled = 0
        self.spawned = 0
        """Children that multiprocessing has begun as a new Python."""
        self.traced = 0
        """Steps that have ended while the tracer was on."""
        self.marked = False
        """Does the program tell where a step ends? Then optimizers do not."""
        self.heard: Callable[[Tracer], None] | None = None
        """Called at the end of each step."""
        self._stepped = False
        self._muted: dict[int, list[tuple[int, int | None]]] = {}
        """By thread: the frames of the optimizer steps that run there, and where the tracer stood on its stack."""
        self._hooks: list[Any] = []
        self._shadowed: list[tuple[Any, str, Any, Any]] = []

    # -- lifetime ---------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Register torch's global optimizer hooks, hear of GradScaler updates, and make torch.compile run eagerly."""
        self._hooks = [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]
        self._stance = False
        self._shadow(torch, "compile", self._counting)
        self._shadow(torch, "_amp_update_scale_", self._noting)
        self._shadow(record_function, "__exit__", self._leaving)
        self._shadow(multiprocessing.spawn, "get_command_line", self._spawning)
        if "torch._dynamo" in sys.modules:
            self._run_eagerly()

    def remove(self) -> None:
        """Undo `install`."""
        for hook in self._hooks:
            hook.remove()
        for owner, name, theirs, ours in self._shadowed:
            if getattr(owner, name) is ours:
                setattr(owner, name, theirs)
        self._shadowed.clear()
        if self._stance:
            torch.compiler.set_stance("default")

    def _shadow(self, owner: Any, name: str, around: Callable[[Any], Any]) -> None:
        theirs = getattr(owner, name)
        ours = functools.wraps(theirs)(around(theirs))
        self._shadowed.append((owner, name, theirs, ours))
        setattr(owner, name, ours)

    def _counting(self, compile: Callable[..., Any]) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.compiled += 1
            self._run_eagerly()
            return compile(*args, **kwargs)

        return counted

    def _spawning(self, get_command_line: Callable[..., list[str]]) -> Any:
        def spawning(*args: Any, **kwargs: Any) -> list[str]:
            self.spawned += 1
            return get_command_line(*args, **kwargs)

        return spawning

    def _run_eagerly(self) -> None:
        # Compiled code would hide every operator, and fullgraph=True fails under a dispatch mode.
        if not self._stance and hasattr(torch.compiler, "set_stance"):  # torch 2.6
            torch.compiler.set_stance("force_eager")
            self._stance = True

    # -- the optimizer ----------------------------------------------------------------------------------------------

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer steps. With a closure, the model runs in there: then the tracer stays."""
        if self.tracer.resting:
            return
        with self._judging():
            self.weights.before(optimizer)
        closure = any(callable(a) for a in args[1:]) or callable(kwargs.get("closure"))
        below = None if closure else take_off(self.tracer)
        self.silenced += below is not None
        self._muted.setdefault(get_ident(), []).append((id(sys._getframe(1)), below))

    def _unmute(self, step: FrameType) -> None:
        """The optimizer step that ran in this frame is over."""
        steps = self._muted.get(get_ident())
        if steps and steps[-1][0] == id(step):
            _, below = steps.pop()
            if below is not None:
                put_back(self.tracer, below)

    def _leaving(self, exit: Callable[..., Any]) -> Any:
        # Each step runs in a record_function: its end is the one place that a step which raises passes too.
        def left(*args: Any) -> Any:
            if self._muted:
                self._unmute(sys._getframe(1))
            return exit(*args)

        return left

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._stepped = True
        if not self.tracer.resting:
            step = sys._getframe(1)
            self._unmute(step)
            with self._judging():
                site = self.tracer.sites.where(step, None)
                self._weigh(optimizer, site)
                self.weights.after(optimizer, site)
        if not self.marked:
            self.end()

    def _weigh(self, optimizer: Any, site: Site) -> None:
        flow = self.flow
        for number, group in enumerate(optimizer.param_groups):
            eps = group.get("eps")
            for index, p in enumerate(group["params"]):
                if type(p) not in PLAIN:
                    flow.miss(f"weights of the tensor subclass {type(p).__name__} after a step")
                elif p.dtype in flow.watched and p.layout is torch.strided:
                    flow.weight(number, index, p, site, eps if isinstance(eps, float) else None)

    # -- the GradScaler ---------------------------------------------------------------------------------------------

    def _noting(self, update: Callable[..., Any]) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            result = update(*args, **kwargs)
            self._updated(args[0], args[2], sys._getframe(1))
            return result

        return noted

    def _updated(self, scale: torch.Tensor, found: torch.Tensor, frame: FrameType) -> None:
        """GradScaler.update(): a step that the scaler skipped ends here, since the optimizer was not called."""
        if get_ident() != self.tracer.thread:
            return
        with self._judging():
            self.scaler.site = self.tracer.sites.where(frame, None)
            self.scaler.updated(scale, found)
        if not self._stepped and not self.marked:
            self.end()
        self._stepped = False

    # -- the end of a step ------------------------------------------------------------------------------------------

    def mark(self) -> None:
        """The program says that a step ends. The first word may come just after an optimizer's, on the same step."""
        first, self.marked = not self.marked, True
        if not (first and self.flow.step):
            self.end()

    def end(self) -> None:
        """A step ends: read everything, and see whether the next one is to be traced."""
        if not self.tracer.resting or self.scaler.waiting > MOST_WAITING:
            self.traced += not self.tracer.resting
            with self._judging():
                self.flow.flush()
                self.weights.settle()
                self.scaler.settle(self.flow.events, self.flow.step)
        self.flow.step += 1
        self.tracer.switch()
        if self.heard is not None:
            self.heard(self.tracer)

    @contextmanager
    def _judging(self) -> Iterator[None]:
        """Work of the tracer's own. Whatever is wrong in it, the program goes on as if it were not traced."""
        try:
            with torch._C._DisableTorchDispatch(), torch.no_grad():
                yield
        except Exception as error:
            self.flow.miss(f"optimizer steps that could not be judged ({type(error).__name__})")
