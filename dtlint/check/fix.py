"""Applies fixes to one file until nothing is left to fix, or leaves the file as it was.

A fix may make room for another, so the file is checked again after each round. A round whose result does not parse,
or a file that never comes to rest, is given up: the file stays untouched, and is reported.
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

    from dtlint.config import Settings
    from dtlint.rule import Rule
    from dtlint.source.file import Source

__all__ = ["Fixed", "applicable", "fix_source"]

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
    """Why the file was left untouched, in one line."""


def applicable(fix: Fix, upto: Applicability) -> bool:
    """May this fix be applied: a safe one always, an unsafe one if `upto` is UNSAFE, one for display never?"""
    return fix.applicability is Applicability.SAFE or fix.applicability is upto is Applicability.UNSAFE


def fix_source(source: Source, rules: Sequence[type[Rule]], settings: Settings, upto: Applicability) -> Fixed:
    """Fix a file as far as `upto` allows. The result parses, or is the file as it was."""
    current, applied = source, 0
    for _ in range(MOST_ROUNDS):
        checked = diagnose(current, rules, settings)
        fixes = [
            diagnostic.fix
            for diagnostic in checked.diagnostics
            if diagnostic.fix is not None and applicable(diagnostic.fix, upto)
        ]
        if not fixes:
            return Fixed(current, applied, check_source(current, rules, settings))
        try:
            count, current = _round(current, fixes)
        except (SyntaxError, ValueError) as error:
            return _untouched(source, rules, settings, f"a fix would break the file ({error})")
        applied += count
    return _untouched(source, rules, settings, f"the fixes did not come to rest in {MOST_ROUNDS} rounds")


def _untouched(source: Source, rules: Sequence[type[Rule]], settings: Settings, why: str) -> Fixed:
    return Fixed(source, 0, check_source(source, rules, settings), f"{source.path}: {why}; the file is left as it was")


def _round(source: Source, fixes: Sequence[Fix]) -> tuple[int, Source]:
    """Apply the fixes that do not touch each other, and take away the imports that they orphan.

    Raises:
        SyntaxError: the result does not parse.
        ValueError: the file cannot hold the result.
    """
    chosen = _compatible(fixes)
    edits = {edit for fix in chosen for edit in fix.edits}
    after = source.replaced(_applied(source, edits))
    _parse(after)
    orphans = {name for fix in chosen for name in fix.orphans}
    if orphans:
        after = after.replaced(_applied(after, remove_orphans(after, orphans)))
        _parse(after)
    return len(chosen), after


def _parse(source: Source) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(source.text)


def _compatible(fixes: Iterable[Fix]) -> list[Fix]:
    """The fixes, first come first served, whose edits touch no other's. An edit that two share, an import they both
    need, is no conflict."""
    chosen: list[Fix] = []
    taken: set[Edit] = set()
    for fix in fixes:
        new = set(fix.edits) - taken
        if not any(_touch(edit, other) for edit in new for other in taken):
            chosen.append(fix)
            taken |= new
    return chosen


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
