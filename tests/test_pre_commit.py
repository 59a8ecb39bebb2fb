"""The hooks, installed and run by the real pre-commit from a local clone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    find_spec("pre_commit") is None or shutil.which("git") is None, reason="needs pre-commit and git"
)

SHIPPED = ("dtlint", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")

BAD = "import torch\n\nx = torch.zeros(3)\nx.half()\nprint(x)\n"
CLEAN = "import torch\n\nx = torch.zeros(3)\nx = x.half()\nprint(x)\n"
FIXABLE = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"
FIXED = 'import torch\n\nwith torch.amp.autocast("cuda"):\n    pass\n'


def notebook(source: str) -> str:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {
            "cell_type": "code",
            "metadata": {},
            "source": source.splitlines(keepends=True),
            "outputs": [],
            "execution_count": None,
        },
    ]
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def commit(folder: Path) -> str:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", "--all", "--force")
    git("commit", "--quiet", "--message", "content")
    return git("rev-parse", "HEAD")


@dataclass
class Hooks:
    """A project whose .pre-commit-config.yaml names this repository."""

    project: Path
    environment: dict[str, str]

    def run(self, name: str, *files: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", name, "--color=never", "--verbose", "--files", *files],
            cwd=self.project, env=self.environment, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    source = tmp_path_factory.mktemp("source")
    for name in SHIPPED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    revision = commit(source)

    project = tmp_path_factory.mktemp("project")
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {source}\n  rev: {revision}\n  hooks:\n  - id: dtlint-check\n  - id: dtlint-fix\n"
    )
    (project / "bad.py").write_text(BAD)
    (project / "clean.py").write_text(CLEAN)
    (project / "fixable.py").write_text(FIXABLE)
    (project / "bad.ipynb").write_text(notebook(BAD))
    (project / "excluded.py").write_text(BAD)
    (project / "pyproject.toml").write_text('[tool.dtlint]\nextend-exclude = ["excluded.py"]\n')
    (project / "notes.txt").write_text("x.half()\n")
    commit(project)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "VIRTUAL_ENV"))}
    return Hooks(project, {**environment, "PRE_COMMIT_HOME": str(tmp_path_factory.mktemp("cache"))})


def test_a_finding_fails_the_commit_and_shows_its_code(hooks: Hooks) -> None:
    done = hooks.run("dtlint-check", "bad.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bad.py:4:1" in done.stdout
    assert "DT104" in done.stdout


def test_clean_code_passes(hooks: Hooks) -> None:
    done = hooks.run("dtlint-check", "clean.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stdout


def test_a_notebook_is_checked_by_cell(hooks: Hooks) -> None:
    done = hooks.run("dtlint-check", "bad.ipynb")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "bad.ipynb:cell 2:4:1" in done.stdout


def test_what_the_project_excludes_is_not_checked_though_it_is_named(hooks: Hooks) -> None:
    assert hooks.run("dtlint-check", "excluded.py").returncode == 0


def test_other_files_are_not_passed_on(hooks: Hooks) -> None:
    assert "no files to check" in hooks.run("dtlint-check", "notes.txt").stdout


def test_the_fixing_hook_fixes(hooks: Hooks) -> None:
    done = hooks.run("dtlint-fix", "fixable.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "files were modified by this hook" in done.stdout
    assert (hooks.project / "fixable.py").read_text() == FIXED
