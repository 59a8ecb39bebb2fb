"""The action for GitHub: its file is what GitHub takes, and its steps do what they say where GitHub's files are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {name: step["run"] for name, step in STEPS.items() if "run" in step}
CI = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
BRANDED = {
    "properties": {
        "icon": TEXT,
        "color": {"enum": ["white", "yellow", "blue", "green", "orange", "red", "purple", "gray-dark"]},
    }
}
SCHEMA = {
    "type": "object",
    "required": ["name", "description", "runs"],
    "additionalProperties": False,
    "properties": {
        "name": TEXT,
        "author": TEXT,
        "description": {"type": "string", "maxLength": 124},
        "branding": {"type": "object", "additionalProperties": False, **BRANDED},
        "inputs": {
            "type": "object",
            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_-]*$"},
            "additionalProperties": {
                "type": "object",
                "required": ["description"],
                "additionalProperties": False,
                "properties": {"description": TEXT, "required": {"type": "boolean"}, "default": TEXT},
            },
        },
        "outputs": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["description", "value"],
                "additionalProperties": TEXT,
            },
        },
        "runs": {
            "type": "object",
            "required": ["using", "steps"],
            "additionalProperties": False,
            "properties": {
                "using": {"const": "composite"},
                "steps": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            **dict.fromkeys(("name", "id", "if", "run", "shell", "uses", "working-directory"), TEXT),
                            **dict.fromkeys(("env", "with"), TEXTS),
                        },
                        "oneOf": [{"required": ["run", "shell"]}, {"required": ["uses"]}],
                    },
                },
            },
        },
    },
}
"""The part of GitHub's metadata syntax for actions that a composite one needs."""

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def test_the_file_is_what_github_takes() -> None:
    jsonschema.validate(ACTION, SCHEMA)


def test_what_a_user_writes_never_stands_in_a_script() -> None:
    """GitHub puts an expression into the script as text, so that it could be a command."""
    assert [name for name, script in SCRIPTS.items() if "${{" in script] == []


def test_every_expression_names_what_there_is() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    inputs = set(re.findall(r"inputs\.([\w-]+)", text))
    assert inputs == set(ACTION["inputs"])
    written = set(re.findall(r'echo "([\w-]+)=[^"]*" >> "\$GITHUB_OUTPUT"', SCRIPTS["Check"]))
    assert set(re.findall(r"steps\.check\.outputs\.([\w-]+)", text)) == written == set(ACTION["outputs"])


@needs_bash
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_valid(name: str) -> None:
    subprocess.run(["bash", "-n"], input=SCRIPTS[name], text=True, check=True)


@dataclass
class Runner:
    """What GitHub's runner gives a step, in a folder."""

    here: Path

    def step(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a step's script as the runner does: stopped by the first command that fails."""
        given = {"RUNNER_TEMP": str(self.here / "temp dir"), "GITHUB_OUTPUT": str(self.here / "output")}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", SCRIPTS[name]],
            env={**os.environ, **given, **env},
            cwd=self.here / "work",
            capture_output=True,
            text=True,
            check=False,
        )

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in (self.here / "output").read_text().splitlines())


BAD = "import torch\n\nx = torch.zeros(3)\nx.half()\nprint(x)\n"


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    for folder in ("temp dir", "work/src dir"):
        (tmp_path / folder).mkdir(parents=True)
    command = tmp_path / "dtlint"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dtlint "$@"\n')
    command.chmod(0o755)
    return Runner(tmp_path)


@needs_bash
def test_findings_become_annotations_and_sarif_and_the_result(runner: Runner) -> None:
    (runner.here / "work" / "src dir" / "bad.py").write_text(BAD)
    dtlint = str(runner.here / "dtlint")
    done = runner.step("Check", DTLINT=dtlint, ARGS="'src dir' --no-cache")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^::warning .*file=.*src dir/bad\.py,line=4,", done.stdout, re.MULTILINE)
    outputs = runner.outputs()
    assert outputs["exit-code"] == "1"
    (result,) = json.loads(Path(outputs["sarif-file"]).read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src%20dir/bad.py"
    assert runner.step("Result", CODE=outputs["exit-code"]).returncode == 1


@needs_bash
def test_clean_code_passes_and_wrong_arguments_fail_at_once(runner: Runner) -> None:
    (runner.here / "work" / "clean.py").write_text("import torch\n")
    dtlint = str(runner.here / "dtlint")
    assert runner.step("Check", DTLINT=dtlint, ARGS=".").returncode == 0
    assert runner.outputs()["exit-code"] == "0"
    (runner.here / "output").unlink()
    assert runner.step("Check", DTLINT=dtlint, ARGS="--foo").returncode == 2
    assert not (runner.here / "output").exists()


@needs_bash
def test_nothing_in_the_arguments_is_run(runner: Runner) -> None:
    runner.step("Check", DTLINT=str(runner.here / "dtlint"), ARGS="'$(touch ran)' `touch ran` ; touch ran")
    assert not (runner.here / "work" / "ran").exists()


@needs_bash
def test_it_is_installed_in_an_environment_of_its_own(runner: Runner) -> None:
    """pip is replaced here: that the repository installs is shown by the tests of packaging and of pre-commit."""
    fake = runner.here / "python"
    fake.write_text(
        '#!/bin/bash\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; else echo "$@"; fi\n'
    )
    fake.chmod(0o755)
    env = {"PYTHON": str(fake), "GITHUB_ACTION_PATH": "/the action", "GITHUB_ENV": str(runner.here / "env")}
    done = runner.step("Install dtlint", **env)
    assert done.stdout == "-m pip install --quiet --disable-pip-version-check /the action\n"
    assert (runner.here / "env").read_text() == f"DTLINT={runner.here}/temp dir/dtlint/bin/dtlint\n"


def test_the_page_gives_it_what_it_takes() -> None:
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", CI, re.DOTALL)]
    steps = [step for block in blocks for job in block.get("jobs", {}).values() for step in job["steps"]]
    (used,) = [step for step in steps if step.get("uses", "").startswith("your/dtlint@")]
    assert set(used["with"]) <= set(ACTION["inputs"])
    (job,) = [job for block in blocks for job in block.get("jobs", {}).values() if used in job["steps"]]
    assert job["permissions"] == {"contents": "read", "security-events": "write"}
