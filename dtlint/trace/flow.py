"""Where non-finite values are born and how far they spread, without a synchronisation per operator.

Each float result is reduced on its device to (min, max) in a preallocated slot. The flush, once a step, reads all
slots at once and replays the step's log on storages: who was bad first, and who only inherited it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from dtlint.trace.lost import Lost, due
from dtlint.trace.memory import Memory
from dtlint.trace.ops import ROWS
from dtlint.trace.signature import BARS
from dtlint.trace.site import PLAIN, ModulePaths
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.signature import Signature
    from dtlint.trace.site import Site

__all__ = ["WATCHED", "Event", "Flow"]

SLOTS = 4096
"""Results judged between two flushes, per dtype and device: 32 KiB of float32."""

ROOM = 512
"""Slots made at once: a slot is a tensor of its own, and most programs need few."""

LOG = 4 * SLOTS
"""Entries of the log at which a flush is due though no step ended."""

WATCHED = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))
"""The dtypes that aminmax reduces and that can hold an inf."""

INF = math.inf

_aminmax = torch.aminmax

MOST_REASONS = 32
"""Kinds of things not seen that are told apart: messages of errors may differ each time."""

NOWHERE = 0
"""In place of a storage: the result is a Python number."""


class Range(NamedTuple):
    """The values of a tensor: smallest and largest."""

    low: float
    high: float


class Event:
    """Non-finite values where none were before, and what became of them."""

    __slots__ = (
        "brought",
        "dtype",
        "eps",
        "high",
        "inputs",
        "kind",
        "last_step",
        "low",
        "reached",
        "signature",
        "site",
        "skipped",
        "spread",
        "step",
        "steps",
        "subject",
        "times",
    )

    def __init__(self, kind: str, step: int, signature: Signature | None, dtype: torch.dtype | None) -> None:
        self.kind, self.step, self.last_step = kind, step, step
        self.signature, self.dtype = signature, dtype
        self.site = signature.site if signature is not None else None
        self.subject = self.brought = ""
        self.low = self.high = 0.0
        self.inputs: list[tuple[torch.dtype, Range]] = []
        self.times = self.spread = self.skipped = 0
        self.steps = 0
        self.eps: float | None = None
        self.reached: set[str] = set()

    @property
    def forward(self) -> bool:
        """Was it born in the forward, where no loss scale explains it?"""
        return self.signature is not None and not self.signature.backward


class _Slots:
    """(min, max) pairs on one device, of one dtype."""

    __slots__ = ("both", "captures", "high", "low", "nowhere", "spans", "used")

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.nowhere = device.type == "meta"
        """Are there no values to judge?"""
        self.captures = device.type == "cuda"
        """May operators be recorded here, to be replayed unseen?"""
        with torch.inference_mode(False):
            self.both = torch.zeros(2, SLOTS, dtype=dtype, device=device)
        self.low: list[Tensor] = []
        self.high: list[Tensor] = []
        self.used = 0
        self.spans: list[Range] = []
        """What the slots held at the last `read`."""
        self.grow()

    def grow(self) -> None:
        """Make more slots."""
        made = len(self.low)
        with torch.inference_mode(False):
            low, high = self.both[:, made : made + ROOM].unbind()
            self.low += low.unbind()
            self.high += high.unbind()

    def read(self) -> None:
        """Bring the values here, in one transfer, and free the slots."""
        low, high = fetch(self.both[:, : self.used]).tolist()
        self.spans = list(map(Range._make, zip(low, high, strict=True)))
        self.used = 0


class _Weight(NamedTuple):
    """A weight after optimizer.step(), as the log holds it in place of a signature."""

    group: int
    number: int
    tensor: Tensor
    site: Any
    eps: float | None


def _is_weight(x: Tensor) -> bool:
    """Is it a parameter or a view of one? Those are judged after each step instead."""
    return type(x) is torch.nn.Parameter or type(x._base) is torch.nn.Parameter


class Flow:
    """The log of a step and the state of every live storage."""

    def __init__(self, watched: frozenset[torch.dtype], modules: ModulePaths) -> None:
        self.watched, self.modules = watched, modules
        self.events: list[Event] = []
        self.step = 0
        self.unseen: dict[str, int] = {}
        self.met: dict[str, Site] = {}
        """Where a thing that was not seen was first met."""
        self.lost = Lost()
        self.memory = Memory(modules)
        self.made: dict[int, Signature | None] = {}
        """By storage: the signature that wrote it last. A weak reference is held on each storage, so that an
        address is not used again while it stands here; the flush lets go of the dead."""
        self._log: list[tuple[Any, int, Any, tuple[int, ...] | None, int, bool]] = []
        self._slots: dict[tuple[torch.dtype, torch.device], _Slots] = {}
        self._bad: dict[int, Event] = {}
        self._masked: set[int] = set()
        self._barred: set[int] = set()
        """Storages that hold numbers which the program made as low as can be, to bar positions: no near misses."""
        self._outside: set[int] = set()
        """Storages that no traced operator has written, and that hold no weight: judged whenever they are read."""
        self._raw: set[int] = set()
        """Storages of which a part may never have been written: what lies there says nothing."""
        self._ranges: dict[int, Range] = {}
        self._born_at: dict[tuple[int, str], Event] = {}
        """By id of the signature and kind."""
        self._spoilt: dict[tuple[int, str], Event] = {}
        """By optimizer line and kind: the event of the weights that were spoilt there."""

    # -- called for each operator -----------------------------------------------------------------------------------

    def watch(self, signature: Signature, sources: list[Tensor], out: Tensor) -> None:
        """Log a result and what it was made of; launch its judgement."""
        made, watched, outside = self.made, self.watched, self._outside
        storage = out.untyped_storage()
        target = storage._cdata
        inputs = []
        whole = True
        for x in sources:
            source = x.untyped_storage()
            key = source._cdata
            inputs.append(key)
            if key == target:
                whole = out.nbytes >= storage.nbytes()
            elif key not in made:  # a weight or a batch
                source._weak_ref()
                made[key] = None
                if x.dtype in watched:
                    self._judge(signature, x, None, key, True)
                    if not _is_weight(x):
                        outside.add(key)
            elif key in outside:  # NumPy may have written it since
                self._judge(signature, x, None, key, True)
                if _collective(made[key]):
                    outside.remove(key)
        if target not in made:
            storage._weak_ref()
        if signature.author:
            self._cast(signature, sources[-1], out, made.get(inputs[-1]))
        made[target] = signature
        if signature.op.brings:
            outside.add(target)
        elif target in outside:
            outside.remove(target)
        if signature.carries or signature.op.fresh:
            self._log.append((None, 0, signature, tuple(inputs), target, whole))
            if len(self._log) > LOG:
                self.flush()
        else:
            self._judge(signature, out, tuple(inputs), target, whole)
        if signature.loss:
            self.read(signature, sources[0])
            self.memory.backward_begins(self.made)

    def allocated(self, out: Any) -> None:
        """Memory whose values are whatever lay there: known, and not judged."""
        if type(out) in PLAIN and out.layout is torch.strided:
            storage = out.untyped_storage()
            key = storage._cdata
            if key not in self.made:
                storage._weak_ref()
            self.made[key] = None
            self._raw.add(key)
            self._outside.discard(key)

    def collective(self, signature: Signature, args: Any, out: Any) -> None:
        """Others write these, perhaps later: whoever reads one next judges it. What was bad stays bad."""
        signature.nbytes += max((sum(x.nbytes for x in tensors_in(a)) for a in args), default=0)
        for x in tensors_in((args, out)):
            storage = x.untyped_storage()
            key = storage._cdata
            if key not in self.made:
                storage._weak_ref()
            self.made[key] = signature
            self._outside.add(key)

    def written_unseen(self, x: Tensor) -> None:
        """An operator that is not looked at has written into `x`: it is judged whenever it is read."""
        key = x.untyped_storage()._cdata
        if key in self.made:
            self.made[key] = None
            self._outside.add(key)

    def read(self, signature: Signature, x: Tensor) -> None:
        """The program goes by the values of `x`: it takes a number out of it, or starts a backward from it."""
        self._judge(signature, x, (x.untyped_storage()._cdata,), NOWHERE, True)

    def _judge(self, subject: Any, x: Tensor, inputs: tuple[int, ...] | None, key: int, whole: bool) -> None:
        place = (x.dtype, x.device)
        slots = self._slots.get(place)
        if slots is None:
            slots = self._slots[place] = _Slots(*place)
        if slots.nowhere or not x.numel():
            return
        if slots.captures and torch.cuda.is_current_stream_capturing():  # a replay would write the slot again
            self.miss("operators of captured CUDA graphs")
            return
        used = slots.used
        _aminmax(x, out=(slots.low[used], slots.high[used]))
        self._log.append((slots, used, subject, inputs, key, whole))
        slots.used = used = used + 1
        if used == len(slots.low):
            self.flush() if used == SLOTS else slots.grow()

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

    def maker(self, x: Tensor) -> Signature | None:
        """Who wrote this tensor's storage last, as far as it was seen."""
        if type(x) not in PLAIN or x.layout is not torch.strided:
            return None
        return self.made.get(x.untyped_storage()._cdata)

    # -- called once a step -----------------------------------------------------------------------------------------

    def weight(self, group: int, index: int, p: Tensor, site: Any, eps: float | None) -> None:
        """Judge a weight after optimizer.step(): the `index`-th of a parameter group."""
        storage = p.untyped_storage()
        key = storage._cdata
        if key not in self.made:
            storage._weak_ref()
        self.made[key] = None
        self._outside.discard(key)
        grad = p.grad
        grads = (grad.untyped_storage()._cdata,) if type(grad) is Tensor and grad.layout is torch.strided else ()
        self._judge(_Weight(group, index, p, site, eps), p, (*grads, key), key, True)

    def flush(self) -> None:
        """Read the slots, one transfer per dtype and device, and replay the log. Never while a graph is captured."""
        if any(device.type == "cuda" for _, device in self._slots) and torch.cuda.is_current_stream_capturing():
            return
        for slots in self._slots.values():
            if slots.used:
                slots.read()
        log, self._log = self._log, []
        for number, (slots, index, subject, inputs, key, whole) in enumerate(log):
            if slots is None:
                self._carry(subject, inputs or (), key, whole)
                continue
            span = slots.spans[index]
            low, high = span
            finite = low > -INF and high < INF
            if key == NOWHERE:
                if not finite:
                    self._reached(subject, inputs or ())
            elif finite:
                self._finite(subject, inputs, key, whole, span)
            elif isinstance(subject, _Weight):
                self._bad_weight(subject, inputs or (), key, span)
            elif inputs is None:
                self._came_in(subject, key, span)
            else:
                if self._unexplained(subject, inputs):
                    self._look_again(subject, inputs, {entry[4] for entry in log[number + 1 :]} | {key})
                self._nonfinite(subject, inputs, key, span)
        self.lost.settle()
        self._prune()

    def close(self) -> None:
        """Flush, and let go of every storage."""
        self.flush()
        self.forget()

    def forget(self) -> None:
        """Let go of every storage: whatever is read next is judged anew."""
        for key in self.made:
            torch.UntypedStorage._free_weak_ref(key)  # type: ignore[no-untyped-call]
        for held in (self.made, self._ranges, self._bad, self._masked, self._barred, self._raw, self._outside):
            held.clear()

    def _reached(self, signature: Signature, inputs: tuple[int, ...]) -> None:
        cause = next((self._bad[p] for p in inputs if p in self._bad), None)
        if cause is not None:
            cause.reached.add("the loss" if signature.loss else "a number the program read")

    def _carry(self, signature: Signature, inputs: tuple[int, ...], key: int, whole: bool) -> None:
        """A result that was not judged: it may be as bad as what it was made of, and its next reader shows it."""
        bad, masked = self._bad, self._masked
        if signature.op.fresh:
            inputs = ()
        if inputs and inputs[0] in self._ranges:
            self._ranges[key] = self._ranges[inputs[0]]
        cause = next((bad[p] for p in inputs if p in bad), None) if bad else None
        if cause is not None:
            bad[key] = cause
        elif whole:
            bad.pop(key, None)
            self._raw.discard(key)
        if signature.given or (masked and any(p in masked for p in inputs)):
            masked.add(key)
        elif whole:
            masked.discard(key)
        if signature.bars or (self._barred and any(p in self._barred for p in inputs)):
            self._barred.add(key)
        elif whole:
            self._barred.discard(key)

    def _finite(self, subject: Any, inputs: tuple[int, ...] | None, key: int, whole: bool, span: Range) -> None:
        self._ranges[key] = span
        if whole:
            self._bad.pop(key, None)
            self._masked.discard(key)
            if inputs is not None:
                self._raw.discard(key)
        if type(subject) is _Weight:
            return
        low, high = span
        barred = low <= BARS and self._bars(subject, inputs, span)
        if barred:
            self._barred.add(key)
        elif whole:
            self._barred.discard(key)
        if inputs is not None and not subject.given:
            if low < subject.low and not barred:
                subject.low = low
            if high > subject.high:
                subject.high = high

    def _bars(self, signature: Signature, inputs: tuple[int, ...] | None, span: Range) -> bool:
        """Do the lowest values here only bar positions, as a mask of -1e4 or finfo.min does once it was added?"""
        if inputs is None or signature.op.brings:  # a mask that the program made elsewhere holds nothing else
            return span.high <= 1
        return signature.bars or any(p in self._barred for p in inputs)

    def _unexplained(self, signature: Signature, inputs: tuple[int, ...]) -> bool:
        blamed = signature.event is not None and signature.event.kind != "came-in"
        return not (blamed or signature.given or any(p in self._bad or p in self._masked for p in inputs))

    def _look_again(self, signature: Signature, inputs: tuple[int, ...], written: set[int]) -> None:
        """Before an operator is blamed: did its inputs turn bad where no operator wrote, as NumPy and threads do?

        `written` are the storages that operators wrote since, and this one itself: what they hold now is not what it
        read. This reads the device, once for each signature.
        """
        for known, key in zip(signature.inputs, inputs, strict=False):
            if known.dtype not in self.watched or key in written or key in self._raw or key not in self.made:
                continue
            if torch.UntypedStorage._expired(key):
                continue
            storage = torch.UntypedStorage._new_with_weak_ptr(key)
            if storage is None or not storage.nbytes():
                continue
            with torch.inference_mode(False):
                values = torch.empty(0, dtype=known.dtype, device=storage.device).set_(storage)
                span = Range(*fetch(torch.stack(torch.aminmax(values))).tolist())
            if not (span.low > -INF and span.high < INF):
                self._came_in(signature, key, span, "memory that was written outside the traced operators")

    def _nonfinite(self, signature: Signature, inputs: tuple[int, ...], key: int, span: Range) -> None:
        signature.nonfinite += 1
        nan = span.low != span.low
        cause = next((self._bad[p] for p in inputs if p in self._bad), None)
        masked = any(p in self._masked for p in inputs)
        if cause is not None:
            self._spoil(cause, signature, key)
        elif not nan and (signature.given or masked):
            self._masked.add(key)
        elif signature.op.given:
            self._came_in(signature, key, span)
        else:
            event = self._born(self._kind(signature, nan, masked, inputs), signature, span)
            event.inputs = [
                (known.dtype, self._ranges[p])
                for known, p in zip(signature.inputs, inputs, strict=False)
                if p in self._ranges
            ]
            self._bad[key] = event

    def _kind(self, signature: Signature, nan: bool, masked: bool, inputs: tuple[int, ...]) -> str:
        if nan:
            return "masked-row" if masked and signature.op.name in ROWS else "invalid"
        if signature.pole is None:
            return "overflow"
        at = self._ranges.get(inputs[signature.pole]) if signature.pole < len(inputs) else None
        return "pole" if at is None or at.low <= 0 <= at.high else "overflow"

    def _born(self, kind: str, signature: Signature, span: Range) -> Event:
        event = self._event_of(kind, signature, span)
        event.times += 1
        self._touch(event)
        return event

    def _event_of(self, kind: str, signature: Signature, span: Range) -> Event:
        """The event of this kind that was born here; a new one the first time, however often the kinds take turns."""
        event: Event | None = signature.event
        if event is None or event.kind != kind:
            event = self._born_at.get((id(signature), kind))
            if event is None:
                event = self._born_at[id(signature), kind] = Event(kind, self.step, signature, signature.output)
                event.low, event.high = span
                self.events.append(event)
            signature.event = event
        return event

    def _touch(self, event: Event) -> None:
        if not event.steps or event.last_step != self.step:
            event.steps += 1
        event.last_step = self.step

    def _spoil(self, cause: Event, signature: Signature, key: int) -> None:
        cause.spread += 1
        if signature.backward:
            cause.reached.add("gradients")
        self._touch(cause)
        self._bad[key] = cause

    def _came_in(self, signature: Signature, key: int, span: Range, subject: str = "") -> None:
        """A weight, a batch or a constant that was non-finite when it was first read. One -inf is a mask's."""
        if key in self._bad or (key in self._masked and span.low == span.low):
            return
        if span.high < INF:
            self._masked.add(key)
            return
        known = len(self.events)
        event = self._event_of("came-in", signature, span)
        if len(self.events) > known:
            makers = (self.made.get(key), *(known.maker for known in signature.inputs))
            event.brought = next((_collective(maker) for maker in makers if _collective(maker)), "")
            event.subject = subject or self.modules.name_of(key)
        event.times += 1
        self._touch(event)
        self._bad[key] = event

    def _bad_weight(self, weight: _Weight, inputs: tuple[int, ...], key: int, span: Range) -> None:
        cause = next((self._bad[p] for p in inputs if p in self._bad), None)
        if cause is None:
            cause = self._spoilt_by(weight, key, span)
        self._touch(cause)
        cause.reached.add("weights")
        self._bad[key] = cause

    def _spoilt_by(self, weight: _Weight, key: int, span: Range) -> Event:
        kind = "invalid" if span.low != span.low else "overflow"
        grad = weight.tensor.grad
        if grad is not None and not bool(
            fetch(torch.isfinite(grad).all())
        ):  # read only here, where all is lost already
            kind = "came-in"
        place = (id(weight.site), kind)
        event = self._spoilt.get(place)
        if event is None:
            event = self._spoilt[place] = Event(kind, self.step, None, weight.tensor.dtype)
            event.low, event.high = span
            event.site, event.eps = weight.site, weight.eps
            event.brought = _collective(self.maker(grad)) if grad is not None else ""
            event.subject = (
                self.modules.name_of(key)
                or f"weight {weight.number} of group {weight.group}, shape {tuple(weight.tensor.shape)}"
            )
            self.events.append(event)
        event.times += 1
        return event

    def _prune(self) -> None:
        expired = torch.UntypedStorage._expired
        for key in [key for key in self.made if expired(key)]:
            self._forget(key)

    def _forget(self, key: int) -> None:
        del self.made[key]
        torch.UntypedStorage._free_weak_ref(key)  # type: ignore[no-untyped-call]
        self._bad.pop(key, None)
        self._masked.discard(key)
        self._barred.discard(key)
        self._raw.discard(key)
        self._outside.discard(key)
        self._ranges.pop(key, None)


def _collective(maker: Signature | None) -> str:
    """The name of the collective that wrote a storage last, or ""."""
    return maker.op.name if maker is not None and maker.op.remote else ""


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All plain tensors in nested lists, as collectives take them."""
    if type(value) in PLAIN:
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
