"""Where a training step ends, and what the optimizer did in it. Inside the optimizer the tracer is off.

Seen from torch's own hooks, and from functions of torch's that are replaced while the trace runs.
"""

from __future__ import annotations

import functools
import sys
from contextlib import contextmanager
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.profiler import record_function
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from dtlint.trace.clipping import Clipping
from dtlint.trace.patches import Patches
from dtlint.trace.scaler import Scaler
from dtlint.trace.stack import put_back, take_off
from dtlint.trace.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from dtlint.trace.mode import Tracer

__all__ = ["Steps"]

MOST_WAITING = 1000
"""Updates of the GradScaler that wait on their device while no step is traced."""


class Steps:
    """Counts steps, keeps the tracer off inside the optimizer, and judges each weight once after it."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer, self.flow = tracer, tracer.flow
        self.scaler = Scaler()
        self.weights = Weights(self.flow, gradients=bool(tracer.options.assume) or tracer.options.gradients)
        self.clipping = Clipping(tracer, self._judging)
        self.silenced = 0
        """Optimizer steps whose operators were not looked at: what they did is judged on the weights, once."""
        self.traced = 0
        """Steps that have ended while the tracer was on."""
        self.compiled = False
        """Is there an optimizer step inside compiled code, where it is not known to end?"""
        self.marked = False
        """Does the program tell where a step ends? Then optimizers do not."""
        self.heard: Callable[[Tracer], None] | None = None
        """Called at the end of each step."""
        self._stepped = False
        """Did an optimizer step since the GradScaler's last update?"""
        self._was_traced = True
        """Was the last step traced that ended?"""
        self._muted: dict[int, list[tuple[int, int | None]]] = {}
        """By thread: the frames of the optimizer steps that run there, and where the tracer stood on its stack."""
        self._hooks: list[Any] = []
        self._patches = Patches()

    # -- lifetime ---------------------------------------------------------------------------------------------------

    def install(self) -> None:
        """Register torch's global optimizer hooks, and hear of GradScaler updates."""
        self._hooks = [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]
        self._patches.set(torch, "_amp_update_scale_", self._noting(torch._amp_update_scale_))
        unscale = torch._amp_foreach_non_finite_check_and_unscale_
        self._patches.set(torch, "_amp_foreach_non_finite_check_and_unscale_", self._unscaling(unscale))
        self.clipping.install()
        self._patches.set(record_function, "__exit__", self._leaving(record_function.__exit__))

    def remove(self) -> None:
        """Undo `install`."""
        for hook in self._hooks:
            hook.remove()
        self.clipping.remove()
        self._patches.undo()
        self._muted.clear()  # a step that runs on, as in a forked child, does not put the tracer back

    # -- the optimizer ----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> list[Any]:
        """The functions by which torch comes here."""
        return [Steps._before, Steps._after, *self._patches.functions]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer steps. With a closure, the model runs in there: then the tracer stays."""
        if torch.compiler.is_compiling():
            self.compiled = True
            return
        if self.tracer.resting:
            return
        with self._judging():
            self.clipping.stepping(optimizer)
            self.weights.before(optimizer)
        if self.tracer.clock is not None:
            self.tracer.clock.stepping(True)
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
        @functools.wraps(exit)
        def left(*args: Any) -> Any:
            if self._muted:
                self._unmute(sys._getframe(1))
            return exit(*args)

        return left

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._stepped = True
        if self.tracer.clock is not None:
            self.tracer.clock.stepping(False)
        if not self.tracer.resting:
            step = sys._getframe(1)
            self._unmute(step)
            with self._judging():
                site = self.tracer.sites.where(step, None)
                self.flow.stepped(optimizer, site)
                self.weights.after(optimizer, site)
        if not self.marked:
            self.end()

    # -- the GradScaler ---------------------------------------------------------------------------------------------

    def _unscaling(self, unscale: Callable[..., Any]) -> Any:
        @functools.wraps(unscale)
        def unscaled(*args: Any, **kwargs: Any) -> Any:
            result = unscale(*args, **kwargs)
            if get_ident() == self.tracer.thread and not kwargs:
                with self._judging():
                    self.clipping.unscaled(args[0], args[2])
            return result

        return unscaled

    def _noting(self, update: Callable[..., Any]) -> Any:
        @functools.wraps(update)
        def noted(*args: Any, **kwargs: Any) -> Any:
            result = update(*args, **kwargs)
            self._updated(args[0], args[2], sys._getframe(1))
            return result

        return noted

    def _updated(self, scale: torch.Tensor, found: torch.Tensor, frame: FrameType) -> None:
        """GradScaler.update(): a step that the scaler skipped ends here, since the optimizer was not called."""
        if get_ident() != self.tracer.thread:
            return
        ended = self._stepped and not self.marked
        traced = self._was_traced if ended else not self.tracer.resting
        with self._judging():
            self.scaler.site = self.tracer.sites.where(frame, None)
            self.scaler.updated(scale, found, self.flow.step - ended, traced)
        ends = not self._stepped and not self.marked
        if (traced and not ends) or self.scaler.waiting > MOST_WAITING:  # at once: what runs next is not to blame
            self._settle()
        if ends:
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
        tracer, flow = self.tracer, self.flow
        self.clipping.step_ended()
        self._was_traced = not tracer.resting
        if tracer.resting:
            flow.step += 1
            if flow.step + 1 >= tracer.wakes:
                tracer.switch()
        else:
            self.traced += 1
            self._settle(goes_on=tracer.options.traces(flow.step + 2))
            with self._judging():
                tracer.series.step_ended(flow.step)
            if tracer.clock is not None:
                tracer.clock.step_ended(goes_on=tracer.options.traces(flow.step + 2))
            flow.step += 1
            tracer.switch()
        if self.heard is not None:
            self.heard(tracer)

    def _settle(self, goes_on: bool = True) -> None:
        """Read all that waits on a device."""
        with self._judging():
            self.flow.flush(goes_on)
            self.weights.settle()
            self.clipping.settle()
            self.scaler.settle(self.flow.events)

    @contextmanager
    def _judging(self) -> Iterator[None]:
        """Work of the tracer's own. Whatever is wrong in it, the program goes on as if it were not traced."""
        try:  # below autograd no graph is made either, and less is done than under no_grad
            with torch._C._DisableTorchDispatch(), torch._C._AutoDispatchBelowAutograd():
                yield
        except Exception as error:
            self.flow.miss(f"optimizer steps that could not be judged ({type(error).__name__})")
