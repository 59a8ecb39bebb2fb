"""`dtlint infer`: the annotated source, the list of claims, and what it says of files it cannot read."""

from __future__ import annotations

import json
import os
import sys
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
    return CliRunner().invoke(command, [*(str(arg) for arg in args), "--no-cache"])


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


def test_the_depth_that_python_lets_code_go_is_given_back(program: Path) -> None:
    before = sys.getrecursionlimit()
    infer(program)
    assert sys.getrecursionlimit() == before


def test_what_is_unknown_is_not_claimed(program: Path) -> None:
    found = json.loads(infer(program, "--output-format", "json").output)
    assert not [claim for claim in found if claim["line"] == 6 and claim["column"] < 14]


def test_a_file_that_does_not_parse_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("def f(:\n")
    result = infer(path)
    assert result.exit_code == 2
    assert "broken.py:1:7: The file does not parse: invalid syntax" in result.output
    path.write_bytes(b"x = '\xff'\n")
    assert "broken.py:1:6: The file cannot be read: the byte 0xff is not valid utf-8" in infer(path).output


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    assert "is no regular file" in infer(tmp_path / "fifo.py").output


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    result = infer(tmp_path / "missing.py")
    assert result.exit_code == 2
    assert "there is no file" in result.output


def test_what_is_not_bound_goes_by_its_text(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import torch\nx = torch.ones(2).half()\nprint(x.sum())\na, b = x.shape\n")
    assert infer(path).output.splitlines()[2:] == ["print(x.sum())  # x.sum(): float16", "a, b = x.shape"]


def test_one_place_is_told_with_the_steps_from_its_origin(program: Path) -> None:
    lines = infer("--at", f"{program}:4:7").output.splitlines()
    assert lines[0] == "x * 2: float16"
    assert [line.split(": ", 1)[1] for line in lines[1:]] == [
        "`x * 2` is float16: keeps the dtype of its operand",
        "`torch.ones(2).half()` is float16: cast here",
    ]


def test_the_steps_lead_through_the_operand_that_promoted(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\ntable = torch.ones(2, dtype=torch.float64)\nh = torch.ones(2).half()\ny = h + table\n"
    )
    steps = json.loads(infer("--at", f"{path}:4:7", "--output-format", "json").output)
    assert [(step["line"], step["dtypes"], step["reason"]) for step in steps] == [
        (4, ["float64"], "promoted from float16 and float64"),
        (2, ["float64"], "the argument `dtype` decides"),
    ]


def test_a_module_is_told_as_its_program_calls_it(tmp_path: Path) -> None:
    module, program = tmp_path / "model.py", tmp_path / "program.py"
    module.write_text("def double(x):\n    return x * 2\n")
    program.write_text("import torch\nfrom model import double\ny = double(torch.ones(2).half())\n")
    assert infer(program, "--at", f"{module}:2:14").output.startswith("x * 2: float16\n")


def test_a_name_that_is_assigned_is_told_by_what_it_gets(program: Path) -> None:
    assert infer("--at", f"{program}:4:1").output.splitlines()[:2] == [
        "y: float16",
        f"  {program}:4:5: `x * 2` is float16: keeps the dtype of its operand",
    ]
    program.write_text("import torch\nx = torch.ones(2)\na, [b, c] = x, [(x + 1).half(), 1]\n(d := x * 2)\n")
    assert infer("--at", f"{program}:3:5").output.startswith("b: float16\n")
    assert infer("--at", f"{program}:3:1").output.startswith("a: float32\n")
    assert infer("--at", f"{program}:4:2").output.startswith("d: float32\n")
    assert "is known to be a tensor" in infer("--at", f"{program}:3:8").output


def test_a_file_is_the_same_however_it_is_written(program: Path) -> None:
    around = program.parent / ".." / program.parent.name / program.name
    told = infer("--at", f"{program}:4:1").output
    assert infer(around, "--at", f"{program}:4:1").output == infer(program, "--at", f"{around}:4:1").output == told


def test_several_expressions_of_a_line_are_told(program: Path) -> None:
    program.write_text("import torch\nx, y = torch.ones(2), torch.ones(2).half()\nprint(x, y + y, y)\n")
    assert infer(program).output.splitlines()[2] == "print(x, y + y, y)  # x: float32; y + y: float16; y: float16"


def test_json_has_one_claim_a_line(program: Path) -> None:
    lines = infer(program, "--output-format", "json").output.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert [json.loads(line.rstrip(","))["line"] for line in lines[1:-1]] == [3, 3, 4, 4, 5, 5, 5, 6]


def test_a_notebook_is_shown_by_cell(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    cells = ["%%time\nimport torch\n%cd x\nx = torch.ones(2)\n", "!ls\ny = x.half()"]
    document = {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    path.write_text(json.dumps(document))
    assert infer(path).output.splitlines() == [
        *("# %% cell 1", "%%time", "import torch", "%cd x", "x = torch.ones(2)  # float32"),
        *("# %% cell 2", "!ls", "y = x.half()  # float16"),
    ]
    (claim,) = (
        one for one in json.loads(infer(path, "--output-format", "json").output) if one["dtypes"] == ["float16"]
    )
    assert (claim["cell"], claim["line"], claim["column"], claim["end_line"]) == (2, 2, 4, 2)
    assert infer("--at", f"{path}:cell 2:2:1").output.splitlines() == [
        "y: float16",
        f"  {path}:cell 2:2:5: `x.half()` is float16: cast here",
    ]
    assert "is in no cell that holds Python; write the place like" in infer("--at", f"{path}:2:1").output


def test_a_cell_that_does_not_parse_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    cells = ["import torch\nx = torch.ones(2)", "x = = x.half()", "y = x * 2"]
    document = {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    path.write_text(json.dumps(document))
    for _ in "read", "kept":
        result = infer(path)
        assert result.exit_code == 0
        assert f"{path}:cell 2:1:5: The cell does not parse: invalid syntax" in result.stderr
        assert result.stdout.splitlines()[2:] == [
            "x = torch.ones(2)  # float32",
            *("# %% cell 2", "x = = x.half()", "# %% cell 3", "y = x * 2  # float32"),
        ]
    document["cells"][1]["source"] = "  x = x.half()\nprint()"  # which IPython runs
    path.write_text(json.dumps(document))
    result = infer(path)
    assert result.exit_code == 2
    assert "n.ipynb:cell 2" in result.stderr


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{}", "is no place: write file, line and column, like model.py:31:12"),
        ("{}:4", "is no place: write file, line and column, like {}:4:12"),
        ("{}:0:1", "is no place"),
        ("{}x:1:1", "there is no file"),
        ("{}:cell 2:1:1", "only notebooks have cells"),
        ("{}:1:1", "is known to be a tensor; `dtlint infer {}` shows what is"),
        ("{}:4:4", "on this line dtypes are known of `x` at column 5, `x * 2` at column 5"),
        ("{}:99:1", "ends at line"),
    ],
)
def test_a_place_that_is_none_is_refused(program: Path, place: str, said: str) -> None:
    result = infer("--at", place.format(program))
    assert result.exit_code == 2
    assert said.format(program) in result.output


def test_a_directory_is_refused_with_a_file_to_name(program: Path) -> None:
    result = infer(program.parent)
    assert result.exit_code == 2
    assert f"{program.parent} is a directory; name one file, such as {program}." in result.output
    assert "there is no file" in infer(program.parent / "nowhere.py").output


def test_without_a_file_it_says_what_to_name() -> None:
    result = infer()
    assert result.exit_code == 2
    assert "name a file" in result.output


LIBRARY = """\
import torch

def scaled(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    h = x.float() * 2
    y = h.to(x.dtype)
    return x + table
"""


def test_what_the_caller_decides_is_told_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text(LIBRARY)
    assert infer(path).output.splitlines()[3:] == [
        "    h = x.float() * 2  # float32",
        "    y = h.to(x.dtype)  # the dtype of `x`",
        "    return x + table  # the dtypes of `table` and `x` promoted",
    ]
    found = json.loads(infer(path, "--output-format", "json").output)
    told = {(claim["line"], claim["column"], claim["end_column"]): claim for claim in found}
    assert told[5, 8, 21]["dtypes"] is None
    assert told[5, 8, 21]["symbolic"] == "the dtype of `x`"


def test_one_place_of_a_library_is_told_by_what_decides_it(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text(LIBRARY)
    assert infer("--at", f"{path}:5:11").output.splitlines() == [
        "h.to(x.dtype): the dtype of `x`",
        f"  {path}:5:9: `h.to(x.dtype)` has the dtype of `x`: cast here",
    ]


def test_imports_are_looked_for_beside_the_script_that_a_link_leads_to(tmp_path: Path) -> None:
    for folder, dtype in (("bin", "float64"), ("src", "float16")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helper.py").write_text(f"import torch\n\ny = torch.zeros(2, dtype=torch.{dtype})\n")
    (tmp_path / "src" / "main.py").write_text("import torch\nfrom helper import y\n\nprint(y * 2)\n")
    (tmp_path / "bin" / "main.py").symlink_to("../src/main.py")
    assert "y * 2: float16" in infer(tmp_path / "bin" / "main.py").stdout


def test_the_dtypes_of_a_library_under_an_assumption(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text("import torch\ndef f(x: torch.Tensor):\n    return x.exp()\n", encoding="utf-8")
    assert (
        infer(path).output.splitlines()[2]
        == "    return x.exp()  # the dtype of `x`, if that is floating, outside autocast"
    )
    assert infer(path, "--assume", "bfloat16").output.splitlines()[2] == "    return x.exp()  # bfloat16"
    assert infer("--at", f"{path}:3:14", "--assume", "double").output.startswith("x.exp(): float64\n")


@pytest.mark.parametrize(
    ("assumption", "said"),
    [
        ("haf", "has 'haf', which is no assumption; did you mean 'half'?"),
        ("uint8", "has 'uint8', which `dtlint check` alone takes"),
        ("autocast=tpu", "has 'autocast=tpu': autocast is for cuda or cpu, as in autocast=cuda:float16"),
    ],
)
def test_an_assumption_that_does_not_exist(program: Path, assumption: str, said: str) -> None:
    result = infer(program, "--assume", assumption)
    assert (result.exit_code, said in result.output) == (2, True)
