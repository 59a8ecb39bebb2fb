"""The commands that the pages on check, infer and trace list run one after the other, on a program of those names."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from readme import PART

DOCS = Path(__file__).resolve().parent.parent / "docs"

MODEL = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        y = self.fc(x)
        return y
"""

TRAIN = """\
import argparse

import torch

from model import Net

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.1)
options = parser.parse_args()

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=options.lr)
for epoch in range(options.epochs):
    loss = net(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

LAYERS = """\
import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
"""


def listed(page: str) -> list[str]:
    """The commands of a page that stand without their output."""
    text = PART.sub("", (DOCS / page).read_text(encoding="utf-8"))
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("dtlint ")]


def with_line_at(text: str, line: str, number: int) -> str:
    """A program with empty lines before it, so that a line of it has the number that a page names."""
    return "\n" * (number - 1 - text[: text.index(line)].count("\n")) + text


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "mypackage").mkdir()
    (tmp_path / "model.py").write_text(with_line_at(MODEL, "y = ", 80))
    (tmp_path / "train.py").write_text(with_line_at(TRAIN, "loss = ", 31))
    (tmp_path / "layers.py").write_text(LAYERS)
    (tmp_path / "mypackage" / "train.py").write_text(TRAIN)
    return tmp_path


def run(command: str, folder: Path) -> str:
    """What a command prints. It ends well, or has found something."""
    arguments = [sys.executable, "-m", *shlex.split(command, comments=True)]
    given = LAYERS if " - " in f"{command} " else ""
    done = subprocess.run(arguments, cwd=folder, input=given, capture_output=True, text=True)
    printed = done.stdout + done.stderr
    assert done.returncode in (0, 1), f"{command}: {printed}"
    return printed


def test_those_of_check_and_infer(program: Path) -> None:
    commands = [*listed("check.md"), *listed("infer.md")]
    assert len(commands) >= 10
    printed = {
        command.partition("#")[0].strip(): run(command, program) for command in commands if "--trace" not in command
    }
    assert "net(torch.ones(2, 4)): float32" in printed["dtlint infer --at train.py:31:12"].replace("`", "")
    assert "rms_norm(x: T, weight: U" in printed["dtlint infer --signatures layers.py"]
    assert (program / "layers.py").read_text().startswith("import torch\n\n\n# dtypes: (x: T, weight: U")


@pytest.mark.skipif(not find_spec("torch"), reason="needs torch")
def test_those_of_trace(program: Path) -> None:
    commands = [one for one in listed("trace.md") if "plan" not in one]  # the page on plans runs those
    assert len(commands) == 5
    for command in commands:
        run(command, program)
    (program / "trace.json").rename(program / "run.json")
    (with_a_run,) = (one for one in listed("infer.md") if "--trace" in one)
    assert "float32" in run(with_a_run, program)
