"""The programs under fixtures/ are judged as the comments in them say: `x.half()  # error: DT104`.

Whatever is flagged must be expected, and whatever is expected must be flagged, line by line and code by code. Opt-in
rules run on the files that expect them.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from dtlint import RuntimeRule, discover
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.source.file import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
BAD = sorted((FIXTURES / "bad").rglob("*.py"))
GOOD = sorted((FIXTURES / "good").rglob("*.py"))
RULES = [rule for rule in discover().values() if not issubclass(rule, RuntimeRule)]

EXPECTATION = re.compile(r"# error: (?P<codes>DT\d{3}(?:, DT\d{3})*)")


def expected(text: str) -> Counter[tuple[int, str]]:
    return Counter(
        (number, code)
        for number, line in enumerate(text.splitlines(), 1)
        if (comment := EXPECTATION.search(line))
        for code in comment["codes"].split(", ")
    )


def found(path: Path) -> tuple[Counter[tuple[int, str]], Source]:
    source = Source.read(path)
    wanted = {code for _, code in expected(source.text)} | {path.name[:5].upper()}
    checked = check_source(source, [rule for rule in RULES if rule.default or rule.code in wanted], Settings())
    assert list(checked.crashes) == []
    return Counter((item.location.span.line, item.code) for item in checked.diagnostics), source


def shown(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


def test_there_are_fixtures() -> None:
    assert BAD
    assert GOOD


@pytest.mark.parametrize("path", BAD, ids=shown)
def test_bad_code_is_flagged_exactly_where_it_says(path: Path) -> None:
    flagged, source = found(path)
    assert flagged == expected(source.text)
    assert flagged, "a file of bad code expects at least one finding"


@pytest.mark.parametrize("path", GOOD, ids=shown)
def test_good_code_is_not_flagged(path: Path) -> None:
    flagged, source = found(path)
    assert flagged == Counter()
    assert expected(source.text) == Counter(), "good code expects nothing"
