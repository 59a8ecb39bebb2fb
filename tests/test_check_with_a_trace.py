"""The page on checks with a trace shows commands that are run, of records that are of the files as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from readme import PART

from dtlint.cli import main
from dtlint.trace.located import Located
from dtlint.trace.store import load

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TRACED = ROOT / "fixtures" / "traced"
PAGE = (DOCS / "check-with-a-trace.md").read_text(encoding="utf-8")
PARTS = list(PART.finditer(PAGE))
RECORDING = "dtlint trace --output run.json train.py"


def test_every_command_that_is_shown_is_run() -> None:
    shown = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
    assert shown == [RECORDING, *(part["what"] for part in PARTS)]


def test_the_object_that_is_shown_is_in_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    [shown] = re.findall(r"```json\n\"run\": (.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(TRACED)
    arguments = [
        "check",
        "--no-cache",
        "--trace",
        "run.json",
        "--select",
        "DT403",
        "--output-format",
        "json",
        "train.py",
    ]
    [finding] = json.loads(CliRunner().invoke(main, arguments).stdout)
    assert finding["run"] == json.loads(shown)


@pytest.mark.parametrize(("record", "file"), [("run.json", "train.py"), ("loaded.json", "loaded.py")])
def test_the_records_are_of_the_files_as_they_are(record: str, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TRACED)
    seen = Located(load(Path(record)), Path(record), [Path(file)]).of(file)
    assert seen is not None
    assert seen.places
    assert not seen.stale
