"""The page on comparing two runs: its commands print what it shows, numbers aside, which depend on the machine's kernels."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "compare-two-runs.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- run -->\n```console\n(.*?)```", PAGE, re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])[\d,.]+(e-\d+)?%?(?![\w.])")


def plain(text: str) -> str:
    """The text, with a mark for each number but lines of source and steps."""
    return "\n".join(NUMBER.sub("N", line) if ".py:" not in line else line for line in text.splitlines())


def places(text: str) -> list[str]:
    return re.findall(r"^  .*?(\w+\.py:\d+)", text, re.MULTILINE)


@pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")
def test_each_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    copyfile(ROOT / "tests" / "compare" / "page" / "train.py", tmp_path / "train.py")
    usual = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    codes = []
    for block in BLOCKS:
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = shown.partition("\n")
            arguments = shlex.split(command)
            done = subprocess.run(
                [sys.executable, "-m", *arguments],
                cwd=tmp_path,
                env={**usual, "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stderr == ""
            codes.append(done.returncode)
            heads = [[plain(text).splitlines()[:1] for text in (printed, done.stdout)]]
            assert heads[0][0] == heads[0][1]
            if arguments[1] == "compare":
                told = [line for line in done.stdout.splitlines() if line.startswith("Beyond")]
                assert told == [line for line in printed.splitlines() if line.startswith("Beyond")]
                assert places(done.stdout)[:2] == places(printed)[:2]
    assert codes == [0, 0, 0, 0, 1, 0, 0]


def test_every_command_that_is_shown_is_run() -> None:
    assert len(re.findall(r"^\$ dtlint", PAGE, re.MULTILINE)) == sum(block.count("$ dtlint") for block in BLOCKS) == 7
