"""Which results of a recorded run would be float16, if its models ran in float16 but for some modules.

The record's operands name the operators that made them; dtypes flow along these as autocast and promotion have it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING
from dtlint.trace.balance import autocast_policy

if TYPE_CHECKING:
    from collections.abc import Collection

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

__all__ = ["Flow"]

BOUNDED = frozenset("sigmoid sigmoid_ tanh tanh_ sin cos erf sign sgn isnan bernoulli".split())  # noqa: SIM905
"""Operators whose results are at most 1, whatever they are made of."""

FACTORIES = frozenset("zeros ones full eye linspace arange rand randn scalar_tensor lift_fresh".split())  # noqa: SIM905
"""Operators that make a tensor of the dtype that the program asked for."""

SEED = "ones_like"
"""The operator that makes the gradient of the loss with respect to itself."""

LOW, WIDE, FIRST, PROMOTES = "low", "wide", "first", "promotes"
"""What the dtype of a result is: float16, a wider one, that of the first operand, or the widest of all operands."""


@dataclass(slots=True)
class _Node:
    """What decides the dtype of one entry's results."""

    module: str
    rule: str
    makers: tuple[int | None, ...]
    """The entries that made its floating operands; None of a weight, or of what was made unseen."""


class Flow:
    """The operators of a run, and where the values of each came from."""

    def __init__(self, record: TraceRecord, how: str) -> None:
        """`how` float16 is brought about, of `precision_plan.HOW`."""
        self.record, self.how = record, how
        self.device = device_of(record)
        self.nodes = [self._node(entry) for entry in record.entries]
        self.forward: dict[int, list[int]] = {}
        """By place, its entries in the forward."""
        for number, entry in enumerate(record.entries):
            if entry.phase == "forward":
                self.forward.setdefault(entry.place, []).append(number)
        self.reach = self._reaches()
        """By entry, the largest finite magnitude of its results; of one that only moves values, that of what it moves."""
        self.scaled = self._scaled()
        """The entries of the backward whose results grow with the loss; others, as the x of x * x, do not."""

    def module(self, number: int) -> str:
        """The module that ran an entry; "" outside of any."""
        return self.nodes[number].module

    def low(self, keep: Collection[str]) -> list[bool]:
        """By entry: would its results be float16, with these modules kept?"""
        entries, nodes = self.record.entries, self.nodes
        low = [True] * len(nodes)
        changed = True
        while changed:  # from float16 only ever to wider; more than two rounds are for loops alone
            changed = False
            for number, entry in enumerate(entries):
                if low[number] and not self._is_low(number, entry, low, keep):
                    low[number] = False
                    changed = True
        return low

    def rounds(self, number: int, low: list[bool], keep: Collection[str]) -> list[str]:
        """Of a backward: the modules by which its results are rounded to float16. More than one where it is kept itself."""
        module = self.nodes[number].module
        beside = self.forward.get(self.record.entries[number].place, ())
        given = [maker for n in beside for maker in self.nodes[n].makers if maker is not None and low[maker]]
        if module not in keep:
            return [module] if module and (given or any(low[n] for n in beside)) else []
        return list(dict.fromkeys(self.nodes[maker].module for maker in given if self.nodes[maker].module not in keep))

    def narrowed(self, number: int, low: list[bool], keep: Collection[str]) -> list[int]:
        """The entries whose wide results this one casts to float16 before it computes."""
        node = self.nodes[number]
        if node.module in keep or not node.module:
            return []
        makers = [maker for maker in node.makers if maker is not None]
        if self.how == "cast":
            return [maker for maker in makers if self.nodes[maker].module in keep or not self.nodes[maker].module]
        return [maker for maker in makers if not low[maker]] if node.rule == LOW else []

    def computes_low(self, low: list[bool], number: int) -> bool:
        """Does the matrix work of this entry run in float16?"""
        entry = self.record.entries[number]
        if entry.phase == "forward":
            return low[number]
        return any(low[n] and self.nodes[n].rule == LOW for n in self.forward.get(entry.place, ()))

    def _is_low(self, number: int, entry: Entry, low: list[bool], keep: Collection[str]) -> bool:
        node = self.nodes[number]
        if not node.module or node.module in keep or node.rule == WIDE:
            return False
        if entry.phase == "backward":
            return bool(self.rounds(number, low, keep))
        if node.rule == LOW:
            return True
        makers = node.makers[:1] if node.rule == FIRST else node.makers
        if self.how == "autocast":
            return bool(makers) and all(maker is not None and low[maker] for maker in makers)
        return all(maker is None or low[maker] or self._cast_back(maker, keep) for maker in makers)

    def _cast_back(self, number: int, keep: Collection[str]) -> bool:
        """Is a wide result, or a weight or input of the model, cast on its way to a module that runs in float16?"""
        module = self.nodes[number].module
        return module in keep or not module

    def between(self, number: int, keep: Collection[str]) -> list[tuple[int, str]]:
        """Where weights are cast: wide results that pass through float16 on their way to this entry, from one kept module to
        another, each with the module that hands them on."""
        module = self.nodes[number].module
        if self.how == "autocast" or module not in keep:
            return []
        found = []
        for maker in self.nodes[number].makers:
            other = self.nodes[maker].module if maker is not None else module
            by = _common(module, other)
            if maker is not None and other in keep and other != module and by and by not in (module, other, *keep):
                found.append((maker, by))
        return found

    def _node(self, entry: Entry) -> _Node:
        operands = [operand for operand in entry.inputs if operand.dtype in FLOATING]
        dimensioned = [operand for operand in operands if not operand.zero_dim] or operands
        makers = tuple(operand.maker for operand in dimensioned)
        return _Node(self.record.places[entry.place].module, self._rule(entry), makers)

    def _rule(self, entry: Entry) -> str:
        if entry.output not in FLOATING or entry.output == "float64":
            return WIDE
        if entry.author:
            wide = DTYPES[entry.output].bits > 16
            return WIDE if wide and entry.author == "asked" else PROMOTES if wide else LOW
        if "batch_norm" in entry.op or (entry.op.endswith("_") and not entry.op.startswith("_")):
            return FIRST
        if self.how == "cast":
            return WIDE if entry.op in FACTORIES else LOW if entry.flops else PROMOTES
        policy = autocast_policy(self.device, entry.inside) if entry.inside else None
        if policy not in ("lower", "fp32", "fp32_set_opt_dtype", "fp32_append_dtype"):
            policy = autocast_policy(self.device, entry.op)
        if policy == "lower" or (entry.flops and (policy is None or not policy.startswith("fp32"))):
            return LOW
        return WIDE if policy is not None and policy.startswith("fp32") else PROMOTES

    def _scaled(self) -> set[int]:
        entries = self.record.entries
        readers: dict[int, list[int]] = {}
        found = set()
        for number, entry in enumerate(entries):
            makers = [operand.maker for operand in entry.inputs if operand.maker is not None]
            if entry.op == SEED or (entry.phase == "backward" and not makers):
                found.add(number)
            for maker in makers if entry.phase == "backward" else ():
                readers.setdefault(maker, []).append(number)
        waiting = list(found)
        while waiting:
            new = [reader for reader in readers.get(waiting.pop(), ()) if reader not in found]
            found.update(new)
            waiting += new
        return found

    def _reaches(self) -> list[float]:
        entries = self.record.entries
        reach = [entry.reach for entry in entries]
        for _ in range(2):  # once more for what comes round a loop
            for number, entry in enumerate(entries):
                if not reach[number] and entry.output in FLOATING and entry.op not in BOUNDED:
                    makers = (maker for maker in self.nodes[number].makers if maker is not None)
                    reach[number] = max((reach[maker] for maker in makers), default=0.0)
        return reach


def device_of(record: TraceRecord) -> str:
    """The kind of device that most of a run's matrix work was on, or that was simulated."""
    if record.simulated:
        return record.simulated
    work: Counter[str] = Counter()
    for entry in record.entries:
        if entry.device:
            work[entry.device] += 1 + entry.flops * entry.count
    return work.most_common(1)[0][0] if work else "cpu"


def _common(one: str, other: str) -> str:
    """The innermost module that two are in; "" where that is the whole model."""
    shared = []
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if a != b:
            break
        shared.append(a)
    return ".".join(shared)
