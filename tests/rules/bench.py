"""Short programs under the eyes of one rule: what is found in them, and what its fixes make of them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dtlint import Applicability, Diagnostic, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

if TYPE_CHECKING:
    from dtlint import Rule

__all__ = ["Bench"]


class Bench:
    """The rules from one code to another, and the imports that every program begins with."""

    def __init__(self, first: str, last: str, head: str) -> None:
        self.rules: dict[str, type[Rule]] = {code: rule for code, rule in discover().items() if first <= code <= last}
        self.head = head

    def source(self, text: str) -> Source:
        """A program, with its imports."""
        return Source.from_bytes((self.head + textwrap.dedent(text)).encode(), "example.py")

    def found(self, code: str, text: str) -> list[Diagnostic]:
        """What a rule finds in a program, conditional findings among it."""
        checked = check_source(self.source(text), [self.rules[code]], Settings(preview=True))
        assert list(checked.crashes) == []
        return checked.diagnostics

    def flagged(self, code: str, text: str) -> list[int]:
        """The lines of a program that a rule flags."""
        return sorted({finding.location.span.line for finding in self.found(code, text)})

    def fixed(self, code: str, text: str) -> str:
        """The program after all fixes of the rule, without the imports."""
        result = fix_source(self.source(text), [self.rules[code]], Settings(preview=True), Applicability.UNSAFE)
        assert result.failed is None
        return result.source.text.removeprefix(self.head)
