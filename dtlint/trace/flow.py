"""The log of a step: each result, what it was made of, and the slot in which its judgement waits.

The flush, once a step, reads all slots at once and hands the log to `spread`: who was bad first, who inherited it.
"""

from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.histograms import Histograms
from dtlint.trace.lost import Lost, due
from dtlint.trace.memory import Memory
from dtlint.trace.site import PLAIN, ModulePaths, is_weight
from dtlint.trace.sketch import Sketches
from dtlint.trace.slots import SLOTS, Slots
from dtlint.trace.spread import LINE, NOWHERE, Spread, Stepped, collective_of
from dtlint.trace.storages import Storages
from dtlint.trace.totals import Totals
from dtlint.trace.wraps import Wraps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.trace.signature import Signature
    from dtlint.trace.site import Site

__all__ = ["Flow", "tensors_in"]

LOG = 4 * SLOTS * LINE
"""Length of the log at which a flush is due though no step ended."""

MOST_REASONS = 32
"""Kinds of things not seen that are told apart: messages of errors may differ each time."""

_aminmax = torch.aminmax


class Flow:
    """What the operators of a run did to the values in storages."""

    def __init__(
        self, watched: frozenset[torch.dtype], modules: ModulePaths, partial: bool = False, sketch: bool = False
    ) -> None:
        """Judge the values of the dtypes `watched`, and keep a `sketch` of each result.

        Of a `partial` trace, operators that are left out make some of them.
        """
        self.watched, self.modules = watched, modules
        self.step = 0
        self.unseen: dict[str, int] = {}
        self.met: dict[str, Site] = {}
        """Where a thing that was not seen was first met."""
        self.lost = Lost()
        self._wraps = Wraps()
        self.totals = Totals()
        self.memory = Memory(modules)
        self.histograms = Histograms(watched, modules)
        self.storages = Storages()
        self._made = self.storages.made
        self.spread = Spread(watched, modules, self.storages, partial)
        self.events = self.spread.events
        self._log: list[Any] = []
        self._slots: dict[tuple[torch.dtype, torch.device], Slots] = {}
        self._here: dict[torch.dtype, Slots] = {}
        """Those of them on the CPU."""
        self._outside: set[int] = set()
        """Storages that no traced operator has written, and that hold no weight: judged whenever they are read."""
        self._lent: Counter[int] = Counter()
        """Storages that NumPy may write, with the number of arrays over each that are alive."""
        self._arrays: dict[int, weakref.ref[Any]] = {}
        self._weights: dict[int, Any] = {}
        """Storages of the weights that were judged after a step since the last flush, with their learning rates."""
        self.settled: Callable[[], None] | None = None
        """Called at each flush: what else waits on the devices is to be read."""
        self.sketches = Sketches(modules, self._lent, self.spread.raw, self.unseen) if sketch else None
        self.before: dict[int, tuple[Slots, int]] = {}
        """Of the operator in place that runs: where its targets were judged before it, as far as that was due."""

    # -- called for each operator -----------------------------------------------------------------------------------

    def watch(self, signature: Signature, sources: list[Tensor], out: Tensor) -> None:
        """Log a result and what it was made of; launch its judgement."""
        made, outside = self._made, self._outside
        storage = out.untyped_storage()
        target = storage._cdata
        inputs = []
        whole = True
        for x in sources:
            key = x.untyped_storage()._cdata
            inputs.append(key)
            if key == target:
                whole = out.nbytes >= storage.nbytes()
                if key in self.before:
                    self._log += (*self.before.pop(key), signature, None, key, False)
            elif key not in made or key in outside:
                self._met(signature, x, key)
        if target not in made:
            storage._weak_ref()
        if signature.telling:
            self._ask(signature, sources, out, inputs)
        made[target] = signature
        if outside and target not in self._lent:
            outside.discard(target)
        if signature.judged:
            if not (signature.rounds and self._rounded(signature, out.dtype, inputs, target)):
                self._judge(signature, out, tuple(inputs), target, whole)
        else:
            self._log += (None, 0, signature, tuple(inputs), target, whole)
            if len(self._log) > LOG:
                self.flush()
        if signature.telling:
            if signature.op.brings:
                outside.add(target)
            elif signature.loss:
                self.read(signature, sources[0])
                self.memory.backward_begins(made)
                self.histograms.backward_begins(made)

    def _met(self, signature: Signature, x: Tensor, key: int) -> None:
        """An operand that no traced operator has written, or that others may have written since: judge it as well."""
        made = self._made
        if key in self.before:
            if key not in made:
                x.untyped_storage()._weak_ref()
                made[key] = None
            self._log += (*self.before.pop(key), signature, None, key, False)
        elif key not in made:  # a weight or a batch
            x.untyped_storage()._weak_ref()
            made[key] = None
            if x.dtype in self.watched:
                self.spread.laid[key] = x.shape, x.stride(), int(x.storage_offset())
                self._judge(signature, x if x.is_contiguous() else _as_it_lies(x), None, key, _fills(x))
                if not is_weight(x):  # weights are judged after each step instead
                    self._outside.add(key)
        else:  # NumPy may have written it since
            self._judge(signature, x, None, key, _fills(x))
            if collective_of(made[key]):
                self._outside.remove(key)

    def forget_before(self) -> None:
        """What was to update has ended, or failed."""
        if self.before:
            self.before.clear()
        self.totals.forget()

    def integers(self, signature: Signature, args: Any, sources: list[Tensor], out: Tensor) -> None:
        """A cast to integers, or arithmetic of them: look at some calls."""
        if due(signature.count) and self.watched:
            self._wraps.sample(signature, args, sources, out)

    def about_to_update(self, x: Tensor, adds: bool) -> None:
        """An operator is to write into `x` what it makes of it, as one that `adds`: see `_met`, and `Totals`."""
        if x.layout is not torch.strided:
            return
        key = x.untyped_storage()._cdata
        if adds and x.dtype in self.watched:
            self.totals.before(x, key)
        if (key in self._outside or key not in self._made) and x.dtype in self.watched:
            slot = self._launch(x if x.is_contiguous() else _as_it_lies(x))
            if slot is not None:
                self.before[key] = slot

    def _rounded(self, signature: Signature, dtype: torch.dtype, inputs: list[int], target: int) -> bool:
        """A cast of what was judged just now, as its operand: its range is the operand's, rounded. Was it one?"""
        log = self._log
        if not log or log[-4] is not signature or log[-3] is not None:  # that line is of a call before, or of none
            return False
        slots, number = log[-LINE : 2 - LINE]
        log += (slots.rounded(dtype), number, signature, tuple(inputs), target, True)
        return True

    def allocated(self, out: Any) -> None:
        """Memory whose values are whatever lay there: known, and not judged."""
        if type(out) in PLAIN and out.layout is torch.strided:
            key = self.storages.write(out, None)
            self.spread.raw.add(key)
            self._outside.discard(key)

    def collective(self, signature: Signature, args: Any, out: Any) -> None:
        """Others write these, perhaps later: whoever reads one next judges it. What was bad stays bad."""
        self.spread.among_others = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
        signature.nbytes += max((sum(x.nbytes for x in tensors_in(a)) for a in args), default=0)
        for x in tensors_in((args, out)):
            key = self.storages.write(x, signature)
            self._outside.add(key)
            self._log += (None, 0, signature, (), key, False)

    def came_from(self, signature: Signature, inputs: Iterable[Tensor], x: Tensor) -> None:
        """Compiled code has made `x`, by an operator of its graph, of these: it is judged whenever it is read."""
        key = self.storages.write(x, signature)
        self._outside.add(key)
        known = tuple(k for k in (i.untyped_storage()._cdata for i in inputs) if k in self._made)
        self._log += (None, 0, signature, known, key, True)

    def lend(self, x: Tensor, array: Any) -> None:
        """NumPy may write into the storage of `x` as long as `array` lives."""
        if type(x) not in PLAIN or not x.is_cpu or x.dtype not in self.watched:
            return
        key = x.untyped_storage()._cdata
        if key not in self._made or (key in self._outside and key not in self._lent):
            return

        def returned(reference: weakref.ref[Any]) -> None:
            del self._arrays[id(reference)]
            self._lent[key] -= 1
            if self._lent[key] <= 0:  # less, where all was forgotten since
                del self._lent[key]
                self._outside.discard(key)

        reference = weakref.ref(array, returned)
        self._arrays[id(reference)] = reference
        self._lent[key] += 1
        self._outside.add(key)

    def written_unseen(self, x: Tensor) -> None:
        """An operator that is not looked at has written into `x`: it is judged whenever it is read."""
        if self.sketches is not None:
            self.sketches.changed(x)
        key = x.untyped_storage()._cdata
        if key in self._made:
            self._made[key] = None
            self._outside.add(key)

    def read(self, signature: Signature, x: Tensor) -> None:
        """The program goes by the values of `x`: it takes a number out of it, or starts a backward from it."""
        self._judge(signature, x, (x.untyped_storage()._cdata,), NOWHERE, True)

    def _judge(self, subject: Any, x: Tensor, inputs: tuple[int, ...] | None, key: int, whole: bool) -> None:
        slots = (self._here.get(x.dtype) if x.is_cpu else None) or self._slots_of(x)
        if slots is None:
            return
        number, slot = next(slots.free, None) or self._more(slots)
        try:
            _aminmax(x, out=slot)
        except RuntimeError:
            if x.numel():
                raise
        else:
            self._log += (slots, number, subject, inputs, key, whole)

    def _launch(self, x: Tensor) -> tuple[Slots, int] | None:
        """Launch the judgement of `x`, to be logged later in this step."""
        slots = self._slots_of(x)
        if slots is None or not x.numel():
            return None
        number, slot = next(slots.free, None) or self._more(slots)
        _aminmax(x, out=slot)
        return slots, number

    def _slots_of(self, x: Tensor) -> Slots | None:
        """The slots for the values of `x`; None where they cannot be judged."""
        kind = (x.dtype, x.device)
        slots = self._slots.get(kind) or self._begin(*kind)
        if slots.captures and torch.cuda.is_current_stream_capturing():  # a replay would write the slot again
            if x.numel():
                self.miss("operators of captured CUDA graphs")
            return None
        return None if slots.nowhere else slots

    def _begin(self, dtype: torch.dtype, device: torch.device) -> Slots:
        slots = self._slots[dtype, device] = Slots(dtype, device)
        if device.type == "cpu":
            self._here[dtype] = slots
        return slots

    def _more(self, slots: Slots) -> tuple[int, tuple[Tensor, Tensor]]:
        """A slot, where all there are were taken."""
        self.flush() if slots.room == SLOTS else slots.grow()
        return next(slots.free)

    def _ask(self, signature: Signature, sources: list[Tensor], out: Tensor, inputs: list[int]) -> None:
        """What is asked of a cast and of what keeps a dtype, and now and then of a promotion, at each call."""
        made = self._made
        if signature.keeps or signature.op.aside:
            self.storages.origins.kept(signature, inputs, out.untyped_storage()._cdata)
        if signature.totals:
            makers = [made.get(key) for key in inputs]
            self.totals.added(signature, sources, out, out.untyped_storage()._cdata, makers)
        if signature.author:
            if sources:  # none is the parameter of a lazy layer, which is a class of its own until it has a shape
                self._cast(signature, sources[-1], out, made.get(inputs[-1]))
        elif signature.finding and due(signature.count):
            for known, key in zip(signature.inputs, inputs, strict=False):
                known.came_of(self.storages.origins.of(key))

    def _cast(self, signature: Signature, source: Tensor, out: Tensor, before: Signature | None) -> None:
        signature.nbytes += out.nbytes + source.nbytes
        if before is not None and before.author and before.inputs[-1].dtype is out.dtype:
            signature.round_trips += 1
            signature.trip = before
        if signature.narrows and due(signature.count):
            self.lost.sample(signature, source, out)

    def miss(self, what: str, site: Site | None = None) -> None:
        """Count something that was not seen, and keep where it was first met."""
        if what not in self.unseen and len(self.unseen) >= MOST_REASONS:
            what = "operators that could not be judged, for other reasons"
        self.unseen[what] = self.unseen.get(what, 0) + 1
        if site is not None:
            self.met.setdefault(what, site)

    # -- called once a step -----------------------------------------------------------------------------------------

    def stepped(self, optimizer: Any, site: Site) -> None:
        """Judge the weights after optimizer.step(): what it does to them is known by what it leaves."""
        made, outside = self._made, self._outside
        for number, group in enumerate(optimizer.param_groups):
            subject = Stepped(number, group["params"], site, group.get("eps"), group.get("lr"))
            for p in subject.weights:
                if self.sketches is not None and type(p) in PLAIN:
                    self.sketches.changed(p)
                if type(p) not in PLAIN:
                    self.miss(f"weights of the tensor subclass {type(p).__name__} after a step")
                elif p.dtype in self.watched and p.layout is torch.strided:
                    storage, grad = p.untyped_storage(), p.grad
                    key = storage._cdata
                    if key not in made:
                        storage._weak_ref()
                    made[key] = None
                    self._weights[key] = subject.rate
                    if outside:
                        outside.discard(key)
                    if type(grad) is Tensor and grad.layout is torch.strided:
                        self._judge(subject, p, (grad.untyped_storage()._cdata, key), key, True)
                    else:
                        self._judge(subject, p, (key,), key, True)

    def flush(self, goes_on: bool = True) -> None:
        """Read the slots, one transfer per dtype and device, and replay the log. Never while a graph is captured.

        Where tracing does not go on, nothing that is known of storages is of use any more.
        """
        if any(slots.captures for slots in self._slots.values()) and torch.cuda.is_current_stream_capturing():
            return
        for slots in self._slots.values():
            slots.read()
        log, self._log = self._log, []
        self.forget_before()
        self.spread.replay(log, self.step)
        self.spread.stepped(self._weights)
        self._weights.clear()
        self.lost.settle()
        self.histograms.settle()
        self._wraps.settle()
        if self.sketches is not None:
            self.sketches.settle()
        if self.settled is not None:
            self.settled()
        dead = self.storages.let_go_of_dead()
        self.totals.settle(self.step, dead)
        if goes_on:
            self.spread.forget(dead)
            self._outside.difference_update(dead)
        else:
            self.forget()

    def forget(self) -> None:
        """Let go of every storage: whatever is read next is judged anew."""
        self.storages.let_go()
        self.spread.forget_all()
        self._outside.clear()
        self._lent.clear()
        self.totals.let_go()
        if self.sketches is not None:
            self.sketches.end()


def _fills(x: Tensor) -> bool:
    """Is it all that its storage holds?"""
    return x.nbytes >= x.untyped_storage().nbytes()


def _as_it_lies(x: Tensor) -> Tensor:
    """`x` with its dimensions in the order of memory: of a weight that is read transposed, aminmax would make a copy."""
    return x.permute(sorted(range(x.dim()), key=x.stride, reverse=True))


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All plain tensors in nested lists, as collectives and operators over lists take them."""
    if type(value) in PLAIN:
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
