"""From the live objects of a tracer to the trace record: the only place that knows both."""

from __future__ import annotations

import linecache
import platform
from typing import TYPE_CHECKING

import torch

from dtlint import __version__
from dtlint.trace.ops import is_composite
from dtlint.trace.options import VALUES
from dtlint.trace.record import AROUND, TraceRecord
from dtlint.trace.schema import (
    NO_FILE,
    REACHED,
    SCHEMA,
    DtypeError,
    Entry,
    Gains,
    Memory,
    Operand,
    Place,
    ScaleChange,
    ScaledClip,
    Skip,
    SkipCause,
)
from dtlint.trace.schema import Event as EventRecord
from dtlint.trace.schema import LocalError as LocalErrorRecord
from dtlint.trace.schema import Range as RangeRecord
from dtlint.trace.schema import Scaler as ScalerRecord
from dtlint.trace.schema import Sketches as SketchesRecord
from dtlint.trace.schema import Weight as WeightRecord
from dtlint.trace.site import shown
from dtlint.trace.unseen import unseen_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.trace.event import Event
    from dtlint.trace.mismatch import Mismatch
    from dtlint.trace.mode import Tracer
    from dtlint.trace.signature import Input, Signature
    from dtlint.trace.site import Site
    from dtlint.trace.slots import Range
    from dtlint.trace.weights import Weight

__all__ = ["record_of"]

NAMED = 6
"""Modules that are named where the one that was asked for did not run."""

LONGEST = 300
"""Characters of an expression that the record keeps."""

UNATTRIBUTED = Place(NO_FILE, 1, 1, 0, 0, "", "")
"""Where autograd ran for a line that was made before the trace began."""


def record_of(tracer: Tracer, argv: list[str], exit_code: int) -> TraceRecord:
    """What the tracer saw so far. Call `tracer.read()` before it while the program still runs."""
    return _Export(tracer).record(argv, exit_code)


def dtype_name(dtype: torch.dtype | None) -> str:
    """`float16`."""
    return "" if dtype is None else str(dtype).removeprefix("torch.")


class _Export:
    """Numbers sites and signatures, and writes each once."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.places: list[Place] = []
        self.sources: dict[str, dict[str, str]] = {}
        self._place_of: dict[int, int] = {}
        self._entry_of: dict[int, int] = {}
        self._inside: dict[int, str] = {}
        """By id of a site: the composite operator that ran several others there."""

    def record(self, argv: list[str], exit_code: int) -> TraceRecord:
        tracer = self.tracer
        tracer.series.take(tracer.flow.step)
        nowhere = tracer.sites.nowhere
        graphs = tracer.captured.sites if tracer.captured is not None else {}
        sites = [*tracer.sites.all.values(), *graphs.values(), nowhere]
        signatures = [s for site in sites for s in site.signatures.values() if s.count and not s.op.reads]
        self._entry_of = {id(signature): number for number, signature in enumerate(signatures)}
        self._inside = _composites(sites)
        entries = [self._entry(signature) for signature in signatures]
        events = tracer.flow.events
        return TraceRecord(
            schema=SCHEMA,
            dtlint=__version__,
            torch=str(torch.__version__),
            python=platform.python_version(),
            argv=argv,
            exit_code=exit_code,
            steps=tracer.flow.step,
            traced=tracer.steps.traced,
            left_out=tracer.options.left_out,
            covers=list(tracer.options.modules),
            operators=tracer.operators,
            ran=[] if tracer.operators else list(dict.fromkeys(filter(None, (site.module for site in sites))))[:NAMED],
            entries=entries,
            events=[self._event(event) for event in events],
            scaler=self._scaler(events),
            clips=self._clips(),
            unseen=list(unseen_of(tracer, signatures, self._place)),
            weights=[self._weight(weight) for weight in tracer.steps.weights.all],
            memory=[
                Memory(what, dtype_name(dtype), nbytes)
                for what, held in tracer.flow.memory.most.items()
                for dtype, nbytes in held.most_common()
            ],
            histograms=tracer.flow.histograms.record(),
            errors=[self._error(mismatch) for mismatch in tracer.mismatches.all.values()],
            assume=tracer.options.assume or "",
            watched=None if tracer.options.watch == frozenset(VALUES) else sorted(tracer.options.watch),
            timing=tracer.clock.timing() if tracer.clock is not None else None,
            shadow=tracer.options.shadow or "",
            local=self._local(),
            gains=self._gains(),
            sketches=self._sketches(),
            places=self.places,
            sources=self.sources,
            series=tracer.series.record(),
        )

    def _place(self, site: Site | None) -> int | None:
        if site is None:
            return None
        number = self._place_of.get(id(site))
        if number is None:
            number = self._place_of[id(site)] = len(self.places)
            self.places.append(UNATTRIBUTED if site is self.tracer.sites.nowhere else self._describe(site))
        return number

    def _describe(self, site: Site) -> Place:
        source = site.source()
        file = shown(site.file, self.tracer.here)
        end = source.end_line or source.line
        kept = self.sources.setdefault(file, {})
        for number in range(max(source.line - AROUND, 1), end + AROUND + 1):
            text = linecache.getline(site.file, number)
            if text:
                kept[str(number)] = text.rstrip("\r\n")
        text = linecache.getline(site.file, source.line)
        column = source.column if source.column is not None else len(text) - len(text.lstrip())
        end_column = source.end_column if source.end_column is not None else max(len(text.rstrip()), column)
        expression = source.expression[:LONGEST]
        caller = shown(site.caller, self.tracer.here) if site.caller else ""
        return Place(file, source.line, end, column, end_column, expression, site.module, caller, site.caller_line)

    def _entry(self, s: Signature) -> Entry:
        place = self._place(s.site)
        assert place is not None
        return Entry(
            place=place,
            op=s.op.name,
            phase="backward" if s.backward else "forward",
            inputs=[self._operand(known) for known in s.inputs],
            output=dtype_name(s.output) or None,
            count=s.count,
            author=s.author,
            finding=s.finding,
            culprit=s.culprit,
            autocast=s.autocast,
            nbytes=s.nbytes,
            round_trips=s.round_trips,
            undoes=self._number(s.trip),
            flops=s.flops,
            low=s.span[0],
            high=s.span[1],
            nonfinite=s.nonfinite,
            sampled=s.sampled,
            lost=s.lost,
            looked=s.looked,
            wrapped=s.wrapped,
            nonzero=s.nonzero,
            cut=s.cut,
            sums=s.sums,
            stalled=s.stalled,
            number=s.number if s.constant else None,
            inside=self._inside.get(id(s.site), ""),
            device=s.device,
            meant=s.meant,
            seconds=s.time,
            held=s.held,
            matter=s.matter,
            tiny=s.tiny,
        )

    def _operand(self, known: Input) -> Operand:
        origin = self._number(known.origin.decided_by) if known.origin is not None else None
        return Operand(
            dtype_name(known.dtype), known.zero_dim, origin, known.name, known.varies, maker=self._number(known.maker)
        )

    def _number(self, signature: Signature | None) -> int | None:
        return None if signature is None else self._entry_of.get(id(signature))

    def _event(self, event: Event) -> EventRecord:
        options = self.tracer.options
        return EventRecord(
            kind=event.kind,
            step=event.step,
            place=self._place(event.site),
            entry=self._number(event.signature),
            subject=event.subject,
            dtype=dtype_name(event.dtype),
            low=event.low,
            high=event.high,
            inputs=[_range(dtype, span) for dtype, span in event.inputs],
            times=event.times,
            spread=event.spread,
            reached=[what for what in REACHED if what in event.reached],
            by_scaler=_may_overflow(event) and not event.forward and 0 < event.steps <= event.skipped,
            eps=event.eps,
            brought=event.brought,
            hidden=options.hiding(event.step) if event.hidden else [],
            unwatched=dtype_name(event.unwatched),
            written=None if event.writer is None else self._place(event.writer.site),
            number=event.number,
            maker=self._number(event.maker),
            bad=event.bad.values if event.bad is not None else 0,
            of=event.bad.of if event.bad is not None else 0,
            sample=event.bad.sample if event.bad is not None else -1,
            samples=event.bad.samples if event.bad is not None else 0,
            rate=event.rate,
            grown=event.growth,
            partly=bool(options.modules) or options.watch != frozenset(VALUES),
        )

    def _weight(self, weight: Weight) -> WeightRecord:
        return WeightRecord(
            name=weight.name,
            shape=list(weight.shape),
            dtype=dtype_name(weight.dtype),
            gradient=dtype_name(weight.gradient),
            states=sorted(map(dtype_name, weight.states)),
            checked=weight.checked,
            stuck=weight.stuck,
            place=self._place(weight.site),
            looked=weight.looked,
            matter=weight.matter,
            tiny=weight.tiny,
        )

    def _error(self, mismatch: Mismatch) -> DtypeError:
        return DtypeError(
            message=mismatch.message,
            op=mismatch.op,
            step=mismatch.step,
            place=self._place(mismatch.site),
            arguments=mismatch.arguments,
            operands=[self._operand(known) for known in mismatch.inputs],
            count=mismatch.count,
            fatal=mismatch.fatal,
        )

    def _clips(self) -> list[ScaledClip]:
        found = []
        for clip in self.tracer.steps.clipping.all:
            place = self._place(clip.site)
            assert place is not None
            found.append(ScaledClip(place, clip.by_value, clip.step, clip.size, clip.limit, clip.scale, clip.times))
        return found

    def _local(self) -> list[LocalErrorRecord]:
        shadow = self.tracer.shadow
        if shadow is None:
            return []
        return [
            LocalErrorRecord(
                entry=self._entry_of[id(signature)],
                calls=found.calls,
                error=found.error,
                worst=found.worst,
                values=found.values,
                saturated=found.saturated,
                vanished=found.vanished,
                amplified=found.amplified,
            )
            for signature, found in shadow.errors.items()
        ]

    def _gains(self) -> list[Gains]:
        shadow = self.tracer.shadow
        found = shadow.gains.items() if shadow is not None else ()
        return [
            Gains(
                self._entry_of[id(signature)],
                [gains[n].gain if n in gains else 1.0 for n in range(len(signature.inputs))],
            )
            for signature, gains in found
            if id(signature) in self._entry_of
        ]

    def _sketches(self) -> SketchesRecord | None:
        sketches = self.tracer.flow.sketches
        if sketches is None:
            return None
        return SketchesRecord(
            ops=[self._entry_of[id(signature)] for signature in sketches.signatures],
            tensors=list(sketches.tensors),
            names=list(sketches.names),
            steps=sketches.packed(),
        )

    def _scaler(self, events: list[Event]) -> ScalerRecord | None:
        scaler = self.tracer.steps.scaler
        if not scaler.updates:
            return None
        numbers = {id(event): number for number, event in enumerate(events)}
        causes = [SkipCause(numbers[key], count) for key, (_, count) in scaler.causes.items()]
        return ScalerRecord(
            updates=scaler.updates,
            skipped=scaler.skipped,
            leading=scaler.leading,
            scale=scaler.scale,
            causes=sorted(causes, key=lambda cause: -cause.count),
            place=self._place(scaler.site),
            lowest=scaler.lowest,
            changes=[ScaleChange(update, scale) for update, scale in scaler.changes],
            skips=[Skip(step, None if cause is None else numbers[id(cause)]) for step, cause in scaler.skips],
        )


def _composites(sites: Sequence[Site]) -> dict[int, str]:
    """Of the sites at which one call ran several operators that compute something: the composite that was called."""
    found = {}
    for site in sites:
        names = {
            s.op.name for s in site.signatures.values() if not (s.backward or s.carries or s.op.cast or s.op.fresh)
        }
        called = site.called if len(names) > 1 else ""
        if called and is_composite(called):
            found[id(site)] = called
    return found


def _may_overflow(event: Event) -> bool:
    """Is it an overflow, or perhaps the trail of one that was not traced?"""
    return event.kind == "overflow" or event.hidden or event.unwatched is not None


def _range(dtype: torch.dtype, span: Range) -> RangeRecord:
    return RangeRecord(dtype_name(dtype), span.low, span.high)
