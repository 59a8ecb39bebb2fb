"""Who hears of which events. There are as many rules as events in a file, so each event goes to those alone that asked for
its kind, and who these are is found out once for each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from dtlint.infer.events import Assign, Call, Discard, End, Enter, Event, Exit, Operation, Reference
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    import ast

__all__ = ["Hearing", "Routes", "routes"]

Handler = Callable[[Event], Iterable[Finding]]
Hearing = tuple[Rule, Handler]
"""A rule, and what it does when it hears."""

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


class Routes(dict[Any, list[Hearing]]):
    """The rules that hear of one type of event, by its kinds."""

    kind_of: ClassVar[attrgetter[Any]] = attrgetter("__class__")
    """The kind of an event: these are all of one."""

    def __init__(self, hearing: list[Hearing]) -> None:
        super().__init__()
        self.hearing = hearing

    def __missing__(self, kind: Any) -> list[Hearing]:
        self[kind] = found = [(rule, handle) for rule, handle in self.hearing if self.asks(rule, kind)]
        return found

    def asks(self, rule: Rule, kind: Any) -> bool:
        """Does a rule want to hear of events of a kind?"""
        return True


class _Operators(Routes):
    kind_of = attrgetter("operator.__class__")

    def asks(self, rule: Rule, kind: type[ast.AST]) -> bool:
        return rule.operators is None or kind in rule.operators


class _Named(Routes):
    kind_of = attrgetter("name")

    def asks(self, rule: Rule, kind: str) -> bool:
        return rule.references is None or kind in rule.references


class _Assigned(Routes):
    kind_of = attrgetter("target.__class__", "expression.__class__")

    def asks(self, rule: Rule, kind: tuple[type[ast.AST], type[ast.AST]]) -> bool:
        target, value = kind
        if rule.targets is None and rule.values is None:
            return True
        return target in (rule.targets or ()) or value in (rule.values or ())


class _Calls(Routes):
    """A call has two names where an attribute holds something else: `self.scaler_class()` is also a `GradScaler()`."""

    kind_of = attrgetter("target", "method")

    def __init__(self, hearing: list[Hearing]) -> None:
        super().__init__(hearing)
        self.wanted = frozenset(name for rule, _ in hearing for name in rule.calls or ())
        self.parts = [(form[1:-1], form) for form in self.wanted if form.startswith("*")]
        self.by_forms: dict[frozenset[str], list[Hearing]] = {}

    def __missing__(self, kind: tuple[str, str]) -> list[Hearing]:
        target, method = kind
        last = target.rpartition(".")[2]
        forms = self.wanted & {last, method or last, f"{target.partition('.')[0]}."}
        forms |= {form for part, form in self.parts if part in last or part in method}
        known = self.by_forms.get(forms)
        if known is None:
            known = [hearing for hearing in self.hearing if (calls := hearing[0].calls) is None or forms & calls]
            self.by_forms[forms] = known
        self[kind] = known
        return known


_ROUTES: dict[type[Event], type[Routes]] = {
    Call: _Calls,
    Reference: _Named,
    Operation: _Operators,
    Assign: _Assigned,
}


def routes(rules: Sequence[Rule]) -> dict[type[Event], Routes]:
    """The routes of each type of event that one of the rules hears of."""
    found = {}
    heard = [(rule, _hears(type(rule))) for rule in rules]  # type: ignore[arg-type]  # the hash of a class is its type's
    for name, event in _EVENTS.items():
        hearing = [(rule, getattr(rule, name)) for rule, names in heard if name in names]
        if hearing:
            found[event] = _ROUTES.get(event, Routes)(hearing)
    return found


@lru_cache(maxsize=512)
def _hears(rule: type[Rule]) -> tuple[str, ...]:
    return rule.hears()
