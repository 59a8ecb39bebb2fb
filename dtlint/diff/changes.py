"""What changed in the dtypes of a program: causes, each with the operators that only followed from it.

Operators of two runs are paired by module and source text; what is left of a module, by operator and likeness of the
text. A change is a consequence where one of its operands had its dtype decided at another change: the tracer says
where. What is left are the causes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from dtlint.diff.facts import Fact, Facts, facts_of, is_float
from dtlint.dtypes.dtype import DTYPES, REAL_PARTS
from dtlint.dtypes.promotion import promote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dtlint.trace.record import TraceRecord

__all__ = ["FACTOR", "KINDS", "NEAR", "Change", "Moved", "changes"]

FACTOR = 8.0
"""How many times larger a magnitude must be to count, by default."""

NEAR = 1 / 64
"""The share of its dtype's largest value from which a magnitude counts at all."""

KINDS = ("promotion", "cast", "dtype", "autocast", "data", "output", "magnitude", "nonfinite", "gone")
"""Kinds of changes: see `Change.kind`."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Something that has another dtype than before."""

    what: str
    """A module's path, or the source text of an operator."""
    module: str
    was: str
    now: str


@dataclass(slots=True)
class Change:
    """One cause of changes."""

    kind: str
    """`promotion` (an operator that raises its operands now), `cast` (one that was not there), `dtype` (an operator that
    gives another one), `autocast` (operators ran under it that did not before, or the other way round, or it has
    another dtype), `data` (what is read has another dtype, as weights and batches), `output` (of a module, where no
    operator of it changed), `magnitude`, `nonfinite`, or `gone` (a promotion or a cast that is there no more)."""
    fact: Fact
    """The operator; of data, its first reader."""
    line: int
    """Where it stands in the new run; 0 if it is gone."""
    was: str
    """A dtype, or a magnitude; "" if there was none."""
    now: str
    regression: bool
    """Is it for the worse? A narrower dtype is not, nor is what is gone."""
    modules: list[str] = field(default_factory=list)
    """Where the same expression changed in the same way; the fact's own module first."""
    followed: list[Moved] = field(default_factory=list)
    """Operators that moved since this did, in the order in which they ran."""
    outputs: list[Moved] = field(default_factory=list)
    """Modules whose output moved since this did."""


def changes(old: Facts, record: TraceRecord, factor: float = FACTOR) -> list[Change]:
    """What changed from the facts of an earlier run to this one, regressions first, then in the order of the run."""
    return _Comparison(old, record, factor).causes()


class _Comparison:
    """One pass over the new run: each operator is paired, then told as a cause or a consequence."""

    def __init__(self, old: Facts, record: TraceRecord, factor: float) -> None:
        self.old, self.record, self.factor = old, record, factor
        self.new = facts_of(record)
        self.fact_of = dict(zip(self.new.entries, self.new.operators, strict=True))
        self.was, self.gone = _paired(old.operators, self.new.operators)
        self.kind: dict[int, str] = {}
        """By entry: how it changed. Of the others nothing is to be said."""
        for number, fact, was in zip(self.new.entries, self.new.operators, self.was, strict=True):
            kind = _kind(fact, was)
            if kind:
                self.kind[number] = kind
        self.before = dict(zip(self.new.entries, self.was, strict=True))
        self.raised: dict[int, int] = {}
        """By the entry at which the wide operand of a promotion had its dtype decided: that promotion, the first of them.

        The tracer says of what follows a promotion that its dtype was decided there.
        """
        for number in self.kind:
            entry = record.entries[number]
            if self.kind[number] == "promotion" and entry.culprit is not None:
                origin = entry.inputs[entry.culprit].origin
                if origin is not None:
                    self.raised.setdefault(origin, number)

    def causes(self) -> list[Change]:
        """Causes with what followed from them."""
        found: dict[object, Change] = {}
        of_entry: dict[int, Change] = {}
        for number in self.kind:
            root = self._root(number)
            change = self._cause(root, found)
            of_entry[number] = change
            if number != root or change.kind in ("data", "autocast", "gone"):
                self._follow(change, number)
        self._outputs(found, of_entry)
        self._values(found)
        self._left(found)
        return sorted(found.values(), key=lambda change: not change.regression)

    def _root(self, number: int) -> int:
        """The change that this one follows from; itself, if it follows from none."""
        seen = {number}
        while True:
            cause = next((one for one in self._decided_at(number) if one not in seen), None)
            if cause is None:
                return number
            seen.add(cause)
            number = cause

    def _decided_at(self, number: int) -> Iterator[int]:
        """The changes at which the operands of an entry had their dtypes decided, that of the one to blame first."""
        entry = self.record.entries[number]
        was = self.before.get(number)
        for index in sorted(range(len(entry.inputs)), key=lambda index: index != entry.culprit):
            operand = entry.inputs[index]
            same = was is not None and index < len(was.given) and was.given[index] == operand.dtype
            if operand.origin is None or same or not is_float(operand.dtype):
                continue
            raised = self.raised.get(operand.origin, number)
            if operand.origin in self.kind:
                yield operand.origin
            elif raised < number:
                yield raised

    def _cause(self, number: int, found: dict[object, Change]) -> Change:
        """The change of which this entry is a root: one for all modules that run the same expression."""
        fact, was, kind = self.fact_of[number], self.before[number], self.kind[number]
        line = self._line(number)
        old, new = (fact.given[-1], fact.gave) if kind == "cast" else (was.gave if was else "", fact.gave)
        key: object = (kind, fact.source, fact.op, fact.file, old, new)
        if kind == "dtype" and was is not None:
            read = _read(fact, was)
            if was.autocast != fact.autocast:
                kind, key = "autocast", ("autocast", fact.autocast)
            elif fact.cast == "autocast":
                kind, key = "autocast", ("autocast", old, new)
            elif read is not None:
                old, new = read
                cast = next(
                    (one for one in self.gone if one.cast == "asked" and (one.given[-1], one.gave) == (new, old)), None
                )
                kind, key = "data", ("data", old, new)
                if cast is not None:
                    kind, key, fact, line = "gone", _gone(cast), cast, 0
        change = found.get(key)
        if change is None:
            change = found[key] = Change(kind, fact, line, old, new, kind == "promotion" or _wider(new, old))
        if fact.module not in change.modules and (kind in ("promotion", "cast", "dtype") or not change.modules):
            change.modules.append(fact.module)
        return change

    def _line(self, number: int) -> int:
        return self.record.places[self.record.entries[number].place].line

    def _follow(self, change: Change, number: int) -> None:
        fact, was = self.fact_of[number], self.before[number]
        old = was.gave if was is not None else fact.given[-1] if fact.given else ""
        change.followed.append(Moved(fact.source, fact.module, old, fact.gave))

    def _outputs(self, found: dict[object, Change], of_entry: dict[int, Change]) -> None:
        """Outputs of modules: told with the cause of the operator that gave them, else on their own."""
        for module, dtype in self.new.outputs.items():
            was = self.old.outputs.get(module, dtype)
            if was == dtype:
                continue
            number = self.new.last[module]
            change = of_entry.get(number) or next((of_entry[one] for one in self._decided_at(number)), None)
            if change is None:
                fact = self.fact_of[number]
                change = found.setdefault(
                    ("output", was, dtype), Change("output", fact, self._line(number), was, dtype, _wider(dtype, was))
                )
            change.outputs.append(Moved(module, module, was, dtype))

    def _values(self, found: dict[object, Change]) -> None:
        """Larger magnitudes, and non-finite values that did not begin there before."""
        values = self.record.watched is None or bool(self.record.watched)
        for number, fact, was in zip(self.new.entries, self.new.operators, self.was, strict=True) if values else ():
            line = self._line(number)
            if fact.born and (was is None or was.born != fact.born):
                key: object = ("nonfinite", fact.source, fact.op, fact.born)
                change = found.setdefault(key, Change("nonfinite", fact, line, "", fact.born, True))
            elif was is not None and was.gave == fact.gave and self._is_larger(was, fact):
                key = ("magnitude", fact.source, fact.op)
                change = found.setdefault(
                    key, Change("magnitude", fact, line, f"{was.reach:.3g}", f"{fact.reach:.3g}", True)
                )
            else:
                continue
            change.modules.append(fact.module)

    def _is_larger(self, was: Fact, now: Fact) -> bool:
        return bool(was.reach) and now.reach > self.factor * was.reach and now.reach > NEAR * DTYPES[now.gave].max

    def _left(self, found: dict[object, Change]) -> None:
        """Promotions, and casts that the program asked for, which are there no more: told where nothing got worse.

        Else a cast may be gone since what it casts has its dtype already, by one of the causes.
        """
        for fact in [] if any(change.regression for change in found.values()) else self.gone:
            if not (fact.promoted or fact.cast == "asked") or not fact.given:
                continue
            change = found.setdefault(
                _gone(fact), Change("gone", fact, 0, fact.gave, fact.given[-1] if fact.cast else "", False)
            )
            if fact.module not in change.modules:
                change.modules.append(fact.module)


def _gone(fact: Fact) -> object:
    return "gone", fact.source, fact.op, fact.given, fact.gave


def _kind(fact: Fact, was: Fact | None) -> str:
    """How an operator changed, against what it was; "" where nothing is to be said."""
    if fact.promoted and not (was is not None and was.promoted and was.gave == fact.gave):
        return "promotion"
    if was is None:
        return "cast" if fact.cast == "asked" and is_float(fact.given[-1] if fact.given else "") else ""
    return "dtype" if was.gave != fact.gave else ""


def _read(fact: Fact, was: Fact) -> tuple[str, str] | None:
    """The dtype before and now of a floating operand that has another one."""
    pairs = zip(was.given, fact.given, strict=False)
    return next(((old, new) for old, new in pairs if old != new and is_float(old) and is_float(new)), None)


def _wider(now: str, was: str) -> bool:
    """Has it values that the dtype before could not hold? float16 and bfloat16 are each wider than the other."""
    if not was or not now or was == now:
        return bool(now) and was != now
    now, was = REAL_PARTS.get(now, now), REAL_PARTS.get(was, was)
    return promote(now, was) != was


# -- pairing -----------------------------------------------------------------------------------------------------------


def _paired(old: Sequence[Fact], new: Sequence[Fact]) -> tuple[list[Fact | None], list[Fact]]:
    """For each new fact the one that it was; and the old ones that none is any more.

    The first of these that fits: the same in all; the same place with other dtypes; the same in another module, as of a
    module that was renamed; the same operator in the same module, with the text that is most alike.
    """
    same = {_whole(fact): fact for fact in old}
    was = [same.get(_whole(fact)) for fact in new]
    stays = {_whole(fact) for fact in new}
    left = dict.fromkeys(fact for fact in old if _whole(fact) not in stays)
    for key in (_place, _unplaced):
        waiting: defaultdict[object, list[Fact]] = defaultdict(list)
        for fact in left:
            waiting[key(fact)].append(fact)
        for index, fact in enumerate(new):
            if was[index] is None and waiting[key(fact)]:
                found = was[index] = waiting[key(fact)].pop(0)
                del left[found]
    _pair_alike(was, new, left)
    _pair_known_places(was, new, old)
    return was, list(left)


def _whole(fact: Fact) -> object:
    return (*fact.place, fact.given, fact.gave, fact.cast, fact.promoted)


def _place(fact: Fact) -> object:
    return fact.place


def _unplaced(fact: Fact) -> object:
    return fact.source, fact.op, fact.given, fact.gave


def _pair_alike(was: list[Fact | None], new: Sequence[Fact], left: dict[Fact, None]) -> None:
    for index, fact in enumerate(new):
        if was[index] is None:
            alike = [one for one in left if (one.module, one.op) == (fact.module, fact.op)]
            if alike:
                best = max(alike, key=lambda one: SequenceMatcher(None, one.source, fact.source).ratio())
                was[index] = best
                del left[best]


def _pair_known_places(was: list[Fact | None], new: Sequence[Fact], old: Iterable[Fact]) -> None:
    """An expression that now also runs in another dtype was what it was before; but for casts, each of its own."""
    known = {fact.place: fact for fact in old if not fact.cast}
    for index, fact in enumerate(new):
        if was[index] is None and not fact.cast:
            was[index] = known.get(fact.place)
