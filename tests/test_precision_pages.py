"""The pages on planning precision and on the speed of AMP say what their commands do."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest

ROOT = Path(__file__).resolve().parent.parent
PLAN = (ROOT / "docs" / "which-layers-in-float32.md").read_text(encoding="utf-8")
SPEED = (ROOT / "docs" / "amp-is-no-faster.md").read_text(encoding="utf-8")

needs_torch = pytest.mark.skipif(not find_spec("torch"), reason="needs torch")


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "dtlint", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@needs_torch
def test_the_other_commands_of_the_plan_run(tmp_path: Path) -> None:
    """Those in the text, on the plan for FSDP2; the first ones are run where the page shows what they print."""
    copy(ROOT / "fixtures" / "plan" / "train.py", tmp_path)
    run(tmp_path, *["trace", "--assume", "float16", "-q", "-o", "run.json", "train.py"])
    commands = re.findall(
        r"`dtlint ([^`]* [^`]*)`", re.sub(r"<!-- generated.*?<!-- end -->", "", PLAN, flags=re.DOTALL)
    )
    commands = [command for command in commands if command.startswith(("plan", "trace --plan plan"))]
    assert len(commands) == 6
    commands.sort(key=lambda command: (command.startswith("plan try"), "--plan" in command))
    printed = {command: run(tmp_path, *command.split()) for command in commands}
    assert "def apply_precision_plan(model):" in printed["plan run.json --code autocast"]
    assert "mp_policy=wide" in printed["plan run.json --how cast --code fsdp2"]
    assert "The plan holds in this run" in printed["trace --plan plan.json train.py"]


def shape(line: str) -> str:
    """A line without what is measured: numbers, and the unit of a time."""
    return re.sub(r"[\d.]+( (ms|us|s)\b)?", "#", line).strip()


@needs_torch
def test_the_times_are_told_as_the_page_shows(tmp_path: Path) -> None:
    copy(ROOT / "fixtures" / "speed" / "train.py", tmp_path)
    (command,) = re.findall(r"^\$ dtlint (.*)$", SPEED, re.MULTILINE)
    printed = {shape(line) for line in run(tmp_path, *command.split()).splitlines()}
    (block,) = re.findall(r"```\n(Time: .*?)```", SPEED, re.DOTALL)
    shown = [shape(line) for line in block.splitlines()]
    told = [shown[0], *(line for line in shown if "head(hidden" in line and "cross_entropy" not in line), shown[-2]]
    assert len(told) == 5
    if any("without bfloat# instructions" in line for line in printed):  # another CPU than that of the page
        told = told[:3]
    assert [line for line in told if line not in printed] == []
