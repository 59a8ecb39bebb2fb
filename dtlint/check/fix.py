"""Applies fixes to one file until nothing is left to fix, or leaves the file as it was.

A fix may make room for another, so the file is checked again after each round. A fix whose result does not parse is left
out and reported. A file that never comes to rest is given up: it stays untouched, and is reported.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.check.file import Checked, check_source, diagnose
from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.source.imports import remove_orphans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.check.reader import Reader
    from dtlint.config import Settings
    from dtlint.source.file import Source

__all__ = ["Fixed", "applicable", "fix_source", "with_fixes"]

MOST_ROUNDS = 20
"""Fixes that uncover fixes are few; a file that is not at rest by then has two rules undoing each other."""


@dataclass
class Fixed:
    """A file after its fixes."""

    source: Source
    applied: int
    checked: Checked
    """What remains."""
    failed: str | None = None
    """Why the file, or a part of it, was left untouched, in one line."""


def applicable(fix: Fix, upto: Applicability) -> bool:
    """May this fix be applied: a safe one always, an unsafe one if `upto` is UNSAFE, one for display never?"""
    return fix.applicability is Applicability.SAFE or fix.applicability is upto is Applicability.UNSAFE


def fix_source(
    source: Source, rules: Sequence[AnyRule], settings: Settings, upto: Applicability, reader: Reader | None = None
) -> Fixed:
    """Fix a file as far as `upto` allows. The result parses, or is the file as it was.

    Args:
        reader: reads the file as it is on disk.
    """
    current, applied = source, 0
    for _ in range(MOST_ROUNDS):
        checked = diagnose(current, rules, settings, reader=reader if current is source else None)
        fixes = [
            diagnostic.fix
            for diagnostic in checked.diagnostics
            if diagnostic.fix is not None and applicable(diagnostic.fix, upto)
        ]
        if not fixes:
            rest = check_source(current, rules, settings, (), reader if current is source else None)
            return Fixed(current, applied, rest)
        round = _round(current, fixes)
        if not round.applied:
            why = f"{source.path}: a fix would break the file ({round.error}); it is left out"
            return Fixed(current, applied, check_source(current, rules, settings), why)
        current, applied = round.source, applied + round.applied
    return _untouched(source, rules, settings, f"the fixes did not come to rest in {MOST_ROUNDS} rounds")


def _untouched(source: Source, rules: Sequence[AnyRule], settings: Settings, why: str) -> Fixed:
    return Fixed(source, 0, check_source(source, rules, settings), f"{source.path}: {why}; the file is left as it was")


@dataclass
class _Round:
    source: Source
    applied: int = 0
    error: Exception | None = None
    """What a fix that was left out would have done."""


def _round(source: Source, fixes: Sequence[Fix]) -> _Round:
    """Apply the fixes that do not touch each other: together, or one by one where that would break the file."""
    chosen = _compatible(fixes)
    try:
        return _Round(with_fixes(source, chosen), len(chosen))
    except (SyntaxError, ValueError):
        pass
    round, kept = _Round(source), list[Fix]()
    for fix in fixes:
        if len(_compatible([*kept, fix])) == len(kept):
            continue
        try:
            round.source = with_fixes(source, [*kept, fix])
        except (SyntaxError, ValueError) as error:
            round.error = error
        else:
            kept.append(fix)
    round.applied = len(kept)
    return round


def with_fixes(source: Source, fixes: Sequence[Fix]) -> Source:
    """The file with these fixes, and without the imports that they orphan.

    Raises:
        SyntaxError: the result does not parse.
        ValueError: the file cannot hold the result.
    """
    after = source.replaced(_applied(source, {edit for fix in fixes for edit in fix.edits}))
    _parse(after)
    orphans = {name for fix in fixes for name in fix.orphans}
    if orphans:
        after = after.replaced(_applied(after, remove_orphans(after, orphans)))
        _parse(after)
    return after


def _parse(source: Source) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(source.text)


def _compatible(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes, first come first served, whose edits touch no other's. An edit that two share, an import they both
    need, is no conflict."""
    chosen: list[Fix] = []
    taken: set[Edit] = set()
    on_line: dict[int, list[Edit]] = {}
    """What is taken, by each line that it reaches: only edits that share a line can touch."""
    for fix in fixes:
        new = set(fix.edits) - taken
        if not any(_touch(edit, other) for edit in new for line in _lines(edit) for other in on_line.get(line, ())):
            chosen.append(fix)
            taken |= new
            for edit in new:
                for line in _lines(edit):
                    on_line.setdefault(line, []).append(edit)
    return chosen


def _lines(edit: Edit) -> range:
    return range(edit.span.line, edit.span.end_line + 1)


def _touch(edit: Edit, other: Edit) -> bool:
    """Do two edits overlap, or insert at one place?"""
    a, b = edit.span, other.span
    a_start, a_end = (a.line, a.column), (a.end_line, a.end_column)
    b_start, b_end = (b.line, b.column), (b.end_line, b.end_column)
    return (a_start < b_end and b_start < a_end) or a_start == b_start


def _applied(source: Source, edits: Iterable[Edit]) -> str:
    text = source.text
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        span = edit.span
        text = (
            text[: source.offset(span.line, span.column)]
            + edit.text
            + text[source.offset(span.end_line, span.end_column) :]
        )
    return text
