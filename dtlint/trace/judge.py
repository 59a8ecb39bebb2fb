"""From a trace record to diagnostics, through the runtime rules of the catalogue."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint.catalogue import catalogue
from dtlint.diagnostic import Diagnostic, Severity
from dtlint.rule import Rule, RuntimeRule
from dtlint.trace.silence import Silence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dtlint.trace.record import TraceRecord

__all__ = ["ANY", "FailOn", "SelectionError", "judge", "runtime_rules"]

ANY = "any"
"""Selects every finding but information, which alone does not fail a run."""


OF_VALUES = frozenset(("DT901", "DT902", "DT903", "DT904", "DT908", "DT909", "DT910", "DT911", "DT916", "DT917"))
"""Rules that go by the values of tensors, or follow them from cast to cast: `--only dtypes` does neither."""


class SelectionError(ValueError):
    """A name that selects no rule; the message names the nearest one."""


def runtime_rules() -> dict[str, type[RuntimeRule]]:
    """The rules that judge a trace, by code."""
    loaded = {code: rule.load() for code, rule in catalogue().items() if rule.runtime}
    return {code: rule for code, rule in loaded.items() if issubclass(rule, RuntimeRule)}


def judge(
    record: TraceRecord,
    rules: Iterable[type[RuntimeRule]] | None = None,
    on_crash: Callable[[type[RuntimeRule], Exception], None] | None = None,
    root: Path | None = None,
) -> list[Diagnostic]:
    """All diagnostics of a record, the gravest first, then by place, less those that a comment in the source silences.

    `root` is the directory of the run, to which the record's paths are relative; by default the current one.
    A rule that raises is handed to `on_crash` and the others go on; without it, the exception passes through.
    """
    found: set[Diagnostic] = set()
    for rule in runtime_rules().values() if rules is None else rules:
        try:
            found.update(rule().judge(record))
        except Exception as error:
            if on_crash is None:
                raise
            on_crash(rule, error)
    order = list(Severity)
    silence = Silence(record, root or Path.cwd())
    spoken = (diagnostic for diagnostic in found if not silence.covers(diagnostic))
    return sorted(spoken, key=lambda d: (order.index(d.severity), d.sort_key))


class FailOn:
    """Which findings fail a run: names, codes or prefixes of codes, or `any`."""

    def __init__(self, words: Sequence[str], rules: dict[str, type[RuntimeRule]]) -> None:
        self.any = ANY in words
        self.selected = {word: _matching(word, rules) for word in words if word != ANY}
        """The codes that each word stands for."""
        self.codes: set[str] = set().union(*self.selected.values())

    @property
    def asked(self) -> bool:
        """Does anything fail a run?"""
        return self.any or bool(self.codes)

    @property
    def of_values(self) -> list[str]:
        """The words that ask for nothing but what the values of tensors tell."""
        return [word for word, codes in self.selected.items() if codes <= OF_VALUES]

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Does this diagnostic fail the run?"""
        return diagnostic.code in self.codes or (self.any and diagnostic.severity is not Severity.INFO)


def _matching(word: str, rules: dict[str, type[RuntimeRule]]) -> set[str]:
    prefix = word.upper()
    codes = {code for code in rules if len(prefix) > 2 and code.startswith(prefix)}
    codes |= {code for code, rule in rules.items() if rule.name == word.lower()}
    if codes:
        return codes
    known: list[str] = [ANY, *rules, *(rule.name for rule in rules.values())]
    near = difflib.get_close_matches(word.lower(), known, 1, 0.5) or difflib.get_close_matches(prefix, known, 1, 0.5)
    raise SelectionError(
        f"no rule of a trace is called {word!r}"
        + (f"; did you mean {near[0]!r}?" if near else f"; choose from {', '.join(known)}")
    )


def as_rules(rules: dict[str, type[RuntimeRule]]) -> dict[str, type[Rule]]:
    """The same mapping, typed as reports take it."""
    return dict(rules.items())
