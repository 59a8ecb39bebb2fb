"""A monitor of one optimizer's training loop: it sees where steps end, and looks closely at one in so many.

Between sampled steps nothing is on the model, and nothing waits for a device.
"""

from __future__ import annotations

import functools
import logging
import math
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from dtlint.monitor.activations import Activations, paths
from dtlint.monitor.outputs import JsonLines, Output, TensorBoard, WeightsAndBiases
from dtlint.monitor.parameters import Parameters
from dtlint.monitor.reading import ModuleReading, Reading
from dtlint.monitor.waiting import Key, Waiting, own_work
from dtlint.trace.clips import listen, stop_listening
from dtlint.trace.options import Options
from dtlint.trace.patches import Patches
from dtlint.trace.rank import Rank

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from os import PathLike
    from types import TracebackType

    from dtlint.trace.clips import Clip

__all__ = ["Monitor"]

FILE = "dtlint-monitor.jsonl"
"""The file of a monitor that names none."""

NAMED = 6
"""Modules that are named where a pattern matches none."""

SCALE: Key = ("scale", "")
SKIPPED: Key = ("skipped", "")

ASSUMED = {"float16": torch.float16, "bfloat16": torch.bfloat16}
"""dtypes that underflow can be measured by."""

logger = logging.getLogger("dtlint")


class Monitor:
    """Tells of one training step in `every`: amax and underflow by module, gradient norm, scale, weights that are stuck.

        monitor = dtlint.Monitor(model, optimizer, scaler)
        for batch in batches:
            ...  # the loop stays as it is

    A step ends with `optimizer.step()`, or with the `scaler.step(optimizer)` that skips it. Nothing that the program
    computes changes. `with dtlint.Monitor(...):` ends the monitor with a block, as `close` does.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        scaler: Any = None,
        *,
        every: int = 50,
        modules: str | Iterable[str] = (),
        assume: str | torch.dtype | None = None,
        file: str | PathLike[str] | None = FILE,
        tensorboard: Any = None,
        wandb: Any = None,
        listener: Callable[[Reading], None] | None = None,
        steps: int = 0,
    ) -> None:
        """Begin at once.

        Args:
            model: the model that is trained, with its wrappers or without.
            optimizer: the optimizer whose steps count. Of several, each has a monitor and a file of its own.
            scaler: the GradScaler of the loop, if it has one.
            every: steps from one sampled step to the next; the first is step number `every`.
            modules: patterns of paths of modules whose results are looked at, as `"blocks.*.attn"`; all by default.
            assume: the dtype that results' underflow is measured by, `"float16"` or `"bfloat16"`; their own by default.
            file: the JSON lines are appended to it; None for no file. Each rank of a distributed run has its own.
            tensorboard: a directory, or a SummaryWriter. Only rank 0 writes to it.
            wandb: True for the current run, or a run. Only rank 0 logs to it.
            listener: is called with each reading.
            steps: steps that were made before, as by the run that this one resumes.

        Raises:
            TypeError, ValueError, ImportError: an argument cannot be used; the message is one line that says why.
        """
        _check(model, optimizer, scaler, every)
        options = Options.parse(modules=[modules] if isinstance(modules, str) else [*modules])
        _refuse_unmatched(model, options)
        assumed = None if assume is None else ASSUMED.get(str(assume).removeprefix("torch."))
        if assume is not None and assumed is None:
            raise ValueError(f"assume {assume!r} is not known; use {' or '.join(ASSUMED)}")
        self.every, self.steps = every, steps
        """Steps that have ended."""
        self.last: Reading | None = None
        """The reading of the last sampled step."""
        self._rank = Rank.here()
        self._outputs = [*self._outputs_of(file, tensorboard, wandb)]
        self._listener = listener
        self._optimizer, self._scaler = _inside(optimizer), scaler
        self._waiting = Waiting()
        self._activations = Activations(model, options.covers, self._waiting, assumed)
        self._parameters = Parameters(model, self._optimizer, self._waiting)
        self._skipped = 0
        self._found: list[Tensor] = []
        """By device: how many steps fused optimizers have skipped; only the device knows it."""
        self._failed: dict[str, None] = {}
        self._sampling = self._scaling = self._stepped = self._closed = self._gradients_read = False
        self._patches = Patches()
        self._handles = [
            self._optimizer.register_step_pre_hook(self._before),
            self._optimizer.register_step_post_hook(self._after),
        ]
        if scaler is not None:
            self._patches.set(scaler, "step", self._watching(scaler.step))
        self._begin()

    def close(self) -> None:
        """Take everything off the program again."""
        if not self._closed:
            self._closed = True
            self._patches.undo()
            stop_listening(self)
            for handle in self._handles:
                handle.remove()
            self._activations.unwatch()
            for output in self._outputs:
                self._guarded(output.close)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def read_gradients(self) -> None:
        """Read the gradients now, and not as the optimizer gets them: to be called before a clip of one's own.

        Before `torch.nn.utils.clip_grad_norm_` and `clip_grad_value_` this is done anyway, if they are called as such.
        """
        if self._sampling and not self._gradients_read:
            self._guarded(self._read_gradients)

    # -- where steps begin and end ------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A step begins: is it one to look at?"""
        self._sampling = (self.steps + 1) % self.every == 0
        self._stepped = self._gradients_read = False
        if self._sampling:
            self._parameters.begin()
            self._activations.watch()
            listen(self)

    def _before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or not self._sampling:
            return
        if not _closure(args, kwargs):  # which computes the gradients in there
            self.read_gradients()
        self._guarded(self._parameters.before)

    def _after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        self._stepped = True
        found = getattr(optimizer, "found_inf", None)
        if isinstance(found, Tensor):
            self._guarded(lambda: self._count_skipped(found))
        if self._sampling:
            self.read_gradients()
            self._guarded(self._parameters.after)
        if not self._scaling:
            self._end()

    def _watching(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """`scaler.step`, which ends a step of ours even where it skips the optimizer's."""
        mine = weakref.ref(self)

        @functools.wraps(step)
        def watched(optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
            monitor = mine()
            if monitor is None or _inside(optimizer) is not monitor._optimizer or not monitor._scaler.is_enabled():
                return step(optimizer, *args, **kwargs)
            monitor.read_gradients()
            monitor._scaling = True
            try:
                result = step(optimizer, *args, **kwargs)
            finally:
                monitor._scaling = False
            monitor._skipped += not monitor._stepped
            monitor._end()
            return result

        return watched

    def about_to_clip(self, clip: Clip) -> None:
        """Gradients are to be clipped; the monitor hears of it in sampled steps."""
        mine = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        if any(id(p) in mine for p in clip.parameters):
            self.read_gradients()

    def _end(self) -> None:
        self.steps += 1
        if self._sampling:
            self._activations.unwatch()
            stop_listening(self)
            self._guarded(self._tell)
        self._begin()

    # -- what is read -------------------------------------------------------------------------------------------------

    def _read_gradients(self) -> None:
        self._gradients_read = True
        scale, scaled, ours = None, False, getattr(self._optimizer, "grad_scale", None)
        if isinstance(ours, Tensor):  # the scaler leaves it to a fused optimizer to unscale
            scale, scaled = ours, True
        if self._scaler is not None and self._scaler.is_enabled() and isinstance(self._scaler._scale, Tensor):
            state = self._scaler._per_optimizer_states.get(id(self._optimizer), {})
            scale, scaled = self._scaler._scale, scaled or getattr(state.get("stage"), "name", "READY") == "READY"
        if scale is not None:
            self._waiting.sum(SCALE, scale)
        self._parameters.read_gradients(scale, scaled)

    def _count_skipped(self, found: Tensor) -> None:
        found = found.detach().clone().reshape(())
        at = next((i for i, x in enumerate(self._found) if x.device == found.device), None)
        if at is None:
            self._found.append(found)
        else:
            self._found[at] += found

    def _tell(self) -> None:
        """Bring all that waits here, once for each device, and hand it out."""
        for found in self._found:
            self._waiting.sum(SKIPPED, found)
        reading = self._reading(self._waiting.read())
        self.last = reading
        if self._listener is not None:
            self._guarded(functools.partial(self._listener, reading))
        for output in [*self._outputs]:
            try:
                output.write(reading)
            except Exception as error:
                self._outputs.remove(output)
                logger.warning("dtlint.Monitor writes to %s no longer: %s", type(output).__name__, error)

    def _reading(self, numbers: dict[Key, list[float]]) -> Reading:
        found = _Found(numbers, self._activations, self._parameters)
        skipped = self._skipped + round(sum(numbers.get(SKIPPED, ())))
        before = self.last.skipped if self.last is not None else 0
        return Reading(
            step=self.steps,
            time=round(time.time(), 3),
            rank=self._rank.number,
            scale=next(iter(numbers.get(SCALE, ())), None),
            skipped=skipped,
            skipped_since=skipped - before,
            grad_norm=found.grad_norm,
            modules=found.modules(),
            unseen=[*self._activations.unseen, *self._parameters.unseen, *self._failed],
        )

    def _guarded(self, work: Callable[[], object]) -> None:
        """Work of the monitor's own. Whatever is wrong in it, the program goes on."""
        try:
            with own_work():
                work()
        except Exception as error:
            what = f"a part of the step ({type(error).__name__}: {error})".splitlines()[0]
            self._failed[what] = None

    def _outputs_of(self, file: Any, tensorboard: Any, wandb: Any) -> Iterator[Output]:
        if file is not None:
            yield JsonLines(self._rank.file(Path(file)))
        if self._rank.number == 0:
            if tensorboard is not None:
                yield TensorBoard(tensorboard)
            if wandb:
                yield WeightsAndBiases(wandb)


class _Found:
    """What came from the devices, brought together by module."""

    def __init__(self, numbers: dict[Key, list[float]], activations: Activations, parameters: Parameters) -> None:
        self._numbers, self._activations, self._parameters = numbers, activations, parameters

    @property
    def grad_norm(self) -> float | None:
        """Of all gradients."""
        return self._norm(self._parameters.gradients)

    def modules(self) -> dict[str, ModuleReading]:
        """By path; in the order in which they ran, then those of which only parameters were seen."""
        owned: dict[str, list[str]] = {}
        compared = [name for what, name in self._numbers if what == "compared"]
        for name in dict.fromkeys([*self._parameters.gradients, *compared]):
            owned.setdefault(name.rpartition(".")[0], []).append(name)
        return {
            path: self._module(path, owned.get(path, [])) for path in dict.fromkeys([*self._activations.dtypes, *owned])
        }

    def _module(self, path: str, names: list[str]) -> ModuleReading:
        made = ModuleReading()
        if path in self._activations.dtypes:
            of = self._activations.looked[path]
            made.dtype = _name(self._activations.dtypes[path])
            made.amax = self._largest("amax", [path])
            made.underflow, made.zero = self._shares("underflow", "zero", [path], of)
        graded = {name: self._parameters.gradients[name] for name in names if name in self._parameters.gradients}
        if graded:
            made.grad_dtype = _name(next(iter(graded.values()))[0])
            made.grad_norm = self._norm(graded)
            made.grad_amax = self._largest("grad_amax", graded)
            of = sum(count for _, count in graded.values())
            made.grad_underflow, made.grad_zero = self._shares("grad_underflow", "grad_zero", graded, of)
        made.compared = round(self._sum("compared", names))
        if made.compared:
            made.stuck = self._sum("stuck", names) / made.compared
        return made

    def _norm(self, names: Iterable[str]) -> float | None:
        norms = [norm for name in names for norm in self._numbers.get(("grad_norm", name), ())]
        return math.sqrt(sum(norm * norm for norm in norms)) if norms else None

    def _largest(self, what: str, names: Iterable[str]) -> float | None:
        found = [value for name in names for value in self._numbers.get((what, name), ())]
        return max(found, key=lambda value: (value != value, value), default=None)

    def _sum(self, what: str, names: Iterable[str]) -> float:
        return sum(value for name in names for value in self._numbers.get((what, name), ()))

    def _shares(self, small: str, zero: str, names: Iterable[str], of: int) -> tuple[float | None, float | None]:
        """Of what is not 0, the share that underflows; and the share of what is 0."""
        zeros = self._sum(zero, names)
        return self._sum(small, names) / (of - zeros) if of > zeros else None, zeros / of


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _inside(optimizer: Any) -> Any:
    """The optimizer inside its wrappers, as accelerate and Lightning have them."""
    inner = getattr(optimizer, "optimizer", None)
    return _inside(inner) if isinstance(inner, Optimizer) else optimizer


def _closure(args: Any, kwargs: Any) -> bool:
    return any(callable(a) for a in args[1:]) or callable(kwargs.get("closure"))


def _check(model: Any, optimizer: Any, scaler: Any, every: Any) -> None:
    """Refuse what cannot be monitored."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"the model is a {type(model).__name__}; give the nn.Module that is trained")
    if not isinstance(_inside(optimizer), Optimizer) or not hasattr(_inside(optimizer), "register_step_post_hook"):
        raise TypeError(f"the optimizer is a {type(optimizer).__name__}; give a torch.optim.Optimizer")
    if scaler is not None and not isinstance(scaler, torch.amp.GradScaler):
        raise TypeError(f"the scaler is a {type(scaler).__name__}; give the loop's torch.amp.GradScaler, or none")
    if type(every) is not int or every < 1:
        raise ValueError(f"every {every!r} is no number of steps; give 1 or more")


def _refuse_unmatched(model: nn.Module, options: Options) -> None:
    found = [path for path, _, _ in paths(model)]
    for pattern in options.modules:
        if not any(Options(modules=(pattern,)).covers(path) for path in found):
            named = ", ".join([path for path in found if path][:NAMED]) or "none, the model holds no others"
            raise ValueError(f"modules {pattern!r} matches no module of the model; there are: {named}")
