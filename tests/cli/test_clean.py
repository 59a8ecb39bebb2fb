"""`dtlint clean`: the cache goes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dtlint.cli import main


def test_it_deletes_the_cache_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dtlint.toml").write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("import torch\n")
    CliRunner().invoke(main, ["check"])
    assert (tmp_path / ".dtlint_cache").is_dir()
    result = CliRunner().invoke(main, ["clean", "src"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("Deleted ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dtlint.toml", "src"]
    assert CliRunner().invoke(main, ["clean"]).stderr == "There is no cache.\n"


def test_a_folder_that_only_has_its_name_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".dtlint_cache").mkdir()
    (tmp_path / ".dtlint_cache" / "precious").write_text("")
    assert CliRunner().invoke(main, ["clean"]).exit_code == 0
    assert (tmp_path / ".dtlint_cache" / "precious").exists()
