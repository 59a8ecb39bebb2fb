"""Every rule keeps the promise of its own documentation.

The Example is flagged, Use instead is not, and where the rule has a fix that can be applied, fixing the first gives
exactly the second.
"""

from __future__ import annotations

import pytest

from dtlint import Applicability, Rule, RuntimeRule, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.document import document
from dtlint.dtypes.assumption import ASSUMPTIONS
from dtlint.source.file import Source

RULES = discover()
STATIC = [rule for rule in RULES.values() if not issubclass(rule, RuntimeRule)]

HYGIENE = "DT801"
"""It judges suppressions of other rules, so those run too."""

WIDEST = 120
"""Columns of a page: `dtlint rule` prints it as it is written where no terminal wraps it."""


def enabled_with(rule: type[Rule]) -> list[type[Rule]]:
    return STATIC if rule.code == HYGIENE else [rule]


def settings_for(rule: type[Rule]) -> Settings:
    return Settings(preview=True, supports=(ASSUMPTIONS[rule.assumption],) if rule.assumption else ())


def found(rule: type[Rule], text: str) -> list[str]:
    """The codes found in a text, of this rule alone where others run too."""
    checked = check_source(Source.from_bytes(text.encode(), "example.py"), enabled_with(rule), settings_for(rule))
    assert list(checked.crashes) == []
    return [diagnostic.code for diagnostic in checked.diagnostics if diagnostic.code == rule.code]


@pytest.mark.parametrize("rule", STATIC, ids=lambda rule: rule.code)
def test_each_example_is_flagged(rule: type[Rule]) -> None:
    examples = document(rule).example
    assert examples
    for example in examples:
        assert found(rule, example), f"{rule.code} does not flag its own example:\n{example}"


@pytest.mark.parametrize("rule", STATIC, ids=lambda rule: rule.code)
def test_what_to_use_instead_is_not_flagged(rule: type[Rule]) -> None:
    for instead in document(rule).instead:
        assert found(rule, instead) == [], f"{rule.code} flags what it recommends:\n{instead}"


@pytest.mark.parametrize(
    "rule",
    [rule for rule in STATIC if rule.fix in (Applicability.SAFE, Applicability.UNSAFE)],
    ids=lambda rule: rule.code,
)
def test_fixing_the_example_gives_what_to_use_instead(rule: type[Rule]) -> None:
    text = document(rule)
    for example, instead in zip(text.example, text.instead, strict=True):
        source = Source.from_bytes(example.encode(), "example.py")
        fixed = fix_source(source, enabled_with(rule), settings_for(rule), rule.fix)
        assert fixed.failed is None
        assert fixed.source.text == instead


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_page_is_no_wider_than_code(rule: type[Rule]) -> None:
    lines = document(rule).markdown().splitlines()
    assert [line for line in lines if len(line) > WIDEST and "](https://" not in line] == []
