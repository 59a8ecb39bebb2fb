"""The first look at a file: the rules of which a trigger word stands in it; of the others it is clean without a parse.

Some hundred words are looked for in every file. Code repeats itself, so most are looked for among its distinct parts,
and those with a digit among the parts that have one: half the time of a search through the text for each word.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.catalogue import AnyRule

__all__ = ["triggered"]


def triggered(rules: Sequence[AnyRule], text: str) -> list[AnyRule]:
    """The rules that judge code at all, and of which one of the words, if they have any, stands in the text."""
    screen = _screen(tuple(rules))
    found = screen.found(text)
    return [rule for rule, words in screen.rules if words is None or not words.isdisjoint(found)]


class _Screen:
    """The trigger words of some rules, by where they are looked for."""

    def __init__(self, rules: tuple[AnyRule, ...]) -> None:
        self.rules = [(rule, frozenset(rule.triggers) or None) for rule in rules if rule.hears()]
        words = sorted({word for rule, _ in self.rules for word in rule.triggers})
        self.over_space = [word for word in words if _SPACE.search(word)]
        rest = [word for word in words if not _SPACE.search(word)]
        self.with_digit = [word for word in rest if _DIGIT.search(word)]
        self.others = [word for word in rest if not _DIGIT.search(word)]

    def found(self, text: str) -> set[str]:
        """The words that stand in a text."""
        parts = set(text.split())
        joined, numbered = " ".join(parts), " ".join(filter(_DIGIT.search, parts))
        found = {word for word in self.others if word in joined}
        found.update([word for word in self.with_digit if word in numbered])
        found.update([word for word in self.over_space if word in text])
        return found


_SPACE = re.compile(r"\s")
_DIGIT = re.compile("[0-9]")


@lru_cache(maxsize=8)
def _screen(rules: tuple[AnyRule, ...]) -> _Screen:
    return _Screen(rules)
