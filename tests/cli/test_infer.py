"""`dtlint infer`: the annotated source, the list of claims, and what it says of files it cannot read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dtlint.cli.infer import command

PROGRAM = """\
import torch

x = torch.ones(2).half()
y = x * 2
é = y.float() + 1
print(unknown(x))
"""


def infer(*args: str | Path) -> Result:
    return CliRunner().invoke(command, [str(arg) for arg in args])


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def test_the_source_is_shown_with_a_dtype_behind_each_line(program: Path) -> None:
    lines = infer(program).output.splitlines()
    assert lines[2:5] == ["x = torch.ones(2).half()  # float16", "y = x * 2  # float16", "é = y.float() + 1  # float32"]
    assert lines[0] == "import torch"


def test_json_lists_every_claim_with_its_place(program: Path) -> None:
    found = json.loads(infer(program, "--output-format", "json").output)
    assert {
        "path": str(program),
        "line": 5,
        "column": 4,
        "end_line": 5,
        "end_column": 17,
        "dtypes": ["float32"],
        "symbolic": None,
    } in found
    assert all(claim["path"] == str(program) for claim in found)


def test_what_is_unknown_is_not_claimed(program: Path) -> None:
    found = json.loads(infer(program, "--output-format", "json").output)
    assert not [claim for claim in found if claim["line"] == 6 and claim["column"] < 14]


def test_a_file_that_does_not_parse_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n")
    result = infer(path)
    assert result.exit_code == 2
    assert "cannot be read" in result.output


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    result = infer(tmp_path / "missing.py")
    assert result.exit_code == 2
    assert "does not exist" in result.output
