"""What is looked at on a sample of the calls: integers that wrap, and totals in half precision that stand still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn as nn

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.trace.export import record_of
from dtlint.trace.judge import judge
from dtlint.trace.mode import Tracer


def found(program: Callable[[], Any]) -> list[Diagnostic]:
    tracer = Tracer()
    with tracer:
        program()
    return [d for d in judge(record_of(tracer, ["test"], 0)) if d.code in ("DT916", "DT917")]


def int32(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (
            lambda: torch.linspace(-300, 300, 7).to(torch.int8),
            "4 of 7 sampled values lie beyond int8, which holds -128 to",
        ),
        (lambda: torch.tensor([1.0, -1.0]).to(torch.uint8), "1 of 2 sampled values lie beyond uint8"),
        (
            lambda: torch.zeros(2, dtype=torch.int8).copy_(torch.tensor([1.0, 1e9])),
            "1 of 2 sampled values lie beyond int8",
        ),
        (lambda: torch.tensor([1.0, 1e19]).long(), "1 of 2 sampled values lie beyond int64"),
        (lambda: torch.tensor([1, 1 << 40]).int(), "1 of 2 sampled values lie beyond int32"),
        (lambda: torch.rand(100).mul(0.9).add(0.01).long(), "all of 100 sampled values other than 0 became 0"),
        (lambda: int32(2**31 - 1, 0) + int32(1, 1), "1 of 2 sampled values lie beyond int32, which holds -2147483648"),
        (lambda: int32(2**31 - 1, 0).add_(1), "and wrapped around in add_"),
        (lambda: int32(-(2**31), 0).sub_(int32(1, 1)), "and wrapped around in sub_"),
        (lambda: int32(1 << 20, 3) * (1 << 12), "and wrapped around in mul"),
        (lambda: torch.tensor([3, 200], dtype=torch.uint8) - torch.tensor([4, 1], dtype=torch.uint8), "around in sub"),
    ],
)
def test_integers_that_do_not_hold_their_values(program: Callable[[], Any], told: str) -> None:
    (diagnostic,) = found(program)
    assert (diagnostic.code, diagnostic.severity) == ("DT916", Severity.WARNING)
    assert told in diagnostic.message


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.linspace(-128, 127, 7).to(torch.int8),
        lambda: torch.tensor([127.9, -128.9]).to(torch.int8),
        lambda: torch.tensor([0.4, 1.6]).long(),
        lambda: torch.tensor([-(2.0**63), float("nan"), float("-inf")]).long(),
        lambda: (torch.rand(100) > 0.5).float().long(),
        lambda: torch.tensor([5, 2**31 - 1]).int(),
        lambda: int32(2**31 - 2).add_(1),
        lambda: torch.tensor([2**62]) * 31,
        lambda: int32(1, 2).add(int32(3, 4), alpha=1 << 30),
        lambda: torch.ones(3).bool() + torch.ones(3).bool(),
    ],
)
def test_integers_that_do(program: Callable[[], Any]) -> None:
    assert found(program) == []


def test_integers_that_are_cut_to_bytes_are_information() -> None:
    (told,) = found(lambda: torch.arange(1000).to(torch.uint8))
    assert told.severity is Severity.INFO


# -- totals -----------------------------------------------------------------------------------------------------------


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bfloat16)


def in_place() -> None:
    total = half()
    for _ in range(600):
        total += 1


def out_of_place() -> None:
    total = half(4)
    for _ in range(800):
        total = total + torch.ones(4, dtype=torch.bfloat16)


def over_steps() -> None:
    total, layer = half(), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    for _ in range(520):
        loss = layer(torch.ones(1, 2)).sum() * 0 + 16
        loss.backward()
        optimizer.step()
        total += loss.detach()
    assert total == 4096


def average() -> None:
    average = torch.full((100,), 100.0, dtype=torch.bfloat16)
    for _ in range(40):
        average.lerp_(torch.full((100,), 110.0, dtype=torch.bfloat16), 0.001)


def average_of_many() -> None:
    averages = [torch.full((100,), 100.0, dtype=torch.bfloat16) for _ in range(3)]
    for _ in range(40):
        torch._foreach_lerp_(averages, [a + 10 for a in averages], 0.001)


@pytest.mark.parametrize("program", [in_place, out_of_place, over_steps, average, average_of_many])
def test_a_total_in_half_that_stands_still(program: Callable[[], Any]) -> None:
    (told,) = found(program)
    assert (told.code, told.severity) == ("DT917", Severity.WARNING)
    assert "sampled additions left the bfloat16 values as they were: what " in told.message


def test_a_decay_that_rounds_to_one() -> None:
    def program() -> None:
        average = torch.ones(4, dtype=torch.bfloat16)
        for _ in range(10):
            average.mul_(0.999)
            torch.ones(4).mul_(0.999)
            average.mul_(0.99)

    (told,) = found(program)
    assert told.message == (
        "multiplying by 0.999 changes nothing in bfloat16, where the number nearest below 1 is 0.996094, 10 times"
    )


def moves() -> None:
    total = half()
    for _ in range(200):
        total += 1


def fresh() -> None:
    for _ in range(200):
        y = torch.ones(4, dtype=torch.bfloat16) * 100
        y += 1e-3


def wide() -> None:
    total = torch.zeros(())
    for _ in range(600):
        total += 1


def of_nothing() -> None:
    total = torch.full((4,), 100.0, dtype=torch.bfloat16)
    for _ in range(100):
        total += torch.zeros(4, dtype=torch.bfloat16)


def learned() -> None:
    x = torch.full((4,), 100.0, dtype=torch.bfloat16, requires_grad=True)
    for _ in range(100):
        x = x + 1e-3


@pytest.mark.parametrize("program", [moves, fresh, wide, of_nothing, learned])
def test_what_is_no_total_that_stands_still(program: Callable[[], Any]) -> None:
    assert found(program) == []
