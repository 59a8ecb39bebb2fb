"""Short programs under the eyes of one rule: what is found in them, and what its fixes make of them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from dtlint import Applicability, Diagnostic, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint import Rule

__all__ = ["Bench", "cases", "marked"]


Programs = dict[str, tuple[str, ...]]
"""For each rule some programs."""


def cases(table: Programs) -> list[object]:
    """A parameter for each program of a table, with the rule that it is for."""
    return [pytest.param(code, text, id=f"{code}-{i}") for code, texts in table.items() for i, text in enumerate(texts)]


def marked(source: Source) -> list[int]:
    """The lines at whose end `# <-` stands: those that are flagged, and no other line is."""
    return [number for number, line in enumerate(source.lines, 1) if line.endswith("# <-")]


class Bench:
    """The rules from one code to another, and the imports that every program begins with."""

    def __init__(self, first: str, last: str, head: str) -> None:
        self.rules: dict[str, type[Rule]] = {code: rule for code, rule in discover().items() if first <= code <= last}
        self.head = head

    def source(self, text: str) -> Source:
        """A program, with its imports."""
        return Source.from_bytes((self.head + textwrap.dedent(text)).encode(), "example.py")

    def found(self, code: str, text: str) -> list[Diagnostic]:
        """What a rule finds in a program."""
        checked = check_source(self.source(text), [self.rules[code]], Settings())
        assert list(checked.crashes) == []
        return checked.diagnostics

    def flagged(self, code: str, text: str) -> list[int]:
        """The lines of a program that a rule flags."""
        return sorted({finding.location.span.line for finding in self.found(code, text)})

    def fixed(self, code: str, text: str) -> str:
        """The program after all fixes of the rule, without the imports."""
        result = fix_source(self.source(text), [self.rules[code]], Settings(), Applicability.UNSAFE)
        assert result.failed is None
        return result.source.text.removeprefix(self.head)

    def tests(self, bad: Programs, good: Programs) -> tuple[Callable[..., None], Callable[..., None]]:
        """The tests that a table of bad programs is flagged where they say, and one of right programs is left alone."""

        @pytest.mark.parametrize(("code", "text"), cases(bad))
        def flagged(code: str, text: str) -> None:
            assert self.flagged(code, text) == marked(self.source(text))

        @pytest.mark.parametrize(("code", "text"), cases(good))
        def left_alone(code: str, text: str) -> None:
            assert self.found(code, text) == []

        return flagged, left_alone
