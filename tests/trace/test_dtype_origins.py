"""Where the wider operand of a promotion is said to have got its dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from dtlint.trace.judge import judge
from dtlint.trace.record import TraceRecord
from dtlint.trace.simulate import simulate

Trace = Callable[[Callable[[], Any]], TraceRecord]


def origins(record: TraceRecord) -> list[str]:
    """The expressions that promotions are put down to."""
    return [d.message.split("operand, `")[1].split("`")[0] for d in judge(record) if d.code == "DT905"]


def test_a_write_in_place_chooses_no_dtype(trace: Trace) -> None:
    def program() -> None:
        table = torch.zeros(8, 4)
        table[:, 0::2] = torch.sin(torch.arange(8.0))[:, None]
        table[:, 1::2] = torch.cos(torch.arange(8.0))[:, None]
        table.mul_(2)
        torch.ones(8, 4).bfloat16() + table

    assert origins(trace(program)) == ["torch.zeros(8, 4)"]


def test_one_line_that_writes_into_many_tensors_is_the_origin_of_none(trace: Trace) -> None:
    def program() -> None:
        first, second = torch.zeros(8), torch.ones(8)
        for x in (first, second):
            x.add_(1)
        half = torch.ones(8).half()
        half * first
        half + second

    assert origins(trace(program)) == ["torch.zeros(8)", "torch.ones(8)"]


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.gamma = nn.Parameter(torch.full((8,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.gamma * self.fc(x)
        return y


def test_a_move_of_all_parameters_keeps_the_origin_of_each(trace: Trace) -> None:
    def program() -> None:
        model = Scaled().to("cuda")
        with torch.autocast("cuda", torch.float16):
            model(torch.ones(4, 8, device="cuda"))

    with simulate("cuda"):
        record = trace(program)
    assert origins(record) == ["torch.full((8,), 0.1)"]


def test_copies_at_one_line_keep_the_origin_of_each(trace: Trace) -> None:
    def program() -> None:
        zeros, ones = (x.clone() for x in (torch.zeros(8), torch.ones(8)))
        half = torch.ones(8).half()
        half * zeros
        half + ones

    assert origins(trace(program)) == ["torch.zeros(8)", "torch.ones(8)"]
