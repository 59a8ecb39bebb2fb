"""Without any package of rules nothing is checked, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dtlint.cli import main


@pytest.fixture(autouse=True)
def _without_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("import torch\nmodel.half()\n")
    for place in ("dtlint.rule", "dtlint.catalogue"):
        monkeypatch.setattr(f"{place}.registered", set)


@pytest.mark.parametrize("arguments", [("check", "a.py"), ("check", "-"), ("rule",), ("rule", "DT101")])
def test_it_fails_in_one_line_that_says_what_to_do(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, arguments, input="x = 1\n")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "dtlint: no installed package registers rules as dtlint.rules, so nothing can be checked; install dtlint itself,"
        " which brings them: `pip install dtlint`, or `pip install -e .` in a checkout\n"
    )


def test_a_first_rule_can_still_be_begun() -> None:
    result = CliRunner().invoke(main, ("rule", "DT390", "--new", "double-cast"))
    assert result.exit_code == 0
    assert 'code, name = "DT390", "double-cast"' in result.stdout
