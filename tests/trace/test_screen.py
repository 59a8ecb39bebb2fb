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
    assert "; operators that --module b --module c left out (" in said
    assert "left out" not in dtlint("trace", "script.py").err


def test_a_program_that_ends_before_any_operator_is_not_told_of_options_it_did_not_have(
    tmp_path: Path, dtlint: Callable[..., Any]
) -> None:
    (tmp_path / "script.py").write_text("import torch\nraise SystemExit(1)\n")
    said = dtlint("trace", "script.py").err
    assert "Non-finite values: not looked for, as no operator was traced\n" in said
