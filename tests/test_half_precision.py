"""The page on half precision shows no command that is not run, and what it ends with runs as it says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner
from readme import PART

from dtlint.cli import main

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGE = (DOCS / "half-precision.md").read_text(encoding="utf-8")
PARTS = list(PART.finditer(PAGE))
LIBRARY = ROOT / "fixtures" / "library"

RUN = """
import torch, ranker

torch.manual_seed(0)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    given = torch.randn(3, 5, 8).to(dtype)
    present = torch.ones(3, 5, dtype=torch.bool)
    model = ranker.Ranker(50, 8).to(dtype)
    results = [
        model(torch.randint(0, 50, (3, 5)), present),
        ranker.RMSNorm(8).to(dtype)(given * 100),
        ranker.Rotary(8)(given),
        ranker.CausalAttention(8).to(dtype)(given),
        ranker.masked_mean(given, present),
        ranker.whiten(torch.randn(20, 4).to(dtype)),
    ]
    print([one.dtype == dtype and one.isfinite().all().item() for one in results])
"""


def test_every_command_that_is_shown_is_run() -> None:
    shown = re.findall(r"^\$ (.*)$", PAGE, re.MULTILINE)
    assert shown == [part["what"] for part in PARTS]
    assert len(shown) == 7


def test_no_command_stands_in_the_text_that_is_not_run(tmp_path: Path) -> None:
    shown = {part["what"] for part in PARTS}
    others = set(re.findall(r"`(dtlint [^`]*)`", PART.sub("", PAGE))) - shown
    assert others == {"dtlint check --output-format sarif"}
    copytree(LIBRARY / "before", tmp_path / "ranker")
    arguments = ["check", "--output-format", "sarif", "--assume", "half", str(tmp_path / "ranker")]
    found = json.loads(CliRunner().invoke(main, arguments).stdout)["runs"][0]["results"]
    assert len(found) == 10
    assert all(one["codeFlows"][0]["threadFlows"][0]["locations"] for one in found)


@pytest.mark.parametrize("line", re.findall(r"^([-+]) {4,}(.*)$", PAGE, re.MULTILINE))
def test_each_change_that_is_shown_was_made(line: tuple[str, str]) -> None:
    sign, code = line
    files = [path.read_text(encoding="utf-8") for path in (LIBRARY / {"-": "before", "+": "after"}[sign]).rglob("*.py")]
    assert any(code in text for text in files)


def test_the_settings_that_are_shown_are_those_of_the_library() -> None:
    [shown] = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert (LIBRARY / "after" / "pyproject.toml").read_text(encoding="utf-8").endswith(shown)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_the_library_runs_in_half_as_is_promised() -> None:
    run = [sys.executable, "-c", RUN]
    done = subprocess.run(run, cwd=LIBRARY / "after", capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str([True] * 6)] * 3
    failed = subprocess.run(run, cwd=LIBRARY / "before", capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "must have the same dtype" in failed.stderr
