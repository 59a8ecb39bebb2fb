"""How the errors of operators in float16 add up to that of what a model gives.

Errors are relative, in norms: that of a tensor is the norm of its difference from what float32 gives, over its norm.

    error(n)^2 = (own(n) * sqrt(calls))^2 + sum over the makers m of its operands ((sum of gain(n, m)) * error(m))^2
    output     = SAFETY * the largest error of what models hand to the program, on the way to the loss if there is one

- *own*: what `--shadow` measured of the operator alone, as float16 rounds its operands and its result; 0 where it computes
  wide, and UNMEASURED units of roundoff where it has no shadow, as one that draws random numbers. An operator that runs
  several times for each backward, as in a recurrence, counts so often.
- *gain*: by how much the operator made a difference of one operand larger that was 2**-10 of each value, up or down at
  random: measured, so that a sum that cancels, a variance, an exponent and a product have theirs. Where it was not
  measured it is 1.

Assumed is that errors of different operators are independent of one another, and small; that what an error does is what a
random one of 2**-10 does; that each operator reads what it read at its first call; and that no decision turns (a mask, an
argmax, a top-k that is computed from values). SAFETY covers what that leaves out: see docs/which-layers-in-float32.md.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

__all__ = ["Added", "Errors"]

SAFETY = 2.0
"""How many times the estimate the error of an output may be."""

UNMEASURED = 2.0
"""The error of an operator in float16 that has no shadow, in units of roundoff: its operands are rounded, and its result."""

SEED = "ones_like"
"""The operator that makes the gradient of the loss with respect to itself."""


@dataclass(slots=True)
class Added:
    """What the operators of one module add to the error of the output."""

    module: str
    squares: float = 0.0
    worst: float = 0.0
    entry: int = -1
    """The operator that adds most, and how much."""

    @property
    def error(self) -> float:
        """As a relative error of the output, what is allowed for included."""
        return SAFETY * math.sqrt(self.squares)


class Errors:
    """The forward of a run, with what was measured of its operators."""

    def __init__(self, record: TraceRecord) -> None:
        self.record = record
        self.entries = record.entries
        self.local = {local.entry: local for local in record.local}
        gains = {one.entry: one.gains for one in record.gains}
        self.sources = [self._sources(entry, gains.get(number, [])) for number, entry in enumerate(record.entries)]
        """By entry: the makers of its operands, with the gains of each added up."""
        self.order = self._ordered()
        self.outputs = self._outputs()
        self._times = self._calls()

    def output(self, own: Callable[[int], float]) -> float:
        """The estimate of the error of what models give. `own` tells the error of each entry alone."""
        return SAFETY * max((error for _, error in self._at_outputs(own)), default=0.0)

    def added(self, own: Callable[[int], float]) -> list[Added]:
        """What modules add to it, most first."""
        output = max(self._at_outputs(own), key=lambda pair: pair[1], default=None)
        if output is None:
            return []
        weight = {output[0]: 1.0}
        found: dict[str, Added] = {}
        for number in reversed(self.order):
            square = weight.get(number, 0.0)
            if not square:
                continue
            for maker, gain in self.sources[number].items():
                weight[maker] = weight.get(maker, 0.0) + square * gain**2
            mine = square * self._own(number, own) ** 2
            module = self.record.places[self.entries[number].place].module
            if mine and module:
                one = found.setdefault(module, Added(module))
                one.squares += mine
                if mine > one.worst:
                    one.worst, one.entry = mine, number
        return sorted(found.values(), key=lambda one: -one.squares)

    def in_float16(self, low: Sequence[bool]) -> Callable[[int], float]:
        """The errors of entries by themselves, where those that are `low` compute in float16; of a run that assumed it."""

        def own(number: int) -> float:
            if not low[number]:
                return 0.0
            local = self.local.get(number)
            return local.error if local is not None else self._unmeasured(number, "float16")

        return own

    def as_it_ran(self, number: int) -> float:
        """The error of an entry by itself, as it ran."""
        local = self.local.get(number)
        return local.error if local is not None else self._unmeasured(number, self.entries[number].output or "")

    def _unmeasured(self, number: int, dtype: str) -> float:
        carries = self.entries[number].op in ("clone", "copy_", "cat", "index", "select", "slice")
        return 0.0 if carries or dtype not in DTYPES else UNMEASURED * DTYPES[dtype].eps / 2

    def _own(self, number: int, own: Callable[[int], float]) -> float:
        return own(number) * math.sqrt(self._times[number])

    def _at_outputs(self, own: Callable[[int], float]) -> list[tuple[int, float]]:
        error = [0.0] * len(self.entries)
        for number in self.order:
            squares = self._own(number, own) ** 2
            for maker, gain in self.sources[number].items():
                squares += (gain * error[maker]) ** 2
            error[number] = math.sqrt(squares)
        return [(number, error[number]) for number in self.outputs]

    def _sources(self, entry: Entry, gains: Sequence[float]) -> dict[int, float]:
        found: dict[int, float] = {}
        for number, operand in enumerate(entry.inputs):
            if operand.maker is not None and operand.dtype in FLOATING and entry.phase == "forward":
                maker = self.entries[operand.maker]
                if maker.phase == "forward" and maker.output in FLOATING:
                    gain = gains[number] if number < len(gains) else 1.0
                    found[operand.maker] = found.get(operand.maker, 0.0) + gain
        return found

    def _ordered(self) -> list[int]:
        """The entries of the forward, each after the makers of its operands."""
        order: list[int] = []
        met = [False] * len(self.entries)
        for start, entry in enumerate(self.entries):
            waiting = [(start, False)] if entry.phase == "forward" else []
            while waiting:
                number, ready = waiting.pop()
                if ready:
                    order.append(number)
                elif not met[number]:
                    met[number] = True
                    waiting.append((number, True))
                    waiting += [(maker, False) for maker in self.sources[number] if not met[maker]]
        return order

    def _outputs(self) -> list[int]:
        """What modules hand to the program; where there is a loss, on the way to it alone."""
        places = self.record.places
        readers: dict[int, list[int]] = {}
        for number in self.order:
            for maker in self.sources[number]:
                readers.setdefault(maker, []).append(number)
        losses = [
            operand.maker
            for entry in self.entries
            if entry.op == SEED
            for operand in entry.inputs[:1]
            if operand.maker is not None
        ]
        wanted, waiting = set(losses), list(losses)
        while waiting:
            new = [maker for maker in self.sources[waiting.pop()] if maker not in wanted]
            wanted.update(new)
            waiting += new
        return [
            number
            for number in self.order
            if places[self.entries[number].place].module
            and self.entries[number].output in FLOATING
            and (not losses or number in wanted)
            and all(not places[self.entries[reader].place].module for reader in readers.get(number, ()))
        ]

    def _calls(self) -> list[float]:
        """How often each runs for each backward; once, where there is none."""
        seeds = sum(entry.count for entry in self.entries if entry.op == SEED)
        counts: Counter[int] = Counter()
        for number in self.outputs:
            counts[self.entries[number].count] += 1
        each = seeds or (min(counts) if counts else 1)
        return [max(entry.count / each, 1.0) for entry in self.entries]
