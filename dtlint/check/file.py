"""One file, from text to diagnostics: screen, parse, infer, judge, confirm, suppress."""

from __future__ import annotations

import ast
import sys
import warnings
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from dtlint.check import hygiene
from dtlint.check.screen import Text, code_of, triggered
from dtlint.frames import with_room
from dtlint.source.contracts import with_contracts
from dtlint.source.private import mangled
from dtlint.source.suppression import Suppressions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.check.confirm import Confirmed
    from dtlint.check.judge import Judged
    from dtlint.check.project import Reported
    from dtlint.check.reader import Reader
    from dtlint.check.verdict import Support
    from dtlint.config import Settings
    from dtlint.diagnostic import Diagnostic
    from dtlint.dtypes.assumption import Assumption
    from dtlint.rule import Rule
    from dtlint.source.file import Source

__all__ = ["Checked", "check_source", "diagnose"]

Withheld = tuple["Rule", tuple[int, int]]
"""The rule of a conditional finding that is not reported, and its lines: a suppression there is of use with `--preview`."""

_Result = TypeVar("_Result")

_DEEPEST = 10_000
"""Frames that reading a file may take. What Python's parser takes under its usual limit of 1,000 may take several frames
for each level here; a thread's stack of 8 MB holds these."""


@dataclass
class Checked:
    """What checking one file gave."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Internal errors, one line each: the rule, the file, what happened."""
    crashed: set[str] = field(default_factory=set)
    """The rules that have not judged the whole file."""
    support: list[Support] = field(default_factory=list)
    """How the public functions stand under each assumption."""
    would_break: list[Diagnostic] | None = None
    """The places that would be reported under half, where that was looked at."""


def check_source(
    source: Source,
    rules: Sequence[AnyRule],
    settings: Settings,
    reported: Sequence[Reported] = (),
    reader: Reader | None = None,
    glance: bool = False,
) -> Checked:
    """Check one file with the rules that are enabled for it. Diagnostics are sorted, in the reader's coordinates.

    Args:
        reported: what is known of it by other files.
        reader: reads it, where it reads others, too.
        glance: look also at how much would be reported under half, unless the settings speak of assumptions.
    """
    checked = diagnose(source, rules, settings, reported, reader, glance)
    if source.notebook is not None:
        checked.diagnostics = [_by_cell(diagnostic, source) for diagnostic in checked.diagnostics]
    checked.diagnostics.sort(key=lambda diagnostic: diagnostic.sort_key)
    return checked


def _by_cell(diagnostic: Diagnostic, source: Source) -> Diagnostic:
    fix = diagnostic.fix
    if fix is None:
        return diagnostic
    edits = tuple(edit._replace(span=source.location(edit.span).span) for edit in fix.edits)
    return replace(diagnostic, fix=replace(fix, edits=edits))


def diagnose(
    source: Source,
    rules: Sequence[AnyRule],
    settings: Settings,
    reported: Sequence[Reported] = (),
    reader: Reader | None = None,
    glance: bool = False,
) -> Checked:
    """Like `check_source`, but the edits of fixes are in the coordinates of `source.text`, ready to be applied to it."""
    checked = Checked()
    assumptions = settings.assumptions_for(source.file)
    # Words that tell of dtypes need not stand where an assumption does.
    under = [rule for rule in rules if rule.asks()] if glance or assumptions else []
    if not assumptions:
        rules = [rule for rule in rules if not rule.assumption]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in the file is not ours to speak of
            known = None if reader is None else reader.tree(source.file)
            tree, wanted = _screened(source.text, rules, known)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        is_on = any(rule.code == hygiene.UNREADABLE_FILE[0] for rule in rules)
        if source.notebook is not None and source.text != (rest := source.notebook.readable):
            return _good_cells(source, diagnose(replace(source, text=rest), rules, settings), is_on)
        if is_on:
            checked.diagnostics = [hygiene.syntax_diagnostic(source, error)]
        return checked
    found: list[Confirmed] = []
    breaking: list[Confirmed] | None = None
    withheld: list[Withheld] = []
    if tree is not None and (wanted or under):
        confirmed = partial(_confirmed, source, tree, wanted, settings, checked, reader, assumptions, under)
        found, withheld, breaking = _deeper(confirmed)
    found += _of_project(source, rules, found, reported)
    if reported and tree is None:
        tree = ast.parse(source.text)
    spans = [span for _, span in (*found, *withheld, *(breaking or ()))]
    suppressions = Suppressions.of(source, [_around(first, tree) for first, _ in spans] if tree is not None else [])
    for rule, (first, last) in withheld:
        suppressions.covers(rule.code, first, last, rule.name)
    checked.diagnostics = [
        diagnostic
        for diagnostic, (first, last) in found
        if not suppressions.covers(diagnostic.code, first, last, diagnostic.name)
    ]
    if checked.crashed:
        rules = [rule for rule in rules if rule.code not in checked.crashed]
    checked.diagnostics += hygiene.unused_diagnostics(suppressions, rules)
    if breaking is not None:
        checked.would_break = [
            one for one, (first, last) in breaking if not suppressions.covers(one.code, first, last, one.name)
        ]
    elif glance and tree is None:
        checked.would_break = []
    return checked


def _of_project(
    source: Source, rules: Sequence[AnyRule], found: Sequence[Confirmed], reported: Sequence[Reported]
) -> list[Confirmed]:
    """What is known of a file by the others, unless the file alone has shown the same."""
    known = {(diagnostic.code, first) for diagnostic, (first, _) in found}
    by_code = {rule.code: rule for rule in rules}
    return [
        (one.diagnostic(by_code[one.code], source), (one.span.line, one.span.end_line))
        for one in reported
        if one.code in by_code and (one.code, one.span.line) not in known
    ]


def _screened(text: str, rules: Sequence[AnyRule], known: ast.Module | None) -> tuple[ast.Module | None, list[AnyRule]]:
    """The syntax tree of a file, and the rules whose trigger words stand in it. No tree where there are no
    such rules.

    Args:
        known: the tree, if the file was parsed already.

    Nearly all files that speak of torch are judged: these are parsed at once, for the sake of knowing their docstrings.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: it is no program that can be read.
    """
    if "torch" in text:
        tree = known or _parsed(text)
        file = Text(code_of(text, tree))
        return tree, triggered(rules, file)
    wanted = triggered(rules, Text(text))
    return known or _parsed(text) if wanted or not _is_readable(text) else None, wanted


def _parsed(text: str) -> ast.Module:
    return with_contracts(mangled(ast.parse(text), text), text)


def _is_readable(text: str) -> bool:
    """Is a text certainly a program? Python's parser says so in half the time where nobody asks for the tree. It is no
    proof of the contrary: the names of a program are looked at, too, and `return` outside of a function can be parsed."""
    from symtable import symtable

    try:
        symtable(text, "", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _around(line: int, tree: ast.Module) -> tuple[int, int]:
    """The lines of the statement of a module that a line stands in, a decorator of it among them, and a few more."""
    body = tree.body
    at = bisect_right(body, line, key=attrgetter("lineno")) - 1
    first = body[at - 1].end_lineno if at > 0 else None
    return first or 1, body[at + 2].lineno if at + 2 < len(body) else sys.maxsize


def _good_cells(source: Source, checked: Checked, reported: bool) -> Checked:
    """What was found in the cells that parse, and the others. No fix: whether it breaks one of those cannot be told."""
    checked.diagnostics = [replace(diagnostic, fix=None) for diagnostic in checked.diagnostics]
    if reported:
        checked.diagnostics += hygiene.cell_diagnostics(source)
    return checked


def _deeper(function: Callable[[], _Result]) -> _Result:
    """What a function gives, which may follow code deeper than Python usually lets a program call itself."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, _DEEPEST))
    try:
        return with_room(function)
    finally:
        sys.setrecursionlimit(usual)


def _confirmed(
    source: Source,
    tree: ast.Module,
    rules: Sequence[AnyRule],
    settings: Settings,
    checked: Checked,
    reader: Reader | None,
    assumptions: Sequence[Assumption],
    under: Sequence[AnyRule],
) -> tuple[list[Confirmed], list[Withheld], list[Confirmed] | None]:
    """What the rules find whose trigger words stand in the file, and those that are asked under assumptions; what of it is not
    reported; and what they would find under half, where that is looked at. Those of one file alone load inference, or libcst."""
    from dtlint.check.judge import judge
    from dtlint.check.patience import bounded
    from dtlint.check.reader import Reader

    found: list[Confirmed] = []
    breaking: list[Confirmed] | None = None
    withheld: list[Withheld] = []
    reader = reader or Reader()
    reader.declared = settings.declared
    with bounded(source.text.count("\n")):
        asked, asked_under = ([rule.load() for rule in some] for some in (rules, under))
        judged = judge(tree, source, asked, reader, assumptions, asked_under)
        checked.crashes, checked.crashed, checked.support = judged.crashes, judged.crashed, judged.support
        concerning = [each for each in judged.suspicions if settings.concerned(each.finding.until)]
        judged.suspicions = [each for each in concerning if settings.preview or not each.finding.conditional]
        if len(judged.suspicions) < len(concerning):
            conditional = (each for each in concerning if each.finding.conditional)
            spans = ((each.rule, source.span(each.finding.node)) for each in conditional)
            withheld = [(rule, (span.line, span.end_line)) for rule, span in spans]
        if judged.suspicions:
            from dtlint.check.confirm import confirm

            found = confirm(judged, source, tree, settings, reader.source)
        if judged.would_break is not None:
            breaking = _would_break(judged, found, source, tree, settings, reader)
    return found, withheld, breaking


def _would_break(
    judged: Judged, found: Sequence[Confirmed], source: Source, tree: ast.Module, settings: Settings, reader: Reader
) -> list[Confirmed]:
    """What would be reported under half beside what was found, without the fixes, which nobody asks for."""
    from dtlint.check.confirm import confirm
    from dtlint.check.judge import Judged as Suspected

    concerning = [each for each in judged.would_break or () if settings.concerned(each.finding.until)]
    if not concerning:
        return []
    known = {(one.code, one.location) for one, _ in found}
    unfixed = [replace(each, finding=replace(each.finding, fix=None)) for each in concerning]
    breaking = confirm(Suspected(unfixed), source, tree, settings, reader.source)
    return [(one, lines) for one, lines in breaking if (one.code, one.location) not in known]
