"""One file, from text to diagnostics: screen, parse, infer, judge, confirm, suppress."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint.check import hygiene
from dtlint.source.suppression import Suppressions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.check.confirm import Confirmed
    from dtlint.config import Settings
    from dtlint.diagnostic import Diagnostic
    from dtlint.rule import Rule
    from dtlint.source.file import Source

__all__ = ["Checked", "check_source", "diagnose"]


@dataclass
class Checked:
    """What checking one file gave."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Internal errors, one line each: the rule, the file, what happened."""


def check_source(source: Source, rules: Sequence[type[Rule]], settings: Settings) -> Checked:
    """Check one file with the rules that are enabled for it. Diagnostics are sorted, in the reader's coordinates."""
    checked = diagnose(source, rules, settings)
    if source.notebook is not None:
        checked.diagnostics = [_by_cell(diagnostic, source) for diagnostic in checked.diagnostics]
    checked.diagnostics.sort(key=lambda diagnostic: diagnostic.sort_key)
    return checked


def _by_cell(diagnostic: Diagnostic, source: Source) -> Diagnostic:
    fix = diagnostic.fix
    if fix is None:
        return diagnostic
    edits = tuple(replace(edit, span=source.location(edit.span).span) for edit in fix.edits)
    return replace(diagnostic, fix=replace(fix, edits=edits))


def diagnose(source: Source, rules: Sequence[type[Rule]], settings: Settings) -> Checked:
    """Like `check_source`, but the edits of fixes are in the coordinates of `source.text`, ready to be applied to it."""
    checked = Checked()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the file is not ours to speak of
            tree = ast.parse(source.text)
        found = _confirmed(source, tree, rules, checked)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if any(rule.code == hygiene.UNREADABLE_FILE[0] for rule in rules):
            checked.diagnostics = [hygiene.syntax_diagnostic(source, error)]
        return checked
    suppressions = Suppressions.of(source)
    checked.diagnostics = [
        diagnostic
        for diagnostic, (first, last) in found
        if not suppressions.covers(diagnostic.code, first, last, diagnostic.name)
    ]
    checked.diagnostics += hygiene.unused_diagnostics(suppressions, rules)
    return checked


def _confirmed(source: Source, tree: ast.Module, rules: Sequence[type[Rule]], checked: Checked) -> list[Confirmed]:
    """What the rules whose trigger words stand in the file find. Those of one file alone load inference, or libcst."""
    triggered = [rule for rule in rules if _may_fire(rule, source.text)]
    if not triggered:
        return []
    from dtlint.check.judge import suspicions

    suspected, checked.crashes = suspicions(tree, source, triggered)
    if not suspected:
        return []
    from dtlint.check.confirm import confirm

    found, crashes = confirm(suspected, source, tree)
    checked.crashes += crashes
    return found


def _may_fire(rule: type[Rule], text: str) -> bool:
    """Does the rule judge code at all, and does one of its words stand in the file?"""
    return bool(rule.hears()) and (not rule.triggers or any(word in text for word in rule.triggers))
