"""What the rules suspect of one file: each is told of what happens in it.

A rule that crashes is reported by name, and judges that file no further; the others go on. A file that is nested
deeper than the interpreter can follow is reported, and what was suspected until then is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.check.audience import routes
from dtlint.infer.events import Assign, Call, Discard, Event, Operation, Reference
from dtlint.infer.interpreter import TooLong, interpreter_of
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Sequence

    from dtlint.check.audience import Hearing, Routes
    from dtlint.check.reader import Reader
    from dtlint.check.screen import Text
    from dtlint.infer.interpreter import Interpreter
    from dtlint.rule import Finding, Rule
    from dtlint.source.file import Source

__all__ = ["Judged", "Suspicion", "crash", "judge"]


def _nothing() -> None:
    """There was nothing to infer."""


@dataclass(slots=True)
class Suspicion:
    """A finding, and the rule that has it."""

    rule: Rule
    finding: Finding


@dataclass(slots=True)
class Judged:
    """What the rules suspect of one file, and what went wrong on the way."""

    suspicions: list[Suspicion] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    """Internal errors, one line each."""
    crashed: set[str] = field(default_factory=set)
    """The rules that have not judged the whole file: what they are silent about may still be there."""
    forget: Callable[[], None] = _nothing
    """Lets go of what was inferred, once the findings are confirmed: what their fixes ask for is kept until then."""


def judge(
    tree: ast.Module, source: Source, text: Text, rules: Sequence[type[Rule]], reader: Reader | None = None
) -> Judged:
    """What the rules suspect of a module, whose words are those of the text."""
    judged = Judged()
    asking = [rule for rule in rules if rule.hears() == ("on_facts",)]  # the others are told of them for projects alone
    _by_facts(tree, source, asking, judged, reader)
    told = routes(_made(rules, source.path, judged), text)
    listeners = {event: _listener(of_event, source.path, judged) for event, of_event in told.items()}
    displayed = _displayed(tree, source)
    discard = listeners.get(Discard)
    if displayed and discard is not None:
        listeners[Discard] = lambda event: None if event.node in displayed else discard(event)
    if listeners:
        interpreter = interpreter_of(tree, listeners)
        _spare(interpreter, told)
        judged.forget = interpreter.forget
        try:
            interpreter.run()
        except (RecursionError, TooLong) as error:
            judged.crashed.update(rule.code for rule in rules)
            judged.crashes.append(
                _too_deep(source.path) if isinstance(error, RecursionError) else _too_long(source.path)
            )
        listeners.clear()
    return judged


def _by_facts(
    tree: ast.Module, source: Source, rules: Sequence[type[Rule]], judged: Judged, reader: Reader | None
) -> None:
    """Hand the facts of a module to the rules that ask for them."""
    from dtlint.check.reader import Reader

    if not rules:
        return
    facts = (reader or Reader()).facts(tree, source.file, _displayed(tree, source))
    if facts.broken_off is not None:
        judged.crashed.update(rule.code for rule in rules)
        deep = facts.broken_off is RecursionError
        judged.crashes.append(_too_deep(source.path) if deep else _too_long(source.path))
    for rule in _made(rules, source.path, judged):
        try:
            judged.suspicions += [Suspicion(rule, finding) for finding in rule.on_facts(facts)]
        except Exception as error:
            judged.crashed.add(rule.code)
            judged.crashes.append(crash(rule, source.path, 1, error))


def _spare(interpreter: Interpreter, told: dict[type[Event], Routes]) -> None:
    """Lets the interpreter make no event that no rule asks for."""
    hearing = {event: of_event.told for event, of_event in told.items()}
    interpreter.calls_told, interpreter.discards_told = hearing.get(Call), hearing.get(Discard)
    interpreter.references_told = hearing.get(Reference)
    interpreter.operators_told = hearing.get(Operation)
    if Assign in told:
        asking = [(rule.targets, rule.values) for rule, _ in told[Assign].hearing]
        if (None, None) not in asking:
            interpreter.targets_told = _every(targets or frozenset() for targets, _ in asking)
            interpreter.values_told = frozenset().union(*(values or () for _, values in asking))


def _every(wanted: Iterable[frozenset[type[ast.AST]] | None]) -> frozenset[type[ast.AST]] | None:
    """All that some rules want to hear of; None if one wants everything."""
    every: frozenset[type[ast.AST]] = frozenset()
    for kinds in wanted:
        if kinds is None:
            return None
        every |= kinds
    return every


def _made(rules: Sequence[type[Rule]], path: str, judged: Judged) -> list[Rule]:
    made = []
    for rule in rules:
        try:
            made.append(rule())
        except Exception as error:
            judged.crashed.add(rule.code)
            judged.crashes.append(crash(rule, path, 1, error))
    return made


def _displayed(tree: ast.Module, source: Source) -> set[ast.stmt]:
    """The last statement of each cell of a notebook: its value is shown, not thrown away."""
    if source.notebook is None:
        return set()
    last = {}
    for statement in tree.body:
        cell = source.notebook.cell_at(statement.lineno)
        last[None if cell is None else cell.number] = statement
    return set(last.values())


def _listener(routes: Routes, path: str, judged: Judged) -> Callable[..., None]:
    """Tells the rules of each event of one type, and notes what they find."""
    kind_of, asking, crashed = routes.kind_of, routes.asking, judged.crashed

    def tell(event: Event, hearing: list[Hearing] | None = None) -> None:
        for rule, handle in routes[asking[kind_of(event)]] if hearing is None else hearing:
            if crashed and rule.code in crashed:
                continue
            try:
                found = handle(event)
                if found:  # most handlers give an empty tuple
                    for finding in found:
                        judged.suspicions.append(Suspicion(rule, finding))
            except Exception as error:
                judged.crashed.add(rule.code)
                judged.crashes.append(crash(rule, path, getattr(event.node, "lineno", 1), error))

    return tell


def _too_deep(path: str) -> str:
    """The line that reports code nested deeper than dtlint can follow, though Python can run it."""
    return f"{path}: the code is nested deeper than dtlint can follow; what it found before that place is reported"


def _too_long(path: str) -> str:
    """The line that reports code whose reading was broken off."""
    return f"{path}: reading the code takes too long; what dtlint found until it stopped is reported"


def crash(rule: Rule | type[Rule], path: str, line: int, error: Exception) -> str:
    """The line that reports a crash inside a rule."""
    what = in_one_line(error)
    return f"internal error: {rule.code} {rule.name} crashed on {path}:{line}: {what}; please report it"
