"""The modules of a project see one another: fixtures/projects, whose bugs no single file shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dtlint import discover
from dtlint.check.run import run
from dtlint.config import Configuration

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures" / "projects"
KNOWN: list[dict[str, Any]] = json.loads((PROJECTS / "projects.json").read_text(encoding="utf-8"))
RULES = {code: rule for code, rule in discover().items() if rule.asks()}
VERSIONS = [
    (project, version)
    for project in KNOWN
    for version in (("clean",) if project["kind"] == "clean" else ("bug", "fixed"))
]


def found(folder: Path) -> set[str]:
    """What rules that ask for facts find in a folder."""
    outcome = run(sorted(folder.rglob("*.py")), Configuration(isolated=True).settings_for, RULES)
    assert outcome.errors == []
    return {
        f"{Path(one.location.path).resolve().relative_to(folder).as_posix()}:{one.location.span.line} {one.code}"
        for one in outcome.diagnostics
        if not one.conditional
    }


@pytest.mark.parametrize(
    ("project", "version"), VERSIONS, ids=lambda value: value["name"] if isinstance(value, dict) else value
)
def test_what_stands_between_files_is_found(project: dict[str, Any], version: str) -> None:
    """`found` of a project lists what is reported of it today; its twin, and what only looks dangerous, are silent."""
    expected = project.get("found", []) if version == "bug" else []
    assert found(PROJECTS / project["name"] / version) == set(expected)


def test_a_file_is_judged_by_what_it_imports(tmp_path: Path) -> None:
    folder = PROJECTS / "tabular_stats" / "bug"
    outcome = run([folder / "train.py"], Configuration(isolated=True).settings_for, RULES)
    assert [(one.code, Path(one.location.path).name) for one in outcome.diagnostics] == [("DT302", "train.py")]


def test_a_rule_that_crashes_is_named_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    shutil.copytree(PROJECTS / "tabular_stats" / "bug", folder)

    def crash(self: Any, facts: Any) -> Any:
        raise TypeError("mistake")

    monkeypatch.setattr(RULES["DT203"], "on_facts", crash)
    outcome = run(sorted(folder.rglob("*.py")), Configuration(isolated=True).settings_for, RULES)
    assert "DT302" in {one.code for one in outcome.diagnostics}
    assert outcome.errors
    assert all("DT203" in error and "mistake" in error for error in outcome.errors)
