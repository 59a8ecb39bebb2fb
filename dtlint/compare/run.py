"""The sketches of a record as lines: each result of a step, what made it, what it was made of.

This reads what `dtlint.trace.sketch` wrote; the form of the text is told at `dtlint.trace.schema.SketchedStep`.
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.trace.schema import METHOD, PROJECTIONS, SAMPLE

if TYPE_CHECKING:
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Place, SketchedStep, Sketches

__all__ = ["CannotCompare", "Line", "Run", "Sketch"]

WRAPPERS = frozenset(("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
"""Parts of a module's path that DistributedDataParallel, torch.compile and their kin put there."""

BARRED = -6e4
"""Values this low only bar positions; the norm and the sums leave them out."""

BARS = -1000.0
BAR_RATIO = 100
"""Numbers that bar positions are at least this low, and so many times below the highest."""

MOVES = frozenset(("_to_copy", "clone"))
"""Operators of which no sketch is made: what they give is what they are given, in another dtype or place."""

SIZE = 3 + PROJECTIONS


class CannotCompare(ValueError):
    """Two records that say nothing about rounding; the message is one line, and says what to do."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is known of the values of a tensor."""

    low: float
    high: float
    """Of the sampled values, and 0 where there are fewer than SAMPLE. NaN if one of them is."""
    norm: float
    """Of the sampled values."""
    sums: tuple[float, ...]
    """Of the sampled values, each times 1 or -1."""

    @property
    def finite(self) -> bool:
        """Is there no NaN and no inf? The -inf of a mask does not count."""
        return self.high < math.inf and not math.isnan(self.low)

    @property
    def masks(self) -> bool:
        """Does it hold numbers that only bar positions, as -1e4 or finfo.min do? All else in it is small beside them."""
        return self.low <= BARS and self.low < -BAR_RATIO * max(self.high, 1.0)

    @property
    def reach(self) -> float:
        """The largest magnitude, that of values which bar positions aside."""
        low = self.low if self.low > BARRED else 0.0
        return max(abs(self.high), abs(low))

    def scaled(self, factor: float) -> Sketch:
        """Of the values times a positive number."""
        sums = tuple(factor * each for each in self.sums)
        return Sketch(self.low * factor, self.high * factor, self.norm * factor, sums)


@dataclass(slots=True)
class Line:
    """One result of an operator, or a tensor that came from outside."""

    number: int
    """In its step, from 0, in the order in which the operators ran."""
    entry: Entry | None
    """None of what came from outside."""
    place: Place | None
    """Of the operator; of what came from outside, of its first reader, if that is known."""
    output: int
    """Which of the operator's results it is."""
    dtype: str
    shape: tuple[int, ...]
    name: str
    """`parameter fc.weight` of what came from outside, or ""."""
    sources: tuple[int, ...]
    """The lines that wrote the operands."""
    sketch: Sketch | None

    @property
    def op(self) -> str:
        """The operator's name, without the sign that it works in place; "" of what came from outside."""
        return "" if self.entry is None else self.entry.op.rstrip("_")

    @property
    def module(self) -> str:
        """The path of the module that ran, wrappers aside."""
        return plain_path(self.place.module) if self.place is not None else ""

    @property
    def backward(self) -> bool:
        """Did it run in a backward?"""
        return self.entry is not None and self.entry.phase == "backward"

    @property
    def brought(self) -> bool:
        """Did it come from outside? A single number that the program makes a tensor of did not."""
        return self.entry is None or (self.entry.op == "lift_fresh" and self.numel > 1)

    @property
    def moves(self) -> bool:
        """Is it the operand in another dtype or place?"""
        return self.entry is not None and self.entry.op in MOVES

    @property
    def numel(self) -> int:
        """How many values the tensor has."""
        return math.prod(self.shape)

    @property
    def rms(self) -> float:
        """The root of the mean square of the sampled values."""
        return self.sketch.norm / math.sqrt(min(self.numel, SAMPLE)) if self.sketch is not None else 0.0

    @property
    def floating(self) -> bool:
        """Are its values floats?"""
        return self.dtype in DTYPES and DTYPES[self.dtype].category == Category.FLOAT


def plain_path(module: str) -> str:
    """A module's path without wrappers."""
    return ".".join(part for part in module.split(".") if part not in WRAPPERS)


class Run:
    """The sketched steps of a record."""

    def __init__(self, record: TraceRecord, name: str) -> None:
        """Of the record in the file `name`.

        Raises:
            CannotCompare: it has no sketches, those of another version, or those of several ranks.
        """
        self.record, self.name = record, name
        if record.ranks:
            raise CannotCompare(
                f"{name} is of several ranks, merged, which leaves no sketches; give the files or directories that the ranks wrote"
            )
        if record.sketches is None:
            raise CannotCompare(f"{name} has no sketches; trace again with: dtlint trace --sketch --output {name} ...")
        if record.sketches.method != METHOD:
            raise CannotCompare(
                f"{name} was written by dtlint {record.dtlint}, whose sketches are of another kind;"
                " trace both runs with one version"
            )
        if not record.sketches.steps:
            raise CannotCompare(f"{name} holds no sketch, since no operator was traced; trace steps that run operators")
        self.sketches: Sketches = record.sketches
        self.steps: dict[int, SketchedStep] = {step.step: step for step in record.sketches.steps}

    def lines(self, step: int) -> list[Line]:
        """The lines of a step that is in `steps`.

        Raises:
            CannotCompare: the record is damaged.
        """
        try:
            return list(self._lines(self.steps[step]))
        except (ValueError, IndexError, binascii.Error) as error:
            raise CannotCompare(f"{self.name} is damaged ({error}); trace again") from None

    def _lines(self, step: SketchedStep) -> list[Line]:
        values = array("f", base64.b64decode(step.values, validate=True))
        if sys.byteorder == "big":
            values.byteswap()
        kinds = [_kind(text) for text in self.sketches.tensors]
        record, ops, names = self.record, self.sketches.ops, self.sketches.names
        lines: list[Line] = []
        taken = 0
        for number, text in enumerate(step.lines.split(";")):
            subject, tensor, output, *sources = map(int, text.split())
            dtype, shape = kinds[tensor if tensor >= 0 else -1 - tensor]
            sketch = None
            if tensor >= 0:
                low, high, norm, *sums = values[taken : taken + SIZE]
                sketch = Sketch(low, high, norm, tuple(sums))
                taken += SIZE
            if subject >= 0:
                entry = record.entries[ops[subject]]
                place = record.places[entry.place]
                if any(not 0 <= source < number for source in sources):
                    raise IndexError(f"line {number} refers to one that is not before it")
                lines.append(Line(number, entry, place, output, dtype, shape, "", tuple(sources), sketch))
            else:
                reader = record.places[record.entries[ops[output]].place] if output >= 0 else None
                lines.append(Line(number, None, reader, 0, dtype, shape, names[-1 - subject], (), sketch))
        return lines


def _kind(text: str) -> tuple[str, tuple[int, ...]]:
    """`float32[2,3]`."""
    dtype, _, shape = text.removesuffix("]").partition("[")
    return dtype, tuple(int(size) for size in shape.split(",") if size)
