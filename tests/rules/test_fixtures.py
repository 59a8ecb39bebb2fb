"""The programs under fixtures/dtNNN are judged as the comments in them say: `x.half()  # error: DT104`.

A fixture shows one reason, which its first line gives as a docstring. It is judged by the rule of its folder alone, and
by all default rules besides where its second line is `# rules: all`. Only such a fixture may expect other codes than
that of its folder. Where its second line is one like `# assume: half,mixed` it is judged under these assumptions. Whatever is flagged must be expected, and whatever is expected must be flagged, line by line and
code by code. Conditional findings count.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from dtlint import RuntimeRule, discover
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.dtypes.assumption import Assumption, parse_assumption
from dtlint.source.file import Source

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PROGRAMS = sorted(FIXTURES.glob("dt[0-9][0-9][0-9]/*.py"))
RULES = [rule for rule in discover().values() if not issubclass(rule, RuntimeRule)]

ALL_RULES = "# rules: all"
EXPECTATION = re.compile(r"# error: (?P<codes>DT\d{3}(?:, DT\d{3})*)")


def expected(text: str) -> Counter[tuple[int, str]]:
    return Counter(
        (number, code)
        for number, line in enumerate(text.splitlines(), 1)
        if (comment := EXPECTATION.search(line))
        for code in comment["codes"].split(", ")
    )


def code_of(path: Path) -> str:
    return path.parent.name.upper()


def needs_all_rules(text: str) -> bool:
    return text.splitlines()[1] == ALL_RULES


def assumptions_of(text: str) -> tuple[Assumption, ...]:
    names = re.match(r"[^\n]*\n# assume: (.*)", text)
    return () if names is None else tuple(map(parse_assumption, names[1].split(",")))


def found(path: Path, source: Source) -> Counter[tuple[int, str]]:
    wanted = {code for _, code in expected(source.text)} | {code_of(path)}
    default = needs_all_rules(source.text)
    rules = [rule for rule in RULES if rule.code in wanted or (default and rule.default)]
    checked = check_source(source, rules, Settings(preview=True, supports=assumptions_of(source.text)))
    assert list(checked.crashes) == []
    return Counter((item.location.span.line, item.code) for item in checked.diagnostics)


def shown(path: Path) -> str:
    return path.relative_to(FIXTURES).as_posix()


@pytest.mark.parametrize("path", PROGRAMS, ids=shown)
def test_a_fixture_is_flagged_exactly_where_it_says(path: Path) -> None:
    source = Source.read(path)
    assert found(path, source) == expected(source.text)


def test_each_fixture_gives_its_reason_in_its_first_line() -> None:
    for path in PROGRAMS:
        text = path.read_text(encoding="utf-8")
        reason = ast.get_docstring(ast.parse(text), clean=False)
        assert reason and text.startswith(f'"""{reason}"""\n') and "\n" not in reason, shown(path)
        assert needs_all_rules(text) or {code for _, code in expected(text)} <= {code_of(path)}, shown(path)


def test_each_folder_is_of_a_rule_and_each_rule_has_fixtures_of_both_kinds() -> None:
    kinds: dict[str, set[bool]] = {rule.code: set() for rule in RULES if rule.code < "DT800"}
    for path in PROGRAMS:
        kinds[code_of(path)].add(any(code == code_of(path) for _, code in expected(path.read_text(encoding="utf-8"))))
    assert {code: kind for code, kind in kinds.items() if kind != {False, True}} == {}
