"""The catalogue as it is listed: the facts of every rule, without the rules."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dtlint.catalogue import INDEX, Listed, catalogue
from dtlint.cli import main
from dtlint.diagnostic import Severity
from dtlint.rule import RulesError, discover

RULE = """\
from dtlint.rule import Rule

class One(Rule):
    code, name, triggers, default = "DT391", "one", ("one",), False
    needs = (("torch",), ("half", "double"))
    def on_facts(self, facts):
        return ()
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "listed_rules"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "one.py").write_text(RULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for place in ("dtlint.rule", "dtlint.catalogue"):
        monkeypatch.setattr(f"{place}.registered", lambda: {"listed_rules"})
    for name in [name for name in sys.modules if name.partition(".")[0] == "listed_rules"]:
        monkeypatch.delitem(sys.modules, name)
    return folder


def test_it_lists_the_facts_of_every_rule() -> None:
    rules, listed = discover(), catalogue()
    assert list(rules) == list(listed)
    for code, rule in rules.items():
        one = listed[code]
        assert one.load() is rule
        assert (one.name, one.default, one.since, one.triggers) == (rule.name, rule.default, rule.since, rule.triggers)
        assert (one.severity, one.runtime, one.asks()) == (rule.severity, rule.runtime, rule.asks())
        assert one.needs == rule.needs


def test_the_index_spares_the_import(package: Path) -> None:
    expected = {
        "DT391": Listed(
            "listed_rules.one",
            "One",
            "DT391",
            "one",
            Severity.WARNING,
            False,
            (0, 0),
            ("one",),
            (("torch",), ("half", "double")),
            True,
            False,
            "",
            False,
        )
    }
    assert catalogue() == expected
    sys.modules.pop("listed_rules.one")
    assert catalogue() == expected
    assert "listed_rules.one" not in sys.modules


def test_a_rule_that_has_changed_is_read_again(package: Path) -> None:
    catalogue()
    sys.modules.pop("listed_rules.one")
    (package / "one.py").write_text(RULE.replace('"one"', '"another"'))
    os.utime(package / "one.py", ns=(1, 1))
    assert catalogue()["DT391"].name == "another"


@pytest.mark.parametrize("content", ["", "[]", '{"stamp": 1}', "{"])
def test_a_broken_index_is_made_anew(package: Path, content: str) -> None:
    catalogue()
    index = package / "__pycache__" / INDEX
    index.write_text(content)
    assert list(catalogue()) == ["DT391"]
    assert json.loads(index.read_text())["rules"][0]["code"] == "DT391"


def test_it_does_without_an_index_where_nothing_may_be_written(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert list(catalogue()) == ["DT391"]
    assert not (package / "__pycache__" / INDEX).exists()


def test_two_rules_with_one_code_are_refused(package: Path) -> None:
    (package / "two.py").write_text(RULE.replace("One", "Two"))
    with pytest.raises(RulesError, match="DT391 is claimed by both"):
        catalogue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "ModuleNotFoundError: No module named 'listed_rules'; mend or uninstall that package"),
        ("raise OSError('a\\nb')", "OSError: a b; mend"),
        (RULE.replace("DT391", "XY1"), "listed_rules.one.One has the code 'XY1'; use DT and three digits"),
    ],
)
def test_rules_that_cannot_be_had_are_told_each_time(package: Path, content: str | None, words: str) -> None:
    if content is None:
        shutil.rmtree(package)
    else:
        (package / "one.py").write_text(content)
    for _ in range(2):
        result = CliRunner().invoke(main, ["check", "--no-cache", str(package.parent)])
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("dtlint: ") and words in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_a_clean_file_imports_no_rule(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("x = 1\n")
    program = (
        "import sys; from dtlint.cli import main; main(['check', '--no-cache', 'clean.py'], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith('dtlint_rules.dt')])"
    )
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(2):  # the first run may have to make the index
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, env=usual
        )
    assert done.stdout.splitlines()[-1] == "[]"
