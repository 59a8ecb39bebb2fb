"""Who was non-finite first, and who only inherited it: the log of a step, replayed on storages.

A storage is bad by the event that spoilt it; or masked, where its infs are a constant that the program wrote.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from dtlint.trace.event import Bad, Event
from dtlint.trace.ops import IMPOSSIBLE, ROWS
from dtlint.trace.schema import COMPILED, Growth
from dtlint.trace.signature import BARS
from dtlint.trace.site import PLAIN
from dtlint.trace.slots import Range
from dtlint.trace.storages import values_of
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.trace.signature import Signature
    from dtlint.trace.site import ModulePaths, Site
    from dtlint.trace.storages import Storages

__all__ = ["LINE", "NOWHERE", "Spread", "Stepped", "collective_of"]

LINE = 6
"""Entries in the log for each line of it. They lie side by side, since a tuple for each would wake the collector:
the slots and the index in them at which a result was judged, None and 0 if it was not;
the signature, or for a weight a `Stepped`;
the storages it was made of, None for a tensor that was only read;
the storage that holds it, or NOWHERE; and whether it fills that wholly."""

INPUTS, KEY = 3, 4
"""Which of them are those that it was made of, and the storage."""

NOWHERE = 0
"""In place of a storage: the result is a Python number."""

INF, LEAST = math.inf, -math.inf

CHANGED = "memory that was written outside the traced operators"
"""The subject of what came in, where an operator had written it before."""

REMEMBERED = 10
"""Steps over which the growth of weights is told."""

GROWN = 10.0
"""Weights that grow by this factor in so few steps are about to explode."""

ANY = Range(-INF, INF)
"""What is taken of values that are not known."""


Laid = tuple[torch.Size, tuple[int, ...], int]
"""Shape, strides and offset."""


class Stepped(NamedTuple):
    """The weights of a group after their optimizer's step, as the log holds them in place of a signature."""

    group: int
    weights: Sequence[Tensor]
    site: Site
    eps: Any
    rate: Any

    @property
    def given(self) -> bool:
        """As of a constant that the program writes: its range is no operator's doing."""
        return True

    def at(self, key: int) -> tuple[int, Tensor]:
        """The number in the group, and the weight, of a storage."""
        plain = ((n, p) for n, p in enumerate(self.weights) if type(p) in PLAIN and p.layout is torch.strided)
        return next((n, p) for n, p in plain if p.untyped_storage()._cdata == key)


class Meant(NamedTuple):
    """Why infs in a storage are taken for a constant, as of a mask."""

    writer: Signature | None = None
    """The operator that wrote it, where one did."""
    arrival: Event | None = None
    """To be told should NaN come of it, where the infs may as well be the result of an operator that is not traced."""


class Spread:
    """What is known of the values in each live storage, and the events that they brought about."""

    def __init__(
        self, watched: frozenset[torch.dtype], modules: ModulePaths, storages: Storages, partial: bool = False
    ) -> None:
        """Of a flow, whose `storages` are only read here."""
        self.watched, self.modules, self.storages, self.partial = watched, modules, storages, partial
        self.events: list[Event] = []
        self.raw: set[int] = set()
        """Storages of which a part may never have been written: what lies there says nothing."""
        self.among_others = False
        """Do collectives exchange with other ranks?"""
        self._step = 0
        self._bad: dict[int, Event] = {}
        self._masked: dict[int, Meant] = {}
        """Storages whose infs are a constant, as of a mask."""
        self._number: Event | None = None
        """The event that spoilt the last number which the program read and found to be none."""
        self._barred: set[int] = set()
        """Storages that hold numbers which the program made as low as can be, to bar positions: no near misses."""
        self._ranges: dict[int, tuple[float, float]] = {}
        self.laid: dict[int, Laid] = {}
        """How tensors that no operator made lay in their storage as they were first read."""
        self._written: set[int] = set()
        """Storages that operators wrote since the one that is looked at, or by it: what they hold is not what it read."""
        self._born_at: dict[tuple[int, str], Event] = {}
        """By id of the signature and kind."""
        self._arrivals: dict[int, Event] = {}
        """By id of the signature: what came in there and may be a mask."""
        self._sizes: deque[float] = deque(maxlen=REMEMBERED)
        """The largest magnitude among the weights, after each of the last steps."""
        self._rate: float | None = None
        self._spoilt: dict[tuple[int, str], Event] = {}
        """By optimizer line and kind: the event of the weights that were spoilt there."""

    def replay(self, log: Sequence[Any], step: int) -> None:
        """Go through the log of a step, whose slots have been read, in the order in which it ran."""
        self._step = step
        ranges, bad, masked, barred, raw = self._ranges, self._bad, self._masked, self._barred, self.raw
        entries = iter(log)
        lines = zip(*[entries] * LINE, strict=True)
        for number, (slots, index, subject, inputs, key, whole) in enumerate(lines, 1):
            if slots is None:
                self._carry(subject, inputs or (), key, whole)
                continue
            low, high = slots.lows[index], slots.highs[index]
            if low > LEAST and high < INF:  # as most are, so that nothing is called for them
                if key == NOWHERE:
                    continue
                ranges[key] = low, high
                if whole:
                    if bad:
                        bad.pop(key, None)
                    if masked:
                        masked.pop(key, None)
                    if raw and inputs is not None:
                        raw.discard(key)
                elif inputs is None:
                    self._read_in_part(subject, key)
                counts = inputs is not None and not subject.given
                if low <= BARS and self._bars(subject, inputs, key, high):
                    barred.add(key)
                else:
                    if whole and barred:
                        barred.discard(key)
                    if counts and low < subject.low:
                        subject.low = low
                if counts and high > subject.high:
                    subject.high = high
            elif key == NOWHERE:
                self._reached(subject, inputs or ())
            elif type(subject) is Stepped:
                self._bad_weight(subject, inputs or (), key, Range(low, high))
            elif inputs is None:
                if subject.event is None or subject.event.kind != "came-in":
                    self._written = _written_after(log, number)
                self._came_in(subject, key, Range(low, high), hidden=self.partial and not subject.op.brings)
            else:
                if self._unexplained(subject, inputs):
                    self._written = {*_written_after(log, number), key}
                    self._look_again(subject, inputs)
                self._nonfinite(subject, inputs, key, Range(low, high), whole)

    def _read_in_part(self, subject: Signature, key: int) -> None:
        """A part of a storage is as it should be. Another part may be what the same operator just found to be bad."""
        cause = self._bad.get(key)
        if cause is not None and not (cause.signature is subject and cause.last_step == self._step):
            del self._bad[key]
        self._masked.pop(key, None)

    def stepped(self, weights: dict[int, Any]) -> None:
        """Optimizers have stepped in the step that was replayed, in these storages, with these learning rates."""
        sizes = [(max(-low, high), key) for key in weights for low, high in (self._ranges.get(key, ANY),) if high < INF]
        if sizes:
            size, key = max(sizes)
            self._sizes.append(size)
            self._rate = weights[key] if isinstance(weights[key], float) else None

    def _growth(self) -> Growth | None:
        """How much the weights have grown in the last steps, where that is much."""
        last = self._sizes[-1] if self._sizes else 0.0
        at = next((number for number, size in enumerate(self._sizes) if 0 < size * GROWN <= last), None)
        return None if at is None else Growth(self._sizes[at], last, len(self._sizes) - 1 - at, self._rate)

    def forget(self, dead: Sequence[int]) -> None:
        """These storages are gone."""
        for known in (self._ranges, self._bad, self._masked, self.laid):
            if known:
                for key in dead:
                    known.pop(key, None)
        for held in (self._barred, self.raw):
            held.difference_update(dead)

    def forget_all(self) -> None:
        """What is known of storages holds no longer; the events stay."""
        for held in (self._bad, self._ranges, self._masked, self.laid, self._barred, self.raw):
            held.clear()

    # -- results that are as they should be ---------------------------------------------------------------------------

    def _carry(self, signature: Signature, inputs: tuple[int, ...], key: int, whole: bool) -> None:
        """A result that was not judged: it may be as bad as what it was made of, and its next reader shows it."""
        if signature.op.remote:
            self._exchange(key)
            return
        bad, masked, barred = self._bad, self._masked, self._barred
        if signature.op.fresh:
            inputs = ()
        if inputs and inputs[0] in self._ranges:
            self._ranges[key] = self._ranges[inputs[0]]
        cause = self._cause(inputs) if bad else None
        if cause is not None:
            bad[key] = cause
            if cause.signature is signature and signature.op.name == "copy_" and not cause.subject:
                cause.into = key
        elif whole:
            bad.pop(key, None)
            self.raw.discard(key)
        if signature.given or not masked.keys().isdisjoint(inputs):
            masked[key] = self._meant(signature, inputs)
            low, high = self._ranges.get(key, ANY)
            if low > LEAST and high < INF:  # of the first operand, and not of the one that holds the infs
                del self._ranges[key]
        elif whole:
            masked.pop(key, None)
        if signature.bars or not barred.isdisjoint(inputs):
            barred.add(key)
        elif whole:
            barred.discard(key)

    def _exchange(self, key: int) -> None:
        """A collective takes and writes this: what its values were before says nothing."""
        self._ranges.pop(key, None)
        if key in self._bad and self.among_others:
            self._bad[key].reached.add("other ranks")

    def _bars(self, subject: Signature | Stepped, inputs: tuple[int, ...] | None, key: int, high: float) -> bool:
        """Do the lowest values here only bar positions, as a mask of -1e4 or finfo.min does once it was added?"""
        if isinstance(subject, Stepped):
            return key in self._barred
        if inputs is None or subject.op.brings:  # a mask that the program made elsewhere holds nothing else
            return high <= 1
        return subject.bars or not self._barred.isdisjoint(inputs)

    # -- births, and what inherits them -------------------------------------------------------------------------------

    def _nonfinite(self, signature: Signature, inputs: tuple[int, ...], key: int, span: Range, whole: bool) -> None:
        signature.nonfinite += 1
        cause = self._cause(inputs) or (self._number if span.nan and signature.numbers else None)
        masked = not self._masked.keys().isdisjoint(inputs)
        if cause is not None:
            if cause.into is not None and cause.into in inputs:
                self._name_loaded(cause, cause.into)
            self._inherit(cause, signature, key)
        elif not span.nan and (signature.given or masked or self._bars_beyond(signature, inputs, span)):
            signature.meant += 1
            self._masked[key] = self._meant(signature, inputs)
            before = self._ranges.get(key, span) if not whole else span
            self._ranges[key] = min(span.low, before[0]), max(span.high, before[1])
        elif signature.op.given:
            self._came_in(signature, key, span)
        elif signature.unwatched is not None:
            self._came_in(signature, key, span, unwatched=signature.unwatched)
        else:
            kind = self._kind(signature, span.nan, masked, inputs)
            meant = self._meant(None, inputs) if kind == "invalid" else Meant()
            if meant.arrival is not None:
                self._told_late(meant.arrival, signature, key)
                return
            event = self._event_of(kind, signature, span)
            event.inputs = [
                (known.dtype, Range(*self._ranges[p]))
                for known, p in zip(signature.inputs, inputs, strict=False)
                if p in self._ranges
            ]
            event.writer = meant.writer
            event.number = signature.number if signature.constant else None
            pole = -1 if signature.pole is None else signature.pole
            if event.times == 0 and 0 <= pole < len(inputs) and (kind == "pole" or self._is_zero(inputs[pole])):
                at_pole = inputs[pole]
                event.maker = self.storages.made.get(at_pole) if self._still(at_pole) else None
            self._happened(event, key)

    def _name_loaded(self, event: Event, key: int) -> None:
        """What came in was copied into this storage, which something reads now: is it a weight or a buffer?"""
        name = self.modules.name_of(key)
        if name:
            event.subject = f"what was loaded into {name}"
            event.into = None

    def _is_zero(self, key: int) -> bool:
        """Does a storage hold nothing but 0?"""
        low, high = self._ranges.get(key, ANY)
        return low == 0 == high

    def _bars_beyond(self, signature: Signature, inputs: tuple[int, ...], span: Range) -> bool:
        """Is it a mask of 0 and 1 times a number beyond the dtype's range, as `(1 - mask) * -1e9` is in half?"""
        low, high = self._ranges.get(inputs[0], ANY) if inputs else ANY
        ends = {low, high}
        barring = signature.number is not None and signature.constant and abs(signature.number) >= -BARS
        return (
            barring and span.high <= 0 and signature.op.name in ("mul", "mul_") and (ends <= {0, 1} or ends <= {-1, 0})
        )

    def _kind(self, signature: Signature, nan: bool, masked: bool, inputs: tuple[int, ...]) -> str:
        if nan:
            above = any(p in self._masked and self._ranges.get(p, (LEAST, 0.0))[1] == INF for p in inputs)
            return "masked-row" if masked and not above and signature.op.name in ROWS else "invalid"
        if signature.op.name in IMPOSSIBLE:
            return "pole"
        return "pole" if signature.pole is not None and self._at_pole(signature, signature.pole, inputs) else "overflow"

    def _at_pole(self, signature: Signature, pole: int, inputs: tuple[int, ...]) -> bool:
        """Was the operand in question 0? A range around 0 does not tell: then it is read, once for each signature."""
        if pole >= len(inputs):
            return not signature.number
        key, dtype = inputs[pole], signature.inputs[pole].dtype
        low, high = self._ranges.get(key, ANY)
        if not low <= 0 <= high:
            return False
        if low == 0 or high == 0 or dtype not in self.watched or not self._still(key):
            return True
        if signature.event is not None and signature.event.kind in ("pole", "overflow"):
            return signature.event.kind == "pole"
        values = values_of(key, dtype)
        return values is None or bool(fetch((values == 0).any()))

    def _still(self, key: int) -> bool:
        """Does a storage hold now what the operator that is looked at read in it?"""
        return not (key in self._written or key in self.raw or key not in self.storages.made)

    def _cause(self, inputs: Iterable[int]) -> Event | None:
        """The event that spoilt the first of these storages that is bad."""
        bad = self._bad
        return next((bad[p] for p in inputs if p in bad), None)

    def _event_of(self, kind: str, signature: Signature, span: Range) -> Event:
        """The event of this kind that was born here; a new one the first time, however often the kinds take turns."""
        event = signature.event
        if event is None or event.kind != kind:
            event = self._born_at.get((id(signature), kind))
            if event is None:
                event = self._born_at[id(signature), kind] = Event(kind, self._step, signature, signature.output)
                event.low, event.high = span
                event.growth = self._growth() if kind in ("overflow", "invalid") else None
                self.events.append(event)
            signature.event = event
        return event

    def _happened(self, event: Event, key: int) -> None:
        """The event was born, perhaps once more, in a storage."""
        event.times += 1
        event.touch(self._step)
        event.spoils |= event.signature is not None and event.signature.backward
        self._bad[key] = event

    def _inherit(self, cause: Event, signature: Signature, key: int) -> None:
        cause.spread += 1
        if signature.backward:
            cause.reached.add("gradients")
            cause.spoils = True
        cause.touch(self._step)
        self._bad[key] = cause

    def _reached(self, signature: Signature, inputs: tuple[int, ...]) -> None:
        cause = self._cause(inputs)
        if cause is not None:
            cause.reached.add("the loss" if signature.loss else "a number the program read")
            cause.spoils |= signature.loss
            if not signature.loss:
                self._number = cause

    # -- what no traced operator spoilt -------------------------------------------------------------------------------

    def _unexplained(self, signature: Signature, inputs: tuple[int, ...]) -> bool:
        blamed = signature.event is not None and signature.event.kind != "came-in"
        return not (blamed or signature.given or any(p in self._bad or p in self._masked for p in inputs))

    def _look_again(self, signature: Signature, inputs: tuple[int, ...]) -> None:
        """Before an operator is blamed: did its inputs turn bad where no operator wrote, as NumPy and threads do?

        This reads the device, once for each signature.
        """
        for known, key in zip(signature.inputs, inputs, strict=False):
            values = values_of(key, known.dtype) if known.dtype in self.watched and self._still(key) else None
            if values is None:
                continue
            span = Range(*fetch(torch.stack(torch.aminmax(values))).tolist())
            if not span.finite:
                self._came_in(signature, key, span, CHANGED)

    def _came_in(
        self,
        signature: Signature,
        key: int,
        span: Range,
        subject: str = "",
        hidden: bool = False,
        unwatched: torch.dtype | None = None,
    ) -> None:
        """A weight, a batch or a constant that was non-finite when it was first read. One -inf is a mask's.

        Where it may be the result of an operator that is not traced, or of a dtype that is not judged, that is kept.
        """
        if key in self._bad or (key in self._masked and not span.nan):
            return
        if span.high < INF:
            doubtful = hidden or unwatched is not None
            self._masked[key] = Meant(arrival=self._perhaps(signature, key, hidden, unwatched) if doubtful else None)
            self._ranges[key] = span
            return
        event = self._event_of("came-in", signature, span)
        if not event.times:
            maker = self.storages.made.get(key)
            if maker is signature and maker.inputs:  # in place: its target had another before
                maker = maker.inputs[0].maker
            makers = (maker, *(known.maker for known in signature.inputs))
            event.brought = next(filter(None, map(collective_of, makers)), "")
            if maker is not None and not (maker.op.brings or event.brought or hidden or unwatched):
                subject = COMPILED if maker.site.captured else CHANGED
            event.subject = subject or self.modules.name_of(key)
            event.hidden, event.unwatched = hidden, unwatched
            event.bad = self._how_much(signature, key) if self._still(key) else None
        self._happened(event, key)

    def _how_much(self, signature: Signature, key: int) -> Bad | None:
        """How much of a storage is not finite, and in which sample of a batch that begins."""
        dtype = next((known.dtype for known in signature.inputs if known.dtype in self.watched), None)
        kinds = {known.dtype for known in signature.inputs if known.dtype.is_floating_point}
        stored = values_of(key, dtype) if dtype is not None and len(kinds) == 1 else None
        laid = self.laid.get(key)
        if stored is None or laid is None:
            return None
        bad = ~stored.as_strided(*laid).isfinite().reshape(-1)
        first, count = fetch(torch.stack((bad.to(torch.uint8).argmax(), torch.count_nonzero(bad)))).tolist()
        shape = laid[0]
        if not count:
            return None
        batch = len(shape) > 1 and not self.modules.name_of(key)
        return Bad(count, shape.numel(), *((first // shape[1:].numel(), shape[0]) if batch else (-1, -1)))

    def _perhaps(self, signature: Signature, key: int, hidden: bool, unwatched: torch.dtype | None) -> Event:
        """The arrival of -inf that may be a mask's, or the log(0) of an operator that is not traced: told if NaN comes
        of it, since only a mask's does no harm."""
        event = self._arrivals.get(id(signature))
        if event is None:
            event = self._arrivals[id(signature)] = Event("came-in", self._step, signature, signature.output)
            event.low = event.high = LEAST
            event.subject, event.hidden, event.unwatched = self.modules.name_of(key), hidden, unwatched
        return event

    def _meant(self, signature: Signature | None, inputs: Iterable[int]) -> Meant:
        """What the infs of these storages are: of the first that may be no mask, or else of the first that has any.

        Where none of them has, the operator itself wrote them.
        """
        known = [self._masked[p] for p in inputs if p in self._masked]
        return next((meant for meant in known if meant.arrival is not None), known[0] if known else Meant(signature))

    def _told_late(self, arrived: Event, signature: Signature, key: int) -> None:
        """NaN came of such a -inf."""
        if not arrived.times:
            self.events.append(arrived)
        arrived.times += 1
        self._inherit(arrived, signature, key)

    def _bad_weight(self, weight: Stepped, inputs: tuple[int, ...], key: int, span: Range) -> None:
        cause = self._cause(inputs) or self._spoilt_by(weight, key, span)
        cause.touch(self._step)
        cause.reached.add("weights")
        self._bad[key] = cause

    def _spoilt_by(self, weight: Stepped, key: int, span: Range) -> Event:
        """The event of a weight whose badness no operator explains: its optimizer's, or that of its gradient."""
        number, p = weight.at(key)
        grad = p.grad
        kind = "invalid" if span.nan else "overflow"
        if grad is not None and not bool(fetch(torch.isfinite(grad).all())):  # read only here, where all is lost
            kind = "came-in"
        at = (id(weight.site), kind)
        event = self._spoilt.get(at)
        if event is None:
            event = self._spoilt[at] = Event(kind, self._step, None, p.dtype)
            event.low, event.high = span
            event.site, event.eps = weight.site, weight.eps if isinstance(weight.eps, float) else None
            event.rate = weight.rate if isinstance(weight.rate, float) else None
            event.brought = collective_of(self.storages.maker(grad)) if grad is not None else ""
            told = f"weight {number} of group {weight.group}, shape {tuple(p.shape)}"
            event.subject = self.modules.name_of(key) or told
            self.events.append(event)
        event.times += 1
        return event


def _written_after(log: Sequence[Any], number: int) -> set[int]:
    """The storages that operators wrote after the first so many lines of a log; what was only read holds what it did."""
    lines = range(number * LINE, len(log), LINE)
    return {log[line + KEY] for line in lines if log[line + INPUTS] is not None}


def collective_of(maker: Signature | None) -> str:
    """The name of the collective that wrote a storage last, or ""."""
    return maker.op.name if maker is not None and maker.op.remote else ""
