"""The page on output formats names every format, and its snippets work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dtlint.report import FORMATS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "output-formats.md").read_text(encoding="utf-8")


def test_it_has_a_row_for_each_format() -> None:
    assert sorted(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == sorted([*FORMATS, "screen"])


def test_its_snippets_are_valid_and_run_commands_that_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = pytest.importorskip("yaml")
    from click.testing import CliRunner

    from dtlint.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1  # noqa: DT999\n")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    commands = [blocks[0][0]["run"], *blocks[1]["dtlint"]["script"]]
    commands += [re.findall(r"`(dtlint check [^`|]*) \|", PAGE)[-1]]
    assert len(commands) == 3
    for command in commands:
        assert CliRunner().invoke(main, command.split()[1:]).exit_code == 1, command
    names = {"dtlint.sarif", "quality.json", "dtlint.xml"}
    assert {path.name for path in tmp_path.iterdir()} >= names
