"""The page on the report of a run is what its commands do."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest
from click.testing import CliRunner
from readme import PART, made

from dtlint.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "read-the-report.md").read_text(encoding="utf-8")
PARTS = list(PART.finditer(PAGE))


@pytest.mark.parametrize("part", PARTS, ids=[part["what"] for part in PARTS])
def test_each_command_prints_what_the_page_shows(part: re.Match[str]) -> None:
    if not find_spec("torch"):
        pytest.skip("needs torch")
    assert part["body"] == made(part, DOCS), "run `make docs`"


def test_its_other_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint.trace.record import nothing
    from dtlint.trace.store import save

    monkeypatch.chdir(tmp_path)
    save(nothing(["train.py"], 0), tmp_path / "run.json")
    copy(ROOT / "fixtures" / "demo" / "finetune.py", tmp_path)
    commands = re.findall(r"`dtlint ([^`]* [^`]*)`", PART.sub("", PAGE))
    assert commands == ["report run.json --html run.html", "check --report html:findings.html"]
    for command in commands:
        done = CliRunner().invoke(main, command.split())
        assert done.exit_code in (0, 1), done.output
    for name in ("run.html", "findings.html"):
        assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_it_names_what_the_page_shows() -> None:
    folder = ROOT / "dtlint" / "report" / "html" / "script"
    script = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    headings = re.findall(r'section\(\s*"\w+",\s*"([^"]+)"', script)
    assert {"Modules over the steps", "Magnitudes", "Casts and promotions", "GradScaler"} <= set(headings)
    for metric in re.findall(r'\["\w+", "([^"]+)"\]', script.split("const METRICS")[1].split("];")[0]):
        assert f"| {metric} |" in PAGE
