"""Who hears of which events. There are as many rules as events in a file, so each event goes to those alone that asked
for its kind, and who these are is found out once for each kind."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from dtlint.check.screen import Group
from dtlint.infer.events import Assign, Call, Discard, End, Enter, Event, Exit, Lookup, Operation, Reference
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    import ast

    from dtlint.check.screen import Text

__all__ = ["Hearing", "Routes", "expect", "routes"]

Handler = Callable[[Event], Iterable[Finding]]
Hearing = tuple[Rule, Handler]
"""A rule, and what it does when it hears."""

_EVENTS: dict[str, type[Event]] = {
    "on_call": Call,
    "on_reference": Reference,
    "on_operation": Operation,
    "on_lookup": Lookup,
    "on_assign": Assign,
    "on_discard": Discard,
    "on_enter": Enter,
    "on_exit": Exit,
    "on_end": End,
}


class _Asked:
    """The rules that ask for some kinds, in the order of their codes."""

    __slots__ = ("rules",)

    def __init__(self, rules: Iterable[type[Rule]]) -> None:
        self.rules = tuple(sorted(rules, key=_by_code))


class _Asking(dict[Any, _Asked]):
    """Which of some rules ask for a kind of one type of event. It is found out once for each kind: the files of a run are
    many, and their calls are the same."""

    def __init__(self, rules: frozenset[type[Rule]]) -> None:
        super().__init__()
        self.rules = rules
        self._same: dict[frozenset[type[Rule]], _Asked] = {}

    def __missing__(self, kind: Any) -> _Asked:
        """Those that ask for a kind. Kinds are many, and those who ask for them are few: one for all kinds of theirs."""
        if len(self) >= _MOST_KINDS:
            self.clear()
        rules = frozenset(self.asking(kind))
        known = self._same.get(rules)
        if known is None:
            known = self._same[rules] = _Asked(rules)
        self[kind] = known
        return known

    def asking(self, kind: Any) -> Iterable[type[Rule]]:
        """Of an event without kinds all want to hear."""
        return self.rules


_MOST_KINDS = 50_000
"""Kinds that are remembered: a few MB."""
_by_code = attrgetter("code", "__module__")


class _Operators(_Asking):
    def asking(self, kind: tuple[type[ast.AST], bool]) -> Iterable[type[Rule]]:
        operator, is_known = kind
        return [
            rule
            for rule in self.rules
            if (rule.operators is None or operator in rule.operators)
            and (is_known or not rule.of_known or operator in rule.of_any)
        ]


class _Names(_Asking):
    def asking(self, kind: str) -> Iterable[type[Rule]]:
        return [rule for rule in self.rules if rule.references is None or kind in rule.references]


class _Bindings(_Asking):
    def asking(self, kind: tuple[type[ast.AST], type[ast.AST]]) -> Iterable[type[Rule]]:
        target, value = kind
        return [
            rule
            for rule in self.rules
            if (rule.targets is None and rule.values is None)
            or target in (rule.targets or ())
            or value in (rule.values or ())
        ]


class _Calls(_Asking):
    """A call has two names where an attribute holds something else: `self.scaler_class()` is also a `GradScaler()`."""

    def __init__(self, rules: frozenset[type[Rule]]) -> None:
        super().__init__(rules)
        self.by_form: dict[str | None, set[type[Rule]]] = {}
        for rule in rules:
            for form in (None,) if rule.calls is None else rule.calls:
                self.by_form.setdefault(form, set()).add(rule)
        self.parts = [(form[1:-1].lower(), who) for form, who in self.by_form.items() if form and form.startswith("*")]
        """Who asks for all names with a part in them."""

    def asking(self, kind: tuple[str, str]) -> Iterable[type[Rule]]:
        target, name = kind
        last = target.rpartition(".")[2]
        found = [self.by_form.get(form) for form in (None, last, name, f"{target.partition('.')[0]}.")]
        both = f"{last} {name}".lower()
        found += [who for part, who in self.parts if part in both]
        return set[type[Rule]]().union(*filter(None, found))


_KINDS: dict[type[Event], tuple[attrgetter[Any], type[_Asking]]] = {
    Call: (attrgetter("target", "name"), _Calls),
    Discard: (attrgetter("call.target", "call.name"), _Calls),
    Reference: (attrgetter("name"), _Names),
    Operation: (attrgetter("operator.__class__", "on_known"), _Operators),
    Assign: (attrgetter("target.__class__", "expression.__class__"), _Bindings),
} | dict.fromkeys((End, Enter, Exit, Lookup), (attrgetter("__class__"), _Asking))
"""The kind of an event, and who finds out who asks for it; those of the last few are all of one kind."""

_latest: dict[type[Event], _Asking] = {}
"""Of each type of event, what was found out about all rules that have been met."""


def _met(event: type[Event], rules: Collection[type[Rule]]) -> _Asking:
    """Who of these rules, and those met before, ask for what. What was found out before a new one came is let go."""
    known = _latest.get(event)
    if known is None or not known.rules.issuperset(rules):
        known = _KINDS[event][1](frozenset(rules) if known is None else known.rules.union(rules))
        _latest[event] = known
    return known


def expect(rules: Sequence[type[Rule]]) -> None:
    """Meet all rules of a run at once, so that what is found out for its first files holds to the end."""
    for name, event in _EVENTS.items():
        _met(event, [rule for rule in rules if name in _all_heard(rule)])  # type: ignore[arg-type]  # see `_hears`


class Routes(dict[_Asked, list[Hearing]]):
    """The rules made for one file that hear of one type of event: of those who ask for a kind, the ones that are here."""

    def __init__(self, event: type[Event], hearing: list[Hearing]) -> None:
        super().__init__()
        self.hearing = hearing
        self.kind_of = _KINDS[event][0]
        self._by_rule = {type(rule): (rule, handle) for rule, handle in hearing}
        self.asking = _met(event, self._by_rule.keys())
        """Who asks for a kind, for all files."""

    def __missing__(self, asked: _Asked) -> list[Hearing]:
        here = self._by_rule
        found = self[asked] = [here[rule] for rule in asked.rules if rule in here]
        return found

    @property
    def told(self) -> tuple[_Asking, Routes]:
        """What tells who wants to hear of a kind: the second of what the first says. Two steps, for the first is found
        out once for all files, and the second once for many kinds."""
        return self.asking, self


def routes(rules: Sequence[Rule], text: Text) -> dict[type[Event], Routes]:
    """The routes of each type of event that one of the rules hears of in a file with these words."""
    hearing: dict[str, list[Hearing]] = {name: [] for name in _EVENTS}
    for rule in rules:
        for name in _hears(type(rule), text):
            hearing[name].append((rule, getattr(rule, name)))
    return {event: Routes(event, hearing[name]) for name, event in _EVENTS.items() if hearing[name]}


def _hears(rule: type[Rule], text: Text) -> tuple[str, ...]:
    heard = _all_heard(rule)  # type: ignore[arg-type]  # the hash of a class is its type's
    if not rule.hears_where:
        return heard
    asked = _asked_where(rule)  # type: ignore[arg-type]
    return tuple(name for name in heard if name not in asked or text.has(asked[name]))


@lru_cache(maxsize=512)
def _all_heard(rule: type[Rule]) -> tuple[str, ...]:
    return tuple(name for name in rule.hears() if name in _EVENTS)


@lru_cache(maxsize=512)
def _asked_where(rule: type[Rule]) -> dict[str, Group]:
    return {name: Group(words) for name, words in rule.hears_where.items()}
