"""What the rules suspect of one file: each is handed the facts of it.

A rule that crashes is reported by name; the others go on. A file that is nested deeper than the interpreter can follow is
reported.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dtlint.check.reader import Reader
from dtlint.check.support import consequence, entries, supported
from dtlint.check.verdict import Support, Verdict
from dtlint.check.witness import witness
from dtlint.dtypes.assumption import ASSUMPTIONS, SINGLE
from dtlint.infer.context import TooLong
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.facts import ModuleFacts, Step
    from dtlint.rule import Finding, Rule
    from dtlint.source.file import Source

__all__ = ["DEEPER_THAN_FOLLOWED", "Judged", "Suspicion", "crash", "is_expected", "judge"]


@dataclass(slots=True)
class Suspicion:
    """A finding, and the rule that has it."""

    rule: Rule
    finding: Finding
    under: tuple[str, ...] = ()
    """The assumptions that it rests on, by name."""
    witness: tuple[tuple[Step, str], ...] = ()
    """The steps that lead there under the first of these."""


@dataclass(slots=True)
class Judged:
    """What the rules suspect of one file, and what went wrong on the way."""

    suspicions: list[Suspicion] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Internal errors, one line each."""
    crashed: set[str] = field(default_factory=set)
    """The rules that have not judged the whole file: what they are silent about may still be there."""
    support: list[Support] = field(default_factory=list)
    """How the public functions stand under each assumption."""
    would_break: list[Suspicion] | None = None
    """The places that would be reported under half, where that was asked for."""


def judge(
    tree: ast.Module,
    source: Source,
    rules: Sequence[type[Rule]],
    reader: Reader | None = None,
    assumptions: Sequence[Assumption] = (),
    under: Sequence[type[Rule]] = (),
) -> Judged:
    """What the rules suspect of a module.

    Args:
        rules: those that are asked what is wrong without an assumption.
        reader: reads the file, and what it imports; one of its own where there is none.
        assumptions: what the module has to support beside float32.
        under: the rules that are asked what is wrong under these; where there are none, how much would break under half, for
            a hint.
    """
    judged, reader = Judged(), reader or Reader()
    facts = reader.facts(tree, source.file, _displayed(tree, source), len(source.text))
    if facts.broken_off is not None:
        judged.crashed.update(rule.code for rule in (*rules, *(under if assumptions else ())))
        judged.crashes.append(f"{source.path}: {_BROKEN_OFF[facts.broken_off]}")
    judged.suspicions = [_traced(facts, one) for one in _suspected(facts, rules, source, judged)]
    if assumptions:
        judged.suspicions += _under(facts, under, source, judged, reader, assumptions)
    elif under and facts.broken_off is None:
        aside = Judged(list(judged.suspicions))
        judged.would_break = _under(facts, under, source, aside, reader, [ASSUMPTIONS["half"]])
    return judged


def _suspected(facts: ModuleFacts, rules: Sequence[type[Rule]], source: Source, judged: Judged) -> list[Suspicion]:
    """What the rules find, one by one; what the code expects to fail aside. Crashes are added to what was judged."""
    found: list[Suspicion] = []
    for rule in rules:
        try:
            judging = rule()
            found += (Suspicion(judging, one) for one in judging.on_facts(facts) if not is_expected(facts, one))
        except Exception as error:
            judged.crashed.add(rule.code)
            judged.crashes.append(crash(rule, source.path, error))
    return found


def _traced(facts: ModuleFacts, suspicion: Suspicion) -> Suspicion:
    """A suspicion about the dtypes of operands, with where these come from, unless the rule says so itself."""
    finding = suspicion.finding
    if not suspicion.rule.code.startswith("DT3") or finding.notes or finding.elsewhere:
        return suspicion
    notes = tuple((step.node, text) for step, text in witness(facts, finding.node))
    return replace(suspicion, finding=replace(finding, notes=notes))


def _under(
    facts: ModuleFacts,
    rules: Sequence[type[Rule]],
    source: Source,
    judged: Judged,
    reader: Reader,
    assumptions: Sequence[Assumption],
) -> list[Suspicion]:
    """What is wrong under assumptions, and neither without one nor in float32: each once, whichever show it."""
    found: dict[tuple[str, ast.AST, str], _Shown] = {}
    read: dict[str, ModuleFacts | None] = {}
    for assumption in assumptions:
        for variant in assumption.variants:
            assumed = reader.assumed(facts, variant)
            read.setdefault(assumption.name, assumed)
            if assumed is None:
                continue
            for one in _suspected(assumed, rules, source, judged):
                if not one.finding.conditional:
                    key = one.rule.code, one.finding.node, one.finding.message
                    shown = found.setdefault(key, _Shown(one, assumed))
                    leading = entries(assumed, one.finding.node)
                    shown.is_open |= not leading
                    shown.by[assumption.name] = shown.by.get(assumption.name, frozenset()) | leading
    known = {(one.rule.code, one.finding.node) for one in judged.suspicions if not one.finding.conditional}
    found = {key: one for key, one in found.items() if key[:2] not in known}
    only = {one for shown in found.values() for leading in shown.by.values() for one in leading}
    is_open = any(shown.is_open for shown in found.values())
    usual = reader.assumed(facts, SINGLE, None if is_open else only) if found else None
    if usual is not None:
        usually = _suspected(usual, rules, source, judged)
        found = {key: one for key, one in found.items() if not _is_among(one, usually, usual)}
    for name, assumed in read.items():
        verdicts: dict[ast.AST, list[Verdict]] = {}
        for shown in found.values():
            for function in shown.by.get(name, ()):
                said = consequence(shown.suspicion.rule, shown.suspicion.finding)
                verdicts.setdefault(function, []).append(said)
        judged.support += _support(name, assumed, facts.tree, source, verdicts)
    return [
        replace(one.suspicion, under=tuple(one.by), witness=_witness(one.facts, one.suspicion.finding))
        for one in found.values()
    ]


def _is_among(shown: _Shown, usually: Sequence[Suspicion], usual: ModuleFacts) -> bool:
    """Does a rule find the same in float32, or does torch raise there in float32 as well?

    Args:
        usually: what the rules find in float32.
        usual: the facts that show that.
    """
    finding, rule = shown.suspicion.finding, shown.suspicion.rule
    raises = consequence(rule, finding) is Verdict.RAISES
    leading, usually_leading = entries(shown.facts, finding.node), set[ast.AST]()
    for other in (one for one in usually if not one.finding.conditional):
        is_same = other.rule.code == rule.code
        if other.finding.node is finding.node:
            if is_same or (raises and consequence(other.rule, other.finding) is Verdict.RAISES):
                return True
        elif is_same and _are_one(finding, other.finding):
            usually_leading |= entries(usual, other.finding.node)
    return bool(leading) and leading <= usually_leading


def _are_one(one: Finding, other: Finding) -> bool:
    """Does a call lead to the same operation in both, or in one to where the other stands? Which call a finding stands at goes by
    all that was read."""
    if one.led_to is None and other.led_to is None:
        return False
    first, second = one.led_to or one.node, other.led_to or other.node
    return any(part is second for part in ast.walk(first)) or any(part is first for part in ast.walk(second))


def _witness(facts: ModuleFacts, finding: Finding) -> tuple[tuple[Step, str], ...]:
    """The steps to a finding, through the call that it names."""
    return witness(facts, finding.node, [step for step, _ in finding.elsewhere])


@dataclass(slots=True)
class _Shown:
    """A suspicion, what shows it, and the assumptions that do, each with the functions that lead there."""

    suspicion: Suspicion
    facts: ModuleFacts
    by: dict[str, frozenset[ast.AST]] = field(default_factory=dict)
    is_open: bool = False
    """May other functions lead there?"""


def _support(
    name: str,
    facts: ModuleFacts | None,
    tree: ast.Module,
    source: Source,
    verdicts: Mapping[ast.AST, Sequence[Verdict]],
) -> Iterator[Support]:
    for node, function, verdict in supported(facts, tree, verdicts):
        location = source.location(source.span(node))
        yield Support(name, location.path, location.line_in_file, function, verdict)


def is_expected(facts: ModuleFacts, finding: Finding) -> bool:
    """Does a finding say that something raises which a test expects to raise?"""
    return "raises" in finding.message and facts.around.expects_error(finding.node)


DEEPER_THAN_FOLLOWED = "the code is nested deeper than dtlint can follow; what it found elsewhere is reported"
_BROKEN_OFF: dict[type[Exception], str] = {
    RecursionError: DEEPER_THAN_FOLLOWED,
    TooLong: "reading the code takes too long; what dtlint found until it stopped is reported",
}


def _displayed(tree: ast.Module, source: Source) -> set[ast.stmt]:
    """The last statement of each cell of a notebook: its value is shown, not thrown away."""
    if source.notebook is None:
        return set()
    last = {}
    for statement in tree.body:
        cell = source.notebook.cell_at(statement.lineno)
        last[None if cell is None else cell.number] = statement
    return set(last.values())


def crash(rule: Rule | type[Rule], path: str, error: Exception) -> str:
    """The line that reports a crash inside a rule."""
    return f"internal error: {rule.code} {rule.name} crashed on {path}: {in_one_line(error)}; please report it"
