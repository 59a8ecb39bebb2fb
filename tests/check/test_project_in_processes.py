"""Where there are many files, the programs of a project are read in one process while the files are checked in others."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dtlint import discover
from dtlint.check import workers
from dtlint.check.cache import Cache
from dtlint.check.run import FEW, Outcome, run
from dtlint.config import Configuration

RULES = {code: rule for code, rule in discover().items() if rule.asks()}

MAIN = "import torch\nfrom helper import work\n\nif __name__ == '__main__':\n    work(torch.zeros(4, dtype=torch.float16))\n"
HELPER = "def work(x):\n    return x.masked_fill(x > 0, -1e5)\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    written = {"main.py": MAIN, "helper.py": HELPER}
    written |= {f"m{number:03}.py": f"import torch\n\nx = torch.zeros({number})\n" for number in range(2 * FEW)}
    for name, text in written.items():
        Path(name).write_text(text)
    return [Path(name) for name in written]


def check(files: list[Path], **options: Any) -> Outcome:
    return run(files, Configuration(isolated=True).settings_for, RULES, **options)


def found(outcome: Outcome) -> list[tuple[str, str]]:
    return [(one.location.path, one.code) for one in outcome.diagnostics]


def test_what_stands_between_files_is_found_whoever_reads_the_project(files: list[Path]) -> None:
    alone, together = check(files, workers=1), check(files, workers=2)
    assert found(together) == [("helper.py", "DT401")]
    assert together.diagnostics == alone.diagnostics
    assert together.checked == len(files)


def test_it_is_remembered_until_a_file_changes(files: list[Path], tmp_path: Path) -> None:
    cache = Cache(tmp_path, RULES)
    for _ in range(2):
        assert found(check(files, cache=cache, workers=2)) == [("helper.py", "DT401")]
    Path("helper.py").write_text(HELPER.replace("-1e5", "-1e4"))
    assert found(check(files, cache=cache, workers=2)) == []
    Path("helper.py").write_text(HELPER)
    assert found(check(files, cache=cache, workers=2)) == [("helper.py", "DT401")]


@pytest.mark.skipif(sys.platform != "linux", reason="a patched function reaches a worker only by fork")
def test_a_project_whose_reading_kills_its_process_is_named_and_the_files_are_checked(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    import multiprocessing

    monkeypatch.setattr(workers, "_context", lambda rules: multiprocessing.get_context("fork"))
    monkeypatch.setattr(workers, "project_findings", lambda *given: os._exit(3))
    Path("m000.py").write_text("import torch\n\nx = torch.zeros(3)\nx.type(torch.half, inplace=True)\n")
    outcome = check(files, workers=2)
    assert found(outcome) == [("m000.py", "DT102")]
    assert outcome.errors == ["internal error: the process that read the project died; please report it"]
