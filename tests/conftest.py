"""What all tests share: the same examples in every run, no user's settings, and a word on what cannot run here."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

settings.register_profile("dtlint", derandomize=True, deadline=None)
settings.load_profile("dtlint")

pytest_plugins = ["pytester"]
"""For the tests of dtlint's own plugin."""

collect_ignore = [] if find_spec("torch") else ["trace"]


@pytest.fixture(autouse=True)
def _no_colour_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "DTLINT_DEBUG"):
        monkeypatch.delenv(name, raising=False)


def pytest_report_header() -> str:
    torch = "with torch" if find_spec("torch") else "without torch: the dynamic half's tests are skipped"
    return f"dtlint: {torch}; {os.cpu_count()} processors"
