"""The language server in a real editor: Neovim without a screen."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_server import PROGRAM

SCRIPT = Path(__file__).with_name("neovim.lua")


@pytest.mark.skipif(shutil.which("nvim") is None, reason="needs Neovim: apt-get install neovim")
def test_neovim_shows_what_is_wrong_and_follows_an_edit(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        ["nvim", "--headless", "-u", "NONE", "-n", "-c", f"luafile {SCRIPT}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "XDG_STATE_HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    told = {key: json.loads(value) for key, value in told.items()}
    # columns are bytes for Neovim, of which `𝒳` has four
    assert told == {
        "came": True,
        "diagnostics": [["DT302", 5, 14, 25]],
        "hover": "`data`: **float64**",
        "gone": True,
    }, done.stderr
