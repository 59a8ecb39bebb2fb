"""Two runs, compared: the operators that differ by more than rounding, each with its line, and what every module adds.

An operator is judged by what was measured on its operands, so that a difference is reported where it begins and not again
where it arrives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint.compare.align import align, have_same_weights, resized
from dtlint.compare.difference import FLOOR, relative
from dtlint.compare.operands import Operands, Pair, Side, operands_of
from dtlint.compare.precision import loss_and_scale, precision_of, without_scale
from dtlint.compare.roundoff import DECIDING, MIXING, NORMALISING, SAFETY, explained, unit_roundoff
from dtlint.compare.run import CannotCompare, Line, Run
from dtlint.trace.schema import SAMPLE

if TYPE_CHECKING:
    from dtlint.compare.align import Aligned
    from dtlint.compare.precision import Precision
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Place

__all__ = ["Compared", "Comparison", "Finding", "Module", "compare"]

LEAST_SHARE = 0.3
"""Below this share of results that have a counterpart, two records are of different programs, unless their parameters have the
same names: then a piece was written anew, perhaps as a long loop."""

RANDOM = frozenset(
    (
        *("rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "uniform"),
        *("normal", "exponential", "random", "trunc_normal", "native_dropout", "geometric", "log_normal", "cauchy"),
    )
)
"""Operators that draw random numbers, and look at no values for it."""

DRAWN_APART = 0.05
"""A difference above which random numbers were drawn by another state, and not rounded."""

STEPPED = 0.02
"""What a step of training may have done to anything. Adam makes a whole step of the sign of a gradient, which is noise
where the gradient is 0: few weights differ by much, and a sample does not tell how many."""

LONG = 16
"""So many operators of one line in a row, each of which takes the result of the one before, are a running total."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An operator whose results differ by more than rounding explains."""

    step: int
    """Counted from 0."""
    op: str
    backward: bool
    place: Place
    """In the second run; that of `cause`, if there is one."""
    counterpart: Place
    """Of the operator in the first run."""
    dtypes: tuple[str, str]
    """Of the result in both runs."""
    difference: float
    """Relative; infinite where only one of them is finite."""
    explained: float
    """The largest difference that rounding explains."""
    incoming: float
    """The largest difference of an operand."""
    ratio: float
    """The norm of the second result over that of the first."""
    cause: str
    """What one run does on the way that the other does not, or that it is a running total; or ""."""
    times: int = 1
    """Findings at this line, over steps, modules and ranks."""
    number: int = 0
    """Where it stands in its step."""
    ranks: tuple[int, ...] = ()
    """Where several ranks were compared, those on which it was found."""


@dataclass(slots=True)
class Compared:
    """The results of one operator of a line of source, over steps, modules and ranks."""

    op: str
    backward: bool
    place: Place
    """In the second run."""
    counterpart: Place
    """In the first run."""
    dtypes: tuple[str, str]
    modules: list[str]
    """In which it ran."""
    results: int = 0
    equal: int = 0
    beyond: int = 0
    """Results that differ by more than rounding explains."""
    difference: float = 0.0
    """Relative, of the result that is farthest beyond what rounding explains, or nearest to it; so are the next two."""
    explained: float = 0.0
    incoming: float = 0.0

    @property
    def share(self) -> float:
        """The difference over the largest that rounding explains."""
        return self.difference / self.explained if self.explained else 0.0

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two the same."""
        at = self.place
        return at.file, at.line, at.column, self.op, self.backward, self.dtypes

    def join(self, other: Compared) -> None:
        """Add what was compared elsewhere."""
        self.results += other.results
        self.equal += other.equal
        self.beyond += other.beyond
        self.modules += [module for module in other.modules if module not in self.modules]
        if other.share > self.share:
            self.difference, self.explained, self.incoming = other.difference, other.explained, other.incoming


@dataclass(slots=True)
class Module:
    """What the operators of a module add to the difference in the forward."""

    path: str
    squares: float = 0.0
    worst: float = 0.0
    """What the operator adds that adds most."""
    place: Place | None = None
    op: str = ""

    @property
    def added(self) -> float:
        """The root of the sum of squares of what each operator added to the largest difference of its operands: by its
        own rounding and that of casts to it, and by making larger what they brought."""
        return math.sqrt(self.squares)


@dataclass(slots=True)
class Comparison:
    """What two records show."""

    names: tuple[str, str]
    steps: list[int]
    """Those compared, counted from 0."""
    precision: Precision
    compared: int = 0
    equal: int = 0
    """Results that do not differ, as far as sketches tell."""
    not_judged: int = 0
    """Results of values that were picked by an index, which was computed from values that differ."""
    skipped: int = 0
    """Casts and copies."""
    findings: list[Finding] = field(default_factory=list)
    """In the order in which they ran."""
    modules: list[Module] = field(default_factory=list)
    """Those that add most come first."""
    sites: list[Compared] = field(default_factory=list)
    """All that was judged, by operator and line, in the order in which they first ran."""
    honest: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """By the dtypes of the result in both runs: the differences that rounding explains."""
    unmatched: list[tuple[str, Line]] = field(default_factory=list)
    """By line of source, the first result that only one run has, with the name of that run."""
    losses: list[tuple[int, float, float]] = field(default_factory=list)
    """Steps, with the losses of both runs from which a backward began; of several ranks, on the first."""
    ranks: list[int] = field(default_factory=list)
    """Where several ranks were compared, these."""


def compare(first: TraceRecord, second: TraceRecord, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Compare the second run with the first.

    Raises:
        CannotCompare: their difference has another reason than rounding, or they cannot be compared at all.
    """
    one, other = Run(first, names[0]), Run(second, names[1])
    if min(first.world, second.world) > 1 and first.rank != second.rank:
        raise CannotCompare(
            f"{names[0]} is of rank {first.rank} and {names[1]} of rank {second.rank}, which have batches of their own;"
            " give the same rank of both runs"
        )
    steps = sorted(one.steps.keys() & other.steps.keys())
    if not steps:
        raise CannotCompare(f"{names[0]} and {names[1]} share no sketched step; trace both with the same --steps")
    return _Walk(one, other, steps).done()


class _Walk:
    """Goes over the steps, and sorts what is found."""

    def __init__(self, one: Run, other: Run, steps: list[int]) -> None:
        self.runs = one, other
        self.skips = {s.step for run in self.runs if run.record.scaler is not None for s in run.record.scaler.skips}
        self.scaled = one.record.scaler is not None, other.record.scaler is not None
        first, second = one.lines(steps[0]), other.lines(steps[0])
        precision = precision_of(first, second, align(first, second))
        self.into = Comparison((one.name, other.name), steps, precision)
        self.findings: dict[tuple[str, int, bool], Finding] = {}
        self.modules: dict[str, Module] = {}
        self.sites: dict[tuple[object, ...], Compared] = {}
        self.unmatched: dict[tuple[str, str, int], tuple[str, Line]] = {}

    def done(self) -> Comparison:
        """Compare all steps."""
        try:
            for number in self.into.steps:
                self._step(number)
        except CannotCompare:
            self._refuse_other_sizes()  # which is why all else differs, too
            raise
        self.into.findings = list(self.findings.values())
        self.into.modules = sorted(self.modules.values(), key=lambda module: -module.squares)
        self.into.sites = list(self.sites.values())
        self.into.unmatched = list(self.unmatched.values())
        return self.into

    def _refuse_other_sizes(self) -> None:
        steps = self.into.steps[:2]  # in the first one a model may be made, and its weights have no names yet
        sizes = (resized(*(run.lines(step) for run in self.runs)) for step in steps)
        other = next(filter(None, sizes), None)
        if other is None:
            return
        one, its = (list(line.shape) for line in other)
        names = self.into.names
        raise CannotCompare(
            f"{names[0]} and {names[1]} are of different models: {other[0].name} has the shape {one} in the one, and"
            f" {its} in the other; trace one program twice"
        ) from None

    def _have_same_weights(self) -> bool:
        steps = self.into.steps[:2]
        return any(have_same_weights(*(run.lines(step) for run in self.runs)) for step in steps)

    def _step(self, number: int) -> None:
        first, second = (run.lines(number) for run in self.runs)
        aligned = align(first, second)
        if aligned.share < LEAST_SHARE and not self._have_same_weights():
            raise CannotCompare(
                f"{self.into.names[0]} and {self.into.names[1]} are of different programs: {aligned.share:.0%} of the"
                f" results of step {number + 1} have a counterpart; trace one program twice"
            )
        if any(self.scaled):
            without_scale(first, second, aligned, self.scaled)
        self.into.skipped += aligned.skipped
        for name, lines in zip(self.into.names, (aligned.only_first, aligned.only_second), strict=True):
            for line in lines:
                if line.entry is not None and line.place is not None:
                    self.unmatched.setdefault((name, line.place.file, line.place.line), (name, line))
        _Step(self, number, first, second, aligned).judge()

    def found(self, finding: Finding) -> None:
        """Findings at one line are one."""
        key = finding.place.file, finding.place.line, finding.backward
        known = self.findings.get(key)
        self.findings[key] = finding if known is None else replace(known, times=known.times + 1)

    def judged(self, site: Compared) -> None:
        """Results of an operator were compared."""
        known = self.sites.setdefault(site.key, site)
        if known is not site:
            known.join(site)

    def adds(self, line: Line, squares: float) -> None:
        """An operator adds so much to the difference of its operands."""
        module = self.modules.setdefault(line.module, Module(line.module))
        module.squares += squares / len(self.into.steps)
        if squares > module.worst**2:
            module.worst, module.place, module.op = math.sqrt(squares), line.place, line.op


class _Step:
    """One step: each pair is judged by those before it."""

    def __init__(self, walk: _Walk, number: int, first: list[Line], second: list[Line], aligned: Aligned) -> None:
        self.walk, self.into, self.number, self.matched = walk, walk.into, number, aligned.pairs
        self.sides = Side(first, set(aligned.pairs.values())), Side(second, set(aligned.pairs))

    def judge(self) -> None:
        """Go over the second run's lines in the order in which they ran."""
        first, second = self.sides
        for other in second.lines:
            if other.number not in self.matched:
                continue
            one = first.lines[self.matched[other.number]]
            if one.sketch is None or other.sketch is None:
                continue
            pair = Pair(one, other, relative(one.sketch, other.sketch))
            if other.brought:
                self._outside(pair)
            elif other.op in RANDOM:
                self._drawn(pair)
            elif not self._computed(pair):
                continue
            if not (one.sketch.masks and other.sketch.masks):  # what it was made of tells more of the rest
                first.pairs[one.number] = second.pairs[other.number] = pair

    # -- what must be alike -------------------------------------------------------------------------------------------

    def _outside(self, pair: Pair) -> None:
        """Weights and data must be the same where the runs begin."""
        one, other = pair.one, pair.other
        limit = SAFETY * max(unit_roundoff(one.dtype), unit_roundoff(other.dtype)) + FLOOR
        weight = other.name.startswith("parameter ")
        if pair.difference <= limit or self.number != self.into.steps[0] or other.backward:
            return
        at = f" at {other.place.file}:{other.place.line}" if other.place is not None else ""
        if not other.name:
            raise CannotCompare(
                f"the runs read different data in step {self.number + 1}{at}: it differs by {pair.difference:.0%};"
                " give both the same batches in the same order, and trace again"
            )
        if weight and self.number == 0:
            raise CannotCompare(
                f"the runs begin with different weights: {other.name} differs by {pair.difference:.0%};"
                " load or seed both alike, and trace again"
            )

    def _drawn(self, pair: Pair) -> None:
        place = pair.other.place
        if pair.difference > DRAWN_APART and place is not None:
            raise CannotCompare(
                f"the runs draw different random numbers in step {self.number + 1} at {place.file}:{place.line}"
                f" ({pair.other.op}); set the same seed, or turn dropout off, and trace again"
            )

    # -- what rounding may change -------------------------------------------------------------------------------------

    def _computed(self, pair: Pair) -> bool:
        """Judge a pair. False if it is none: autograd adds up gradients in any order, so that partial sums are of others."""
        into, one, other = self.into, pair.one, pair.other
        operands = operands_of(one, other, self.sides, into.precision.same)
        if other.backward and other.op == "add" and not operands.alike:
            return False
        into.compared += 1
        into.equal += pair.difference <= FLOOR
        self._loss(pair)
        if operands.indexed:
            into.not_judged += 1
        elif other.backward and self.number in self.walk.skips:
            pass  # the GradScaler expects that it is not finite
        elif not any(math.isinf(operand.difference) for operand in operands.incoming):  # else it was reported there
            self._judge(pair, operands)
        return True

    def _judge(self, pair: Pair, operands: Operands) -> None:
        into, one, other = self.into, pair.one, pair.other
        dtype = (min if into.precision.same else max)(one.dtype, other.dtype, key=unit_roundoff)
        expected = explained(one, operands.incoming, dtype, self._rstd(one))
        limit = min(expected.most, self._in_a_row(pair, operands, unit_roundoff(dtype)))
        limit = max(limit, STEPPED if self.number else 0.0)
        self.walk.judged(_compared(pair, operands, limit))
        if pair.difference > limit:
            self._found(pair, operands, limit)
        else:
            into.honest.setdefault((one.dtype, other.dtype), []).append(pair.difference)
        if not (other.backward or math.isinf(pair.difference)):
            brought = max((operand.difference for operand in operands.incoming), default=0.0)
            self.walk.adds(other, max(pair.difference**2 - brought**2, 0.0))
        decides = one.op in DECIDING or any(operand.decides for operand in operands.incoming)
        pair.sparse = one.numel > SAMPLE and (decides or (one.op not in MIXING and operands.sparse))
        if pair.sparse:
            pair.difference = max(pair.difference, min(expected.carried, 1.0))

    def _rstd(self, line: Line) -> float:
        """The largest 1 / deviation of an operator that normalises: the last of its results, or of its backward's operands."""
        lines = self.sides[0].lines
        if line.op in NORMALISING:
            last = next((at for at in lines[line.number : line.number + 3] if at.output == 2), None)
            return last.sketch.reach if last is not None and last.sketch is not None else 1.0
        makers = (lines[source] for source in line.sources)
        return max(
            (at.sketch.reach for at in makers if at.op in NORMALISING and at.output == 2 and at.sketch), default=1.0
        )

    def _in_a_row(self, pair: Pair, operands: Operands, roundoff: float) -> float:
        """The largest difference that rounding explains of a running total: each addition rounds at random.

        Where most of them round the same way, as where what is added is too small to count, that is more than this.
        """
        others = 0.0
        before: Pair | None = None
        for operand in operands.incoming:
            known = self.sides[0].pairs[operand.line.number]
            if known.other.entry is pair.other.entry and known.one.entry is pair.one.entry:
                before = known
            else:
                gain = operand.line.rms / max(pair.one.rms, 1e-30)
                others += (gain * operand.difference) ** 2
        pair.brought = others + (before.brought if before is not None else 0.0)
        pair.row = 1 + (before.row if before is not None else 0)
        if pair.row < LONG:
            return math.inf
        return SAFETY * math.sqrt(pair.brought + pair.row * roundoff**2) + FLOOR

    def _found(self, pair: Pair, operands: Operands, limit: float) -> None:
        into, one, other = self.into, pair.one, pair.other
        assert one.place is not None
        assert other.place is not None
        assert one.sketch is not None
        assert other.sketch is not None
        place, cause = other.place, ""
        theirs, ours = ([line for line in lines if into.precision.same or not line.moves] for lines in operands.alone)
        if ours and ours[0].place is not None:
            place, cause = ours[0].place, f"only {into.names[1]} {_does(ours[0])} there"
        elif theirs and theirs[0].place is not None:
            at = theirs[0].place
            cause = f"only {into.names[0]} {_does(theirs[0])} before it, at {at.file}:{at.line}"
        elif pair.row >= LONG:
            cause = f"it is the {pair.row}th in a row that takes the result of the one before"
        ratio = other.sketch.norm / one.sketch.norm if one.sketch.norm else math.inf
        self.walk.found(
            Finding(
                step=self.number,
                op=other.op,
                backward=other.backward,
                place=place,
                counterpart=one.place,
                dtypes=(one.dtype, other.dtype),
                difference=pair.difference,
                explained=limit,
                incoming=max((operand.difference for operand in operands.incoming), default=0.0),
                ratio=ratio,
                cause=cause,
                number=other.number,
            )
        )

    def _loss(self, pair: Pair) -> None:
        """`loss.backward()` begins with ones like the loss, which is the number that was made last."""
        other = pair.other
        begins = (
            other.op == "ones_like"
            and other.shape == ()
            and "backward" in (other.place.expression if other.place else "")
        )
        if not begins or any(step == self.number for step, *_ in self.into.losses):
            return
        values = [
            _loss_before(side.lines, line, scaled)
            for side, line, scaled in zip(self.sides, (pair.one, other), self.walk.scaled, strict=True)
        ]
        if values[0] is not None and values[1] is not None:
            self.into.losses.append((self.number, values[0], values[1]))


def _compared(pair: Pair, operands: Operands, limit: float) -> Compared:
    one, other = pair.one, pair.other
    assert one.place is not None
    assert other.place is not None
    return Compared(
        op=other.op,
        backward=other.backward,
        place=other.place,
        counterpart=one.place,
        dtypes=(one.dtype, other.dtype),
        modules=[other.module] if other.module else [],
        results=1,
        equal=int(pair.difference <= FLOOR),
        beyond=int(pair.difference > limit),
        difference=pair.difference,
        explained=limit,
        incoming=max((operand.difference for operand in operands.incoming), default=0.0),
    )


def _does(line: Line) -> str:
    return f"casts to {line.dtype}" if line.moves else f"runs {line.op}"


def _loss_before(lines: list[Line], line: Line, scaled: bool) -> float | None:
    """The number from which a backward begins; with a GradScaler the one that it scaled, as far as that was seen."""
    loss = next((lines[n] for n in line.sources if lines[n].shape == ()), None)
    if loss is not None and scaled:
        found = loss_and_scale(lines, loss)
        loss = found[0] if found is not None else None
    if loss is None or loss.sketch is None:
        return None
    return loss.sketch.high if loss.sketch.high > 0 else loss.sketch.low
