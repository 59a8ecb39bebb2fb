"""The modules of a project see one another: fixtures/projects, whose bugs no single file shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from dtlint import discover
from dtlint.check.judge import DEEPER_THAN_FOLLOWED
from dtlint.check.run import run
from dtlint.config import Configuration
from dtlint.infer.interproc.whole_project import WholeProject

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


def test_the_example_of_the_architecture_is_found_at_the_call(tmp_path: Path) -> None:
    page = (PROJECTS.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("```python\n# ")[2].partition("```")[0]
    for part in block.split("\n# "):
        name, _, text = part.partition("\n")
        (tmp_path / name).write_text(text, encoding="utf-8")
    line = (
        (tmp_path / "train.py")
        .read_text(encoding="utf-8")
        .splitlines()
        .index("scores = model(normalise(np.ones((4, 8))))")
    )
    assert f"train.py:{line + 1} DT302" in found(tmp_path.resolve())


MODEL = "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.table = torch.nn.Embedding(9, 4)\n\n    def forward(self, x):\n        return self.table(x)\n"
RUN = "import torch\nfrom net.model import Net\n\n\ndef main():\n    Net()(torch.zeros(3, dtype=torch.float64))\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    """A project of these files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "files",
    [
        {"net/__init__.py": "", "net/model.py": MODEL, "scripts/train.py": f"{RUN}\n\nmain()\n"},
        {"net/model.py": MODEL, "train.py": f"{RUN}\n\nmain()\n"},
        {"src/net/__init__.py": "", "src/net/model.py": MODEL, "examples/small/train.py": f"{RUN}\n\nmain()\n"},
        {
            "net/__init__.py": "",
            "net/model.py": MODEL,
            "net/run.py": RUN,
            "run.py": "from net.run import main\n\nmain()\n",
        },
    ],
    ids=["scripts beside the package", "a folder without __init__", "src", "a program that only calls what it imports"],
)
def test_a_program_leads_to_the_files_of_its_project(tmp_path: Path, files: dict[str, str]) -> None:
    folder = written(tmp_path, files)
    model = next(name for name in files if name.endswith("model.py"))
    assert f"{model}:10 DT306" in found(folder)


def test_a_module_of_the_folder_comes_before_one_further_up(tmp_path: Path) -> None:
    """Python looks into the program's own folder first."""
    files = {"net/__init__.py": "", "net/model.py": MODEL, "scripts/train.py": f"{RUN}\n\nmain()\n"}
    silent = MODEL.replace("torch.nn.Embedding(9, 4)", "torch.nn.Identity()")
    assert found(written(tmp_path, files | {"scripts/net/__init__.py": "", "scripts/net/model.py": silent})) == set()


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


def test_a_program_that_cannot_be_followed_to_its_end_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = WholeProject.run

    def run_but_one(self: WholeProject, path: Path) -> None:
        if path.name == "deep.py":
            raise RecursionError
        usual(self, path)

    monkeypatch.setattr(WholeProject, "run", run_but_one)
    program = f"{RUN}\n\nmain()\n"
    files = {"net/__init__.py": "", "net/model.py": MODEL, "deep.py": program, "train.py": program}
    folder = written(tmp_path, files)
    outcome = run(sorted(folder.rglob("*.py")), Configuration(isolated=True).settings_for, RULES)
    assert "DT306" in {one.code for one in outcome.diagnostics}
    assert [error.partition(": ") for error in outcome.errors] == [
        (str(folder / "deep.py"), ": ", DEEPER_THAN_FOLLOWED)
    ]


def test_programs_below_several_folders_share_the_calls_that_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtlint.infer.interproc.whole_project._MOST_FOLLOWED", 1)
    monkeypatch.setattr("dtlint.infer.interproc.whole_project._LEAST", 0)
    files = {
        f"{folder}/{name}": text
        for folder in ("one", "two")
        for name, text in {"net/__init__.py": "", "net/model.py": MODEL, "train.py": f"{RUN}\n\nmain()\n"}.items()
    }
    folder = written(tmp_path, files)
    outcome = run(sorted(folder.rglob("*.py")), Configuration(isolated=True).settings_for, RULES)
    at_the_layer = [one.location.path for one in outcome.diagnostics if one.location.path.endswith("model.py")]
    assert [Path(path).relative_to(folder).parts[0] for path in at_the_layer] == ["one"]


ATTENTION = """\
import torch


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q = torch.nn.Linear(8, 8)

    def forward(self, x):
        return (self.q(x) @ x.transpose(-1, -2) - 1e9).softmax(-1)
"""
IN_REGION = """\
import torch
from attention import Attention

model = Attention().cuda()
with torch.autocast("cuda", dtype=torch.float16):
    print(model(torch.randn(4, 8, 8, device="cuda")))
with torch.autocast("cuda", dtype=torch.bfloat16):
    print(model(torch.randn(4, 8, 8, device="cuda")))
"""


def test_a_call_that_leads_to_an_overflow_names_the_region_that_casts_there(tmp_path: Path) -> None:
    (tmp_path / "attention.py").write_text(ATTENTION)
    (tmp_path / "train.py").write_text(IN_REGION)
    outcome = run(sorted(tmp_path.glob("*.py")), Configuration(isolated=True).settings_for, RULES)
    [one] = outcome.diagnostics
    told = [(Path(note.location.path).name, note.location.span.line, note.message) for note in one.notes]
    assert (one.code, one.location.span.line) == ("DT402", 6)
    assert told == [
        ("train.py", 5, "autocast computes in float16 from here on"),
        ("attention.py", 10, "1e+09 is beyond float16, which ends at 65504: it becomes inf"),
    ]


def test_a_reading_that_begins_anew_for_each_file_finds_what_one_reading_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = {  # each imports the next, so that a file was read for another before it is judged
        "a_used": "import torch\n\nfrom b_made import weight\n\n\ndef f(x: torch.Tensor):\n"
        "    return torch.zeros(3, dtype=torch.float32) @ weight()\n",
        "b_made": "import torch\n\nfrom c_base import low\n\n\ndef weight():\n    return torch.zeros(3, dtype=torch.float64)\n\n\n"
        "def g():\n    return torch.ones(3, dtype=torch.float32) @ weight() + low()\n",
        "c_base": "import torch\n\n\ndef low():\n    return torch.arange(3).mean()\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    files = [tmp_path / f"{name}.py" for name in texts]

    def found() -> list[tuple[str, int]]:
        outcome = run(files, Configuration(isolated=True).settings_for, RULES)
        assert not outcome.errors
        return [(one.code, one.location.span.line) for one in outcome.diagnostics]

    at_once = found()
    monkeypatch.setattr("dtlint.check.reader._MOST_BYTES", 0)
    monkeypatch.setattr("dtlint.check.reader._LEAST_JUDGED", 0)
    assert found() == at_once
    assert at_once == [("DT301", 7), ("DT301", 11), ("DT309", 5)]
