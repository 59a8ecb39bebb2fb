"""`--shadow`: the local errors are those that a computation in float64 finds afterwards, and the program is left alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dtlint.report.shadow_text import every_local_error, local_errors
from dtlint.trace.export import record_of
from dtlint.trace.local_errors import kind_of
from dtlint.trace.merge import merge
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options, OptionsError
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import LocalError
from dtlint.trace.store import load, save


def shadowed(program: Callable[[], Any], wide: str = "float32", **options: Any) -> TraceRecord:
    tracer = Tracer(Options.parse(shadow=wide, **options))
    with tracer:
        program()
    return record_of(tracer, ["test"], 0)


def found(record: TraceRecord, op: str, phase: str = "forward") -> LocalError:
    [local] = [
        local
        for local in record.local
        if (record.entries[local.entry].op, record.entries[local.entry].phase) == (op, phase)
    ]
    return local


# -- the program --------------------------------------------------------------------------------------------------------------


def attention() -> list[float]:
    torch.manual_seed(0)
    q, k, v = (nn.Linear(32, 32) for _ in range(3))
    x = torch.randn(2, 8, 32)
    with torch.autocast("cpu", torch.bfloat16):
        scores = (q(x) @ k(x).transpose(-2, -1)).masked_fill(torch.ones(8, 8, dtype=torch.bool).triu(1), -math.inf)
        loss = (scores.softmax(-1) @ v(x)).square().mean()
    loss.backward()
    return [loss.item()]


def convolution() -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4)
    ).bfloat16()
    x = torch.randn(4, 3, 8, 8).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        loss = F.cross_entropy(model(x), torch.arange(4))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, *(b.double().sum().item() for b in model.buffers())]


def in_place() -> list[float]:
    torch.manual_seed(0)
    x = torch.randn(64).half()
    x.mul_(3).add_(1).sigmoid_()
    x[:8].div_(7)
    total = x.cumsum(0)
    total.index_add_(0, torch.zeros(64, dtype=torch.long), x)
    return total.tolist()


def with_random_numbers() -> list[float]:
    torch.manual_seed(0)
    layer = nn.Linear(16, 16).bfloat16()
    x = torch.randn(4, 16).bfloat16()
    y = F.dropout(layer(x), 0.5) + torch.rand_like(x) + torch.empty_like(x).normal_()
    y = F.rrelu(y, training=True)
    y = F.scaled_dot_product_attention(y[None, None], y[None, None], y[None, None], dropout_p=0.0)
    return [*y.flatten().tolist(), *torch.get_rng_state().tolist(), torch.rand(()).item()]


PROGRAMS = [attention, convolution, in_place, with_random_numbers]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("wide", ["float32", "float64"])
def test_the_program_computes_what_it_does_without(program: Callable[[], list[float]], wide: str) -> None:
    plain = program()
    traced: list[float] = []
    shadowed(lambda: traced.extend(program()), wide)
    assert traced == plain


def test_each_line_has_its_own_error() -> None:
    x = torch.linspace(0.1, 3, 64).bfloat16()

    def program() -> None:
        x.exp()
        (x * 0.3).exp()

    record = shadowed(program)
    exact = [x.double().exp(), (x * 0.3).double().exp()]
    low = [x.exp(), (x * 0.3).exp()]
    errors = [local.error for local in record.local if record.entries[local.entry].op == "exp"]
    for error, one, other in zip(errors, exact, low, strict=True):
        assert error == pytest.approx(((one - other.double()).norm() / one.norm()).item(), rel=0.1)


# -- what the errors are ---------------------------------------------------------------------------------------------------------


def test_rounding_is_told_from_what_is_worse() -> None:
    x = (torch.rand(4096) + 0.5).half()

    def program() -> None:
        (x * 0.7).float()
        x * 60_000
        x * 1e-7
        torch.zeros(1, dtype=torch.float16).index_add_(0, torch.zeros(4096, dtype=torch.long), x)
        x - (x + 0.001)

    record = shadowed(program)
    kinds = [(record.entries[local.entry].op, kind_of(record, local)) for local in record.local]
    assert kinds == [
        ("mul", "rounding"),
        ("mul", "saturation"),
        ("mul", "underflow"),
        ("index_add_", "long sum"),
        ("add", "rounding"),
        ("sub", "cancellation"),
    ]


def test_the_screen_tells_the_gravest_first() -> None:
    x = torch.full((4096,), 1.0).half()

    def program() -> None:
        x + 1
        x * 70_000 * 2
        torch.zeros(1, dtype=torch.float16).index_add_(0, torch.zeros(4096, dtype=torch.long), x)

    record = shadowed(program)
    head, first, second, *_ = [line for line, _ in local_errors(record)]
    assert head.startswith("Local errors against float32, of ")
    assert "saturation, 4,096 of 4,096 values" in first
    assert "long sum: " in second
    assert len(list(every_local_error(record))) == len(record.local)
    assert next(local_errors(shadowed(lambda: torch.ones(3) + 1)))[0] == (
        "Local errors: no operator was narrower than float32"
    )


def test_what_has_no_shadow_is_counted() -> None:
    record = shadowed(with_random_numbers)
    told = {u.what: u.count for u in record.unseen}
    [count] = [n for what, n in told.items() if "draw random numbers" in what]
    assert count >= 1
    ops = {record.entries[local.entry].op for local in record.local}
    assert "addmm" in ops
    assert not ops & {"bernoulli_", "normal_", "rand_like", "rrelu_with_noise"}
    assert "_scaled_dot_product_flash_attention_for_cpu" in ops  # its dropout is off


def test_only_traced_steps_have_shadows() -> None:
    layer = nn.Linear(4, 4).bfloat16()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def program() -> None:
        for _ in range(6):
            layer(torch.ones(2, 4).bfloat16()).sum().backward()
            optimizer.step()

    assert found(shadowed(program, every=3), "addmm").calls == 2


def test_float64_is_a_shadow_of_float32_too() -> None:
    record = shadowed(lambda: torch.linspace(0, 1, 99).exp(), "float64")
    assert 1e-9 < found(record, "exp").error < 2**-24


def test_a_record_keeps_them_and_ranks_add_them_up(tmp_path: Path) -> None:
    record = shadowed(attention)
    save(record, tmp_path / "record.json")
    assert load(tmp_path / "record.json").local == record.local
    other = load(tmp_path / "record.json")
    record.world = other.world = 2
    other.rank = 1
    merged = merge([record, other])
    assert [local.calls for local in merged.local] == [2 * local.calls for local in record.local]
    assert [local.error for local in merged.local] == pytest.approx([local.error for local in record.local])


@pytest.mark.parametrize("given", [{"shadow": "float16"}, {"shadow": "float32", "only": "dtypes"}])
def test_what_cannot_be_meant_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(OptionsError, match="shadow"):
        Options.parse(**given)  # type: ignore[arg-type]
