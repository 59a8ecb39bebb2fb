"""Rules and events: which rule hears of what, and what the rules suspect of one file.

A rule that crashes is reported by name, and judges that file no further; the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.events import Assign, Call, Discard, End, Enter, Event, Exit, Operation, Reference
from dtlint.infer.interpreter import interpret
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    import ast

    from dtlint.source.file import Source

__all__ = ["Suspicion", "crash", "suspicions"]

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


@dataclass(slots=True)
class Suspicion:
    """A finding, and the rule that has it."""

    rule: Rule
    finding: Finding


def suspicions(tree: ast.Module, source: Source, rules: Sequence[type[Rule]]) -> tuple[list[Suspicion], list[str]]:
    """What the rules suspect of a module, and one line for each rule that crashed."""
    audience = _Audience(source.path, [rule() for rule in rules])
    displayed = _displayed(tree, source)
    discard = audience.listeners.get(Discard)
    if displayed and discard is not None:
        audience.listeners[Discard] = lambda event: None if event.node in displayed else discard(event)
    if audience.listeners:
        interpret(tree, audience.listeners)
    return audience.suspicions, audience.crashes


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

    def __init__(self, path: str, rules: list[Rule]) -> None:
        self.path = path
        self.suspicions: list[Suspicion] = []
        self.crashes: list[str] = []
        self.crashed: set[str] = set()
        self.listeners: dict[type[Event], Callable[[Event], None]] = {}
        for name, event in _EVENTS.items():
            hearing = [(rule, getattr(rule, name)) for rule in rules if name in rule.hears()]
            if hearing:
                self.listeners[event] = self._listener(hearing)

    def _listener(self, handlers: list[tuple[Rule, Handler]]) -> Callable[[Event], None]:
        def tell(event: Event) -> None:
            for rule, handle in handlers:
                if rule.code in self.crashed:
                    continue
                try:
                    for finding in handle(event) or ():
                        self.suspicions.append(Suspicion(rule, finding))
                except Exception as error:
                    self.crashed.add(rule.code)
                    self.crashes.append(crash(rule, self.path, getattr(event.node, "lineno", 1), error))

        return tell


def crash(rule: Rule, path: str, line: int, error: Exception) -> str:
    """The line that reports a crash inside a rule."""
    return f"internal error: {rule.code} {rule.name} crashed on {path}:{line}: {type(error).__name__}: {error}"
