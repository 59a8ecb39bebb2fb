"""The baseline that the page on baselines shows is the one that is made, and its change was made."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "contracts-in-ci.md").read_text(encoding="utf-8")
FIXTURE = ROOT / "fixtures" / "contract"

pytestmark = pytest.mark.skipif(
    f"torch=={version('torch').partition('+')[0]}\n" not in (ROOT / "constraints.txt").read_text(encoding="utf-8"),
    reason="needs the torch of constraints.txt",
)


def test_the_baseline_is_the_one_that_is_made(tmp_path: Path) -> None:
    shutil.copy(FIXTURE / "before" / "train.py", tmp_path)
    update = ["trace", "-q", "--baseline", "dtypes.json", "--update-baseline", "train.py"]
    subprocess.run([sys.executable, "-m", "dtlint", *update], cwd=tmp_path, check=True)
    text = (tmp_path / "dtypes.json").read_text(encoding="utf-8")
    assert text == (FIXTURE / "after" / "dtypes.json").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert shown in text


def test_the_change_that_is_shown_was_made() -> None:
    (shown,) = re.findall(r"```diff\n(.*?)```", PAGE, re.DOTALL)
    for line in shown.splitlines():
        source = (FIXTURE / {"-": "before", "+": "after"}[line[0]] / "train.py").read_text(encoding="utf-8")
        assert line[1:] in source.splitlines()


def test_its_snippets_are_valid() -> None:
    github, gitlab = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    steps = yaml.safe_load(github)["jobs"]["dtypes"]["steps"]
    assert steps[-1]["run"] == yaml.safe_load(gitlab)["dtypes"]["script"][-1]
