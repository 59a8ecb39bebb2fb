"""Rules and events: which rule hears of what, and what the rules suspect of one file.

A rule that crashes is reported by name, and judges that file no further; the others go on. A file that is nested
deeper than the interpreter can follow is reported, and what was suspected until then is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.events import Assign, Call, Discard, End, Enter, Event, Exit, Operation, Reference
from dtlint.infer.interpreter import TooLong, interpreter_of
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    import ast

    from dtlint.source.file import Source

__all__ = ["Judged", "Suspicion", "crash", "judge", "too_deep"]

_EVENTS: dict[str, type[Event]] = {
    "on_call": Call,
    "on_reference": Reference,
    "on_operation": Operation,
    "on_assign": Assign,
    "on_discard": Discard,
    "on_enter": Enter,
    "on_exit": Exit,
    "on_end": End,
}

Handler = Callable[[Event], Iterable[Finding]]


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


def judge(tree: ast.Module, source: Source, rules: Sequence[type[Rule]]) -> Judged:
    """What the rules suspect of a module."""
    judged = Judged()
    audience = _Audience(source.path, _made(rules, source.path, judged), judged)
    displayed = _displayed(tree, source)
    discard = audience.listeners.get(Discard)
    if displayed and discard is not None:
        audience.listeners[Discard] = lambda event: None if event.node in displayed else discard(event)
    if audience.listeners:
        interpreter = interpreter_of(tree, audience.listeners)
        interpreter.operators_told, interpreter.targets_told = audience.operators, audience.targets
        judged.forget = interpreter.forget
        try:
            interpreter.run()
        except (RecursionError, TooLong) as error:
            judged.crashed.update(rule.code for rule in rules)
            judged.crashes.append(
                too_deep(source.path) if isinstance(error, RecursionError) else _too_long(source.path)
            )
        audience.listeners.clear()
    return judged


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


class _Audience:
    """The rules that judge one file, by the events that they hear."""

    def __init__(self, path: str, rules: list[Rule], judged: Judged) -> None:
        self.path, self.judged = path, judged
        self.listeners: dict[type[Event], Callable[[Event], None]] = {}
        heard = [(rule, rule.hears()) for rule in rules]
        self.operators = _every([rule.operators for rule, names in heard if "on_operation" in names])
        self.targets = _every([rule.targets for rule, names in heard if "on_assign" in names])
        for name, event in _EVENTS.items():
            hearing = [(rule, getattr(rule, name)) for rule, handlers in heard if name in handlers]
            if hearing:
                self.listeners[event] = self._teller(event, hearing)

    def _teller(self, event: type[Event], handlers: list[tuple[Rule, Handler]]) -> Callable[[Event], None]:
        """The listener for one kind of event, which tells of it those rules that want to hear of such."""
        if event is Call:
            return self._caller(handlers)
        if event is Operation:
            return self._sorter(handlers, lambda event: type(event.operator), lambda rule: rule.operators)  # type: ignore[attr-defined]
        if event is Assign:
            return self._sorter(handlers, lambda event: type(event.target), lambda rule: rule.targets)  # type: ignore[attr-defined]
        return self._listener(handlers)

    def _sorter(
        self,
        handlers: list[tuple[Rule, Handler]],
        kind_of: Callable[[Event], type[ast.AST]],
        wanted: Callable[[Rule], frozenset[type[ast.AST]] | None],
    ) -> Callable[[Event], None]:
        """The listener for events of several kinds, of which rules may want some only."""
        known: dict[type[ast.AST], Callable[[Event], None]] = {}

        def tell(event: Event) -> None:
            kind = kind_of(event)
            if kind not in known:
                wants = [(rule, handle, wanted(rule)) for rule, handle in handlers]
                known[kind] = self._listener(
                    [(rule, handle) for rule, handle, kinds in wants if kinds is None or kind in kinds]
                )
            known[kind](event)

        return tell

    def _caller(self, handlers: list[tuple[Rule, Handler]]) -> Callable[[Event], None]:
        """The listener for calls: each goes once to the rules that want one of its names, and to those that want all. A
        method has two where an attribute holds something else: `self.scaler_class()` is also a `GradScaler()`."""
        wanted = frozenset(name for rule, _ in handlers for name in rule.calls or ())
        known: dict[frozenset[str], Callable[[Event], None]] = {}
        by_name: dict[tuple[str, str], Callable[[Event], None]] = {}

        def listener(target: str, method: str) -> Callable[[Event], None]:
            names = wanted & {target.rpartition(".")[2], method}
            if names not in known:
                known[names] = self._listener(
                    [(rule, handle) for rule, handle in handlers if rule.calls is None or names & rule.calls]
                )
            return known[names]

        def tell(event: Event) -> None:
            name = (event.target, event.method)  # type: ignore[attr-defined]
            found = by_name.get(name)
            if found is None:
                found = by_name[name] = listener(*name)
            found(event)

        return tell

    def _listener(self, handlers: list[tuple[Rule, Handler]]) -> Callable[[Event], None]:
        judged = self.judged
        crashed = judged.crashed

        def tell(event: Event) -> None:
            for rule, handle in handlers:
                if crashed and rule.code in crashed:
                    continue
                try:
                    for finding in handle(event) or ():
                        judged.suspicions.append(Suspicion(rule, finding))
                except Exception as error:
                    judged.crashed.add(rule.code)
                    judged.crashes.append(crash(rule, self.path, getattr(event.node, "lineno", 1), error))

        return tell


def _every(wanted: list[frozenset[type[ast.AST]] | None]) -> frozenset[type[ast.AST]] | None:
    """All that some rules want to hear of; None if one wants everything."""
    every: frozenset[type[ast.AST]] = frozenset()
    for kinds in wanted:
        if kinds is None:
            return None
        every |= kinds
    return every


def too_deep(path: str) -> str:
    """The line that reports code nested deeper than dtlint can follow, though Python can run it."""
    return f"{path}: the code is nested deeper than dtlint can follow; what it found before that place is reported"


def _too_long(path: str) -> str:
    """The line that reports code whose reading was broken off."""
    return f"{path}: reading the code takes too long; what dtlint found until it stopped is reported"


def crash(rule: Rule | type[Rule], path: str, line: int, error: Exception) -> str:
    """The line that reports a crash inside a rule."""
    return f"internal error: {rule.code} {rule.name} crashed on {path}:{line}: {type(error).__name__}: {error}"
