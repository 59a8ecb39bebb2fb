"""`dtlint infer --stubs`: contracts, written above functions as comments, believed and checked by `dtlint check`."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from dtlint.cli.check import command as check
from dtlint.cli.infer import command

if TYPE_CHECKING:
    from pathlib import Path

LIBRARY = """\
import torch
from torch import nn

# kept
def scale(x, weight):  # kept, too
    return x * weight


@torch.no_grad()
# between
def probabilities(x: torch.Tensor, mask=None):
    return x.softmax(-1), x.argmax(-1), {"mask": mask}


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x).float()


def unknown(model, x):
    return model(x)
"""
CONTRACTS = [
    "# dtypes: (x: T, weight: U) -> promote(T, U)",
    "# dtypes: (x: T) -> (T, int64, ...)",
    "    # dtypes: () -> float32",
]


def stubs(path: Path) -> Result:
    return CliRunner().invoke(command, ["--stubs", str(path)])


def broken(path: Path) -> list[str]:
    options = ["--isolated", "--no-cache", "--select", "DT318", "--output-format", "json", str(path)]
    return [one["message"] for one in json.loads(CliRunner().invoke(check, options).stdout)]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_contracts_are_comments_above_functions_and_nothing_else_changes(tmp_path: Path, newline: str) -> None:
    path = tmp_path / "library.py"
    before = LIBRARY.replace("\n", newline).encode()
    path.write_bytes(before)
    said = stubs(path).output
    after = path.read_bytes()
    lines = after.decode().split(newline)
    assert [line for line in lines if "# dtypes:" in line] == CONTRACTS
    assert lines[lines.index(CONTRACTS[1]) + 1] == "@torch.no_grad()"
    assert newline.join(line for line in lines if "# dtypes:" not in line).encode() == before
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(before))
    assert "3 new contracts, 0 were there; of 1 functions too little is known" in said


def test_what_is_written_is_read_back_and_holds(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text(LIBRARY, encoding="utf-8")
    stubs(path)
    assert broken(path) == []
    path.write_text(path.read_text(encoding="utf-8").replace("x.softmax(-1)", "x.float()"), encoding="utf-8")
    assert broken(path) == ["The result is float32, but the contract says T, the dtype of `x`"]


def test_a_contract_that_stands_there_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    text = "import torch\n# dtypes: (x: T, y: T) -> T\ndef f(x, y):\n    return x * y\n"
    path.write_text(text, encoding="utf-8")
    assert "0 new contracts, 1 were there" in stubs(path).output
    assert path.read_text(encoding="utf-8") == text
    assert broken(path) == []


def test_what_a_contract_says_of_parameters_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text(
        "import torch\n# dtypes: (x: float16, y: float32) -> float16\ndef f(x, y):\n    return torch.exp(x) + torch.exp(y)\n"
        "# dtypes: (x: T, y: T) -> T\ndef g(x, y):\n    return x.exp() + y.exp()\n",
        encoding="utf-8",
    )
    signatures = CliRunner().invoke(command, ["--signatures", str(path)]).output
    assert "f(x: float16, y: float32) -> " in signatures
    assert "g(x: T, y: T) -> T" in signatures


def test_a_contract_of_dtypes_that_do_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text("import torch\n# dtypes: (x: half16) -> T\ndef f(x):\n    return x\n", encoding="utf-8")
    assert broken(path) == ["The contract cannot be read: `half16` is no dtype of torch, and no variable like T"]


def test_bad_input(tmp_path: Path) -> None:
    notebook = tmp_path / "book.ipynb"
    notebook.write_text("{}", encoding="utf-8")
    result = stubs(notebook)
    assert (result.exit_code, "is a notebook; contracts are written into modules" in result.output) == (2, True)
    late = tmp_path / "late.py"
    late.write_bytes(b"def f(x): return x / 2\n# coding: latin-1\n")
    before = late.read_bytes()
    stubs(late)
    assert late.read_bytes() == before or ast.parse(late.read_bytes())
