"""What a test expects of the dtypes of a run, and where the run did not keep to it. Pure logic over a record.

Most expectations choose among what the runtime rules say, so that a comment which silences a rule holds here as well.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING, REAL_PARTS, named
from dtlint.dtypes.promotion import promote
from dtlint.trace.judge import FailOn, SelectionError, judge, runtime_rules
from dtlint.trace.silence import Silence
from dtlint.trace.words import times

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.options import Options
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Operand

__all__ = ["EXPECTED", "ExpectationError", "Expectations", "Unmet"]

EXPECTED = ("no_promotions", "max_dtype", "no_overflow", "no_nonfinite", "fail_on")
"""The names of what can be expected."""

NONFINITE = frozenset(("DT901", "DT902", "DT903", "DT904", "DT909"))
"""The rules that speak of infinite values and NaN where none were before."""

PROMOTED = ("DT905", "DT906")
"""The rules that speak of promotions: from half, and to float64."""


class ExpectationError(ValueError):
    """What was written cannot be expected; the message is one line."""


@dataclass(frozen=True, slots=True)
class Unmet:
    """One place at which a run did not keep to an expectation."""

    expectation: str
    """As it was written: `no_promotions`, `max_dtype="float32"`."""
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class Expectations:
    """What must hold of a run."""

    no_promotions: bool = False
    """No operator raises its operands to the widest floating dtype among them."""
    no_overflow: bool = False
    """No result is infinite that was made of finite values. What a GradScaler skips is as meant."""
    no_nonfinite: bool = False
    """No infinite value and no NaN begins or comes in."""
    max_dtype: str = ""
    """A floating dtype that holds the values of all others which appear; "" for any."""
    fail_on: FailOn = field(default_factory=lambda: FailOn([], {}))
    """Runtime rules that must find nothing."""

    @classmethod
    def parse(
        cls,
        no_promotions: object = False,
        max_dtype: object = None,
        no_overflow: object = False,
        no_nonfinite: object = False,
        fail_on: object = "",
    ) -> Expectations:
        """From words as a person writes them.

        Args:
            no_promotions: True, or False.
            max_dtype: the name of a floating dtype, or torch's own object for it.
            no_overflow: True, or False.
            no_nonfinite: True, or False.
            fail_on: codes or names of runtime rules, separated by commas; as `--fail-on` takes them.

        Raises:
            ExpectationError: one of these says nothing that can be judged.
        """
        limit = "" if max_dtype is None else _floating(max_dtype)
        if not isinstance(fail_on, str):
            raise ExpectationError(f"fail_on is a text such as 'overflow,DT905', not {fail_on!r}")
        try:
            chosen = FailOn(
                [word.strip() for word in fail_on.split(",") if word.strip()], runtime_rules() if fail_on else {}
            )
        except SelectionError as error:
            raise ExpectationError(f"fail_on: {error}") from None
        return cls(
            _flag("no_promotions", no_promotions),
            _flag("no_overflow", no_overflow),
            _flag("no_nonfinite", no_nonfinite),
            limit,
            chosen,
        )

    @property
    def any(self) -> bool:
        """Is anything expected?"""
        return bool(self.no_promotions or self.no_overflow or self.no_nonfinite or self.max_dtype or self.fail_on.asked)

    def refused_by(self, options: Options) -> str:
        """Why a trace with these options can never tell; "" if it can."""
        of_values = [name for name in ("no_overflow", "no_nonfinite") if getattr(self, name)]
        of_values += [f"fail_on {word!r}" for word in self.fail_on.of_values]
        if of_values and not options.watch:
            return f'{" and ".join(of_values)} can never fail with only="dtypes", which judges no values'
        return ""

    def unmet(self, record: TraceRecord, root: Path) -> list[Unmet]:
        """Where the run did not keep to them, expectation by expectation, each the gravest first.

        `root` is the directory of the run, to which the record's paths are relative.
        """
        found = judge(record, root=root)
        unmet = []
        if self.no_promotions:
            unmet += [Unmet("no_promotions", diagnostic) for diagnostic in _promotions(record, found)]
        if self.max_dtype:
            silence = Silence(record, root)
            wider = [d for d in _wider(record, self.max_dtype) if not silence.covers(d)]
            unmet += [Unmet(f'max_dtype="{self.max_dtype}"', diagnostic) for diagnostic in wider]
        if self.no_nonfinite:
            unmet += [Unmet("no_nonfinite", diagnostic) for diagnostic in found if diagnostic.code in NONFINITE]
        elif self.no_overflow:
            unmet += [Unmet("no_overflow", diagnostic) for diagnostic in found if diagnostic.code == "DT901"]
        told = {one.diagnostic for one in unmet}
        unmet += [
            Unmet("fail_on", d) for d in found if self.fail_on.asked and self.fail_on.matches(d) and d not in told
        ]
        return unmet


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ExpectationError(f"{name} is True or False, not {value!r}")
    return value


def _floating(dtype: object) -> str:
    """The name of a floating dtype that may be torch's own object."""
    plain = str(dtype).removeprefix("torch.")
    name = named({"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}.get(plain, plain))
    if name not in FLOATING:
        near = difflib.get_close_matches(plain, FLOATING, 1, 0.6)
        advice = f"did you mean {near[0]}?" if near else f"use one of {', '.join(sorted(FLOATING))}"
        raise ExpectationError(f"max_dtype {plain!r} is no floating dtype to compute in; {advice}")
    return name


def _promotions(record: TraceRecord, found: list[Diagnostic]) -> Iterator[Diagnostic]:
    """What the rules say of operators that promoted, once a place."""
    places = [record.places[entry.place] for entry in record.entries if entry.finding == "promoted"]
    left = {(at.file, at.line, at.column) for at in places}
    for code in PROMOTED:
        for diagnostic in found:
            at = (diagnostic.location.path, diagnostic.location.span.line, diagnostic.location.span.column)
            if diagnostic.code == code and at in left:
                yield diagnostic
        left -= {(d.location.path, d.location.span.line, d.location.span.column) for d in found if d.code == code}


# -- max_dtype ---------------------------------------------------------------------------------------------------------


def _is_wider(dtype: str | None, limit: str) -> bool:
    """Has this floating or complex dtype values that `limit` cannot hold?"""
    real = REAL_PARTS.get(dtype or "", dtype or "")
    if real not in FLOATING or real == limit:
        return False
    return promote(real, limit) != limit


def _wider(record: TraceRecord, limit: str) -> Iterator[Diagnostic]:
    """Where a wider dtype began: an operator that made it, or the first to read what had it. What follows is counted.

    What is made or comes in wider, and is then only cast down, is passed over: nothing is computed in it.
    """
    forward = [entry for entry in record.entries if entry.phase == "forward"]
    narrowed = {o.origin for entry in forward if _narrows(entry, limit) for o in entry.inputs}
    used = {o.origin for entry in forward if not _narrows(entry, limit) for o in entry.inputs}
    only_narrowed = narrowed - used
    begun: dict[object, tuple[Entry, Operand | None]] = {}
    followed = 0
    for number, entry in enumerate(record.entries):
        given = [operand for operand in entry.inputs if _is_wider(operand.dtype, limit)]
        if entry.phase != "forward" or not (given or _is_wider(entry.output, limit)) or _narrows(entry, limit):
            continue
        at = record.places[entry.place]
        outside = next((operand for operand in given if operand.origin is None), None)
        if outside is not None:
            begun.setdefault(outside.name or (at.file, at.line, at.column, outside.dtype), (entry, outside))
        elif given:
            followed += 1
        elif number not in only_narrowed:
            begun.setdefault((at.file, at.line, at.column, entry.op, entry.output), (entry, None))
    for number, (entry, outside) in enumerate(begun.values()):
        yield _told(record, entry, outside, limit, followed if number == 0 else 0)


def _narrows(entry: Entry, limit: str) -> bool:
    """Is it a cast from a wider dtype to one within the limit?"""
    return bool(entry.author) and _is_wider(entry.inputs[-1].dtype, limit) and not _is_wider(entry.output, limit)


def _told(record: TraceRecord, entry: Entry, outside: Operand | None, limit: str, followed: int) -> Diagnostic:
    dtype = outside.dtype if outside is not None else entry.output or ""
    after = f"; {followed} more operator{'s' * (followed != 1)} went on in it" if followed else ""
    name = {"_to_copy": "the cast"}.get(entry.op, entry.op.strip("_"))
    where = f"{name}{record.modules([entry])}"
    if outside is not None:
        message = f"{record.origin(outside)} is {dtype}, wider than {limit}; {where} reads it{after}"
        advice = f"make it {limit} where it is made, or cast it before it comes here"
    else:
        message = f"{where} gave {dtype}, wider than {limit}, {times(entry.count)}{after}"
        advice = f"ask for {limit} here"
    rules = runtime_rules()
    rule = rules["DT906" if DTYPES[dtype].max == DTYPES["float64"].max else "DT905"]
    return record.diagnostic(rule(), entry.place, message, help=advice)
