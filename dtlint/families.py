"""The families of rules, by the first digit of their codes, and what may be meant by a word that names no rule.

A code that is nearly right is answered from its own family; a prefix without rules, with the families there are.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher, get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dtlint.catalogue import AnyRule

__all__ = ["FAMILIES", "meant"]

FAMILIES = {
    "DT1": "casts",
    "DT2": "autocast and GradScaler",
    "DT3": "dtypes that meet",
    "DT4": "range and precision",
    "DT5": "deprecated names and hardware",
    "DT6": "precision settings of frameworks",
    "DT8": "files and comments",
    "DT9": "traces",
}
"""What the rules of each family are about; packages of others may have more."""

_CODE = re.compile(r"(?P<family>DT[0-9])[0-9A-Z]{2,}", re.IGNORECASE)
"""What wants to be a whole code, perhaps with a letter that looks like a digit."""
_PREFIX = re.compile(r"DT[0-9]*", re.IGNORECASE)
_MOST_NAMES = 3
"""Names of rules that have a word in common with what was asked for; more of them are no answer."""


def meant(word: str, rules: Mapping[str, AnyRule]) -> str:
    """The rest of a sentence that says there is no such rule: `; did you mean 'DT101'?`, or where to look."""
    upper = word.upper()
    if upper != word and (
        upper == "ALL" or (_PREFIX.fullmatch(word) and any(code.startswith(upper) for code in rules))
    ):
        return f"; did you mean {upper!r}?"
    code = _CODE.fullmatch(word)
    if code is not None:
        family = [known for known in rules if known.startswith(code["family"].upper())]
        if family:
            return f"; did you mean {_nearest(word.upper(), family)!r}?"
    if code is not None or _PREFIX.fullmatch(word):
        return f"; the families are {_listed({known[:3] for known in rules})}"
    names = [rule.name for rule in rules.values()]
    close = get_close_matches(word.lower(), names, n=1, cutoff=0.6) or [
        name for name in names if word.lower() in name.split("-")
    ]
    if not close or len(close) > _MOST_NAMES:
        return "; `dtlint rule` lists all of them"
    return f"; did you mean {' or '.join(map(repr, close))}?"


def _nearest(word: str, codes: Iterable[str]) -> str:
    """The code with the most letters in common; of several the one with the nearest number."""

    def distance(code: str) -> tuple[float, int]:
        digits = word[2:5]
        return -SequenceMatcher(None, word, code).ratio(), abs(int(code[2:]) - int(digits)) if digits.isdecimal() else 0

    return min(codes, key=distance)


def _listed(families: Iterable[str]) -> str:
    named = [f"{family} ({FAMILIES[family]})" if family in FAMILIES else family for family in sorted(families)]
    return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else "".join(named)
