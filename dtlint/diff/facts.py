"""The facts of a run: what each operator was given and gave, by module path and source text, never by line.

Facts do not depend on how often an operator ran, nor on values, but for magnitudes in dtypes of small range.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.trace.words import in_package

if TYPE_CHECKING:
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry

__all__ = ["BORN", "SMALL_RANGE", "Fact", "Facts", "facts_of", "is_float"]

BORN = ("overflow", "invalid", "pole")
"""Kinds of events by which values become infinite or NaN."""

SMALL_RANGE = frozenset(name for name, info in DTYPES.items() if info.category is Category.FLOAT and info.max < 1e6)
"""dtypes in which magnitudes matter: float16 and float8."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One operator of one expression with one tuple of dtypes, while one module ran."""

    module: str
    """`blocks.2.fc`, or "" outside any."""
    source: str
    """The expression, on one line."""
    op: str
    given: tuple[str, ...]
    """dtypes of its tensor operands."""
    gave: str
    file: str = field(default="", compare=False)
    """Where the expression stands, for people: two facts are one wherever their code has moved to."""
    cast: str = ""
    """Of a cast: `asked`, `autocast`, `implicit` or `backward`; else ""."""
    promoted: bool = False
    """Did it raise its operands to the widest floating dtype among them?"""
    autocast: bool = False
    """Was autocast on?"""
    born: str = ""
    """The kind of non-finite values that began here: one of `BORN`, or ""."""
    reach: float = field(default=0.0, compare=False)
    """The largest finite magnitude of a result in a dtype of small range; 0 where it is not kept."""

    @property
    def place(self) -> tuple[str, str, str]:
        """What makes two facts of two runs the same one: module, source text and operator."""
        return self.module, self.source, self.op


@dataclass(slots=True)
class Facts:
    """The facts of one run."""

    torch: str
    """Its version, without the build."""
    operators: list[Fact] = field(default_factory=list)
    """In the order in which they first ran."""
    outputs: dict[str, str] = field(default_factory=dict)
    """The dtype of the last floating result that each module computed."""
    entries: list[int] = field(default_factory=list)
    """Of a record: the number of the entry behind each operator's fact. Not kept in a file."""
    last: dict[str, int] = field(default_factory=dict)
    """Of a record: the number of the entry behind each module's output. Not kept in a file."""


def facts_of(record: TraceRecord) -> Facts:
    """The facts of a record, but for what cannot change its dtype or follows from others.

    Those are operators in place, the backward, and whatever gives integers or bools.
    """
    facts = Facts(record.torch.partition("+")[0])
    born = _births(record)
    for number, entry in enumerate(record.entries):
        if entry.phase != "forward":
            continue
        if is_float(entry.output) and not _in_place(entry):
            facts.operators.append(_fact(record, entry, born.get(number, "")))
            facts.entries.append(number)
            facts.last |= dict.fromkeys(_around(record.places[entry.place].module), number)
    ran = {record.places[entry.place].module for entry in record.entries}
    latest = max(facts.last.values(), default=-1)
    facts.last = {
        module: number
        for module, number in facts.last.items()
        if module in ran and (number == latest or not _is_root(module))
    }
    facts.outputs = {module: record.entries[number].output or "" for module, number in facts.last.items()}
    return facts


def _is_root(module: str) -> bool:
    """Is it the outermost module, which is called by its class? Its own operators are followed by those of its children."""
    return "." not in module and module[:1].isupper()


def _in_place(entry: Entry) -> bool:
    return entry.op.endswith("_") and bool(entry.inputs) and entry.output == entry.inputs[0].dtype


def is_float(dtype: str | None) -> bool:
    """Is it a floating or complex dtype?"""
    return dtype in DTYPES and DTYPES[dtype].category >= Category.FLOAT


def _fact(record: TraceRecord, entry: Entry, born: str) -> Fact:
    at = record.places[entry.place]
    return Fact(
        module=at.module,
        source=" ".join(at.expression.split()),
        op=entry.op,
        given=tuple(operand.dtype for operand in entry.inputs),
        gave=entry.output or "",
        file=in_package(at.file),
        cast=entry.author,
        promoted=entry.finding == "promoted",
        autocast=entry.autocast,
        born=born,
        reach=entry.reach if entry.output in SMALL_RANGE else 0.0,
    )


def _births(record: TraceRecord) -> dict[int, str]:
    """By entry: the kind of non-finite values that began there and came to something, but for those that a scaler skips."""
    found: dict[int, str] = {}
    for event in record.events:
        if event.kind in BORN and event.entry is not None and not event.by_scaler and not record.harmless(event):
            found.setdefault(event.entry, event.kind)
    return found


def _around(module: str) -> list[str]:
    """The module and all that it lies within: `a.b` and `a`."""
    parts = module.split(".") if module else []
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
