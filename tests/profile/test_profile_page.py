"""The page on profiles names the tracks that there are."""

from __future__ import annotations

import re
from pathlib import Path

from dtlint.profile.tracks import TRACKS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "profile.md").read_text(encoding="utf-8")


def test_it_names_every_track() -> None:
    assert re.findall(r"^\| ([\w -]+?) +\| ", PAGE, re.MULTILINE)[1:] == list(TRACKS)
