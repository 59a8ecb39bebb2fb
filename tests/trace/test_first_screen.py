"""What the screen says of a trace that sees a part of the run only: what it found nothing in, and what was left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LOOP = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
    def forward(self, x):
        return self.b(self.a(x)).sum()

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    x = torch.ones(1, 2)
    loss = net(x if step < 2 else x / 0 - x / 0)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--steps", "1:2"], "none in the steps that were traced that the program did not mean"),
        (["--steps", "1:2", "--module", "b"], "none in what was traced that the program did not mean"),
        (
            ["--steps", "1:2", "--watch", "float32"],
            "none in float32 in the steps that were traced that the program did not",
        ),
        (["--watch", "float16"], "none in float16 that the program did not mean"),
        (["--steps", "9:"], "not looked for, as no operator was traced: see --steps"),
        (["--every", "9", "--module", "c"], "not looked for, as no operator was traced: see --every and --module"),
        (["--steps", "1:2", "--module", "c"], "not looked for, as no operator was traced: see --steps and --module"),
    ],
)
def test_the_screen_says_of_what_it_found_nothing(
    tmp_path: Path, dtlint: Callable[..., Any], options: list[str], line: str
) -> None:
    (tmp_path / "script.py").write_text(LOOP)
    assert f"Non-finite values: {line}" in dtlint("trace", *options, "script.py").err


def test_the_modules_that_are_left_out_are_told_as_not_seen(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text(LOOP)
    said = dtlint("trace", "--module", "b", "--module", "c", "script.py").err
    assert "Not seen: operators that --module b --module c left out (" in said
    assert "left out" not in dtlint("trace", "script.py").err


def test_modules_that_did_not_run_are_told(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text(LOOP)
    said = dtlint("trace", "--module", "c*", "script.py").err
    assert "\nNo module that ran is called c*; those that ran are a, b and Net\n" in said
    assert "No module" not in dtlint("trace", "--module", "b", "script.py").err


def test_what_an_optimizer_does_within_is_no_gap(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text(LOOP)
    assert "Not seen" not in dtlint("trace", "-o", "t.json", "script.py").err
    shown = dtlint("report", "--all", "t.json").out
    assert "optimizer steps within; the weights were checked after each (4)" in shown
    said = dtlint("report", "--all", "--output-format", "concise", "t.json").err
    assert said == "dtlint: --all adds to the screen; --output-format concise has all findings already\n"


def test_a_program_that_ends_before_any_operator_is_not_told_of_options_it_did_not_have(
    tmp_path: Path, dtlint: Callable[..., Any]
) -> None:
    (tmp_path / "script.py").write_text("import torch\nraise SystemExit(1)\n")
    said = dtlint("trace", "script.py").err
    assert "Non-finite values: not looked for, as no operator was traced\n" in said


ASSUMED = """\
import torch
x = torch.ones(4) * 7e4
x = x * 2
x = x * 2
x = x * 2
x = x * 2
x = x * 2
"""


def test_what_would_not_fit_is_told_from_the_largest_on(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text(ASSUMED)
    said = dtlint("trace", "--assume", "float16", "script.py").err
    told = said.split("Would not fit float16:")[1].split("more")[0]
    lines = [line.split("script.py:")[1] for line in told.splitlines() if "script.py:" in line]
    assert lines == ["7", "6", "5", "4"]
    assert "  and 2 more: `--output-format concise` lists all" in said


def test_what_was_not_seen_is_told_and_is_no_finding(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text("import torch\nx = torch.eye(4).to_sparse()\n(x * 2.0).coalesce()\n")
    said = dtlint("trace", "script.py").err
    assert "Not seen: operators with sparse tensors" in said
    assert said.rstrip().endswith("Nothing to report.")


def test_the_record_of_a_program_that_failed_says_so(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.ones(2) * 2\n{}['missing']\n")
    dtlint("trace", "--output", "run.json", "script.py")
    assert "Nothing to report. The program ended with exit code 1." in dtlint("report", "run.json").out


@pytest.mark.parametrize(
    ("steps", "size"), [(1, "moving 6 bytes per step"), (6, "moving 1 byte per step"), (20, "Casts: 0.05 a step: ")]
)
def test_bytes_are_counted_as_one_says_them(tmp_path: Path, dtlint: Callable[..., Any], steps: int, size: str) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nx = torch.ones(1).half()\n"
        "optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])\n"
        f"for _ in range({steps}):\n    optimizer.step()\n"
    )
    assert size in dtlint("trace", "script.py").err


def test_an_error_that_the_program_caught_is_shown_with_the_lesser_findings(
    tmp_path: Path, dtlint: Callable[..., Any]
) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\ntry:\n    torch.ones(2, 2).half() @ torch.ones(2, 2)\nexcept RuntimeError:\n    pass\n"
    )
    said = dtlint("trace", "script.py").err
    assert "Dtype errors that the program caught:\n  info[DT914] script.py:3\n" in said
    assert "The program ended" not in said


def test_the_line_that_called_a_library_is_told_beside_the_library_s(
    tmp_path: Path, dtlint: Callable[..., Any]
) -> None:
    library = tmp_path / "env" / "site-packages"
    library.mkdir(parents=True)
    (library / "lib.py").write_text("def root(x):\n    return x.sqrt()\n")
    (tmp_path / "script.py").write_text(
        "import sys\nsys.path.insert(0, 'env/site-packages')\nimport lib\nimport torch\n"
        "def run():\n    return lib.root(torch.tensor(-1.0))\nrun().item()\ntorch.tensor(-2.0).sqrt().item()\n"
    )
    said = dtlint("trace", "--output", "t.json", "script.py").err
    assert "error[DT902] lib.py:2, called from script.py:6\n" in said
    assert "error[DT902] script.py:8\n" in said
    shown = dtlint("report", "--output-format", "full", "t.json").out
    assert "::: script.py:6:1: called from here" in shown


def test_where_steps_are_left_out_casts_are_those_of_a_step_and_what_ran_before_it(
    tmp_path: Path, dtlint: Callable[..., Any]
) -> None:
    (tmp_path / "script.py").write_text(LOOP.replace("torch.ones(1, 2)", "torch.ones(1, 2).half().float()"))
    assert "Casts: 2 a step, moving 24 bytes per step: 2 asked for" in dtlint("trace", "script.py").err
    said = dtlint("trace", "--every", "2", "script.py").err
    assert "Casts: 2 for each step traced and what ran before it, moving 24 bytes per step: 2 asked for" in said
