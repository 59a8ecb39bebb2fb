"""How magnitudes are spread: the histograms are those of the tensors, at the moments that they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dtlint
from dtlint.trace.histograms import VALUES
from dtlint.trace.record import TraceRecord
from dtlint.trace.store import load, save

Trace = Callable[[Callable[[], Any]], TraceRecord]


def exponents(x: torch.Tensor) -> dict[int, int]:
    return dict(Counter(torch.frexp(x[x != 0].float()).exponent.tolist()))


def histograms(record: TraceRecord) -> dict[tuple[str, str, str], tuple[dict[int, int], int]]:
    return {
        (one.what, one.module, one.dtype): ({one.first + n: c for n, c in enumerate(one.counts) if c}, one.zeros)
        for one in record.histograms
    }


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x).relu()


def test_each_is_what_its_tensor_held(trace: Trace) -> None:
    torch.manual_seed(0)
    net, x = Net(), torch.randn(5, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def run() -> None:
        net(x).square().sum().backward()
        optimizer.step()

    found = histograms(trace(run))
    weight = net.fc.weight
    assert weight.grad is not None
    assert found["weights", "fc", "float32"] == (exponents(weight.detach()), 0)
    assert found["gradients", "fc", "float32"] == (exponents(weight.grad), int((weight.grad == 0).sum()))
    with torch.no_grad():
        before = weight + 0.1 * weight.grad
        out = (x @ before.T).relu()
    activations, zeros = found["activations", "Net", "float32"]
    assert zeros == int((out == 0).sum())
    assert activations == exponents(out)


def test_gradients_are_without_the_scale(trace: Trace) -> None:
    net = nn.Linear(2, 1, bias=False)

    def run() -> None:
        optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
        scaler.scale(net(torch.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert histograms(trace(run))["gradients", "Linear", "float32"] == ({1: 2}, 0)


def test_large_tensors_are_sampled_and_what_is_not_finite_is_left_out(trace: Trace) -> None:
    p = nn.Parameter(torch.full((1000, 100), 3.0))
    p.data[:, 1:] = float("inf")
    optimizer = torch.optim.SGD([p], lr=0.0)

    def run() -> None:
        p.grad = torch.full_like(p, 2.0)
        optimizer.step()

    found = histograms(trace(run))
    ((gradients, _),) = [found[key] for key in found if key[0] == "gradients"]
    assert gradients == {2: VALUES}
    weights = [found[key] for key in found if key[0] == "weights"]
    assert all(set(counts) <= {2} for counts, _ in weights)


def test_the_layout_of_a_weight_and_the_default_device_do_not_matter(trace: Trace) -> None:
    p = nn.Parameter(torch.full((6, 4), 3.0).t())
    assert not p.is_contiguous()

    def run() -> None:
        optimizer = torch.optim.SGD([p], lr=0.0)
        p.grad = torch.full_like(p, 0.5)
        with torch.device("meta"):
            optimizer.step()
            dtlint.step()

    record = trace(run)
    assert [one for one in record.unseen if "could not be judged" in one.what] == []
    assert {(what, *map(str, counts)) for (what, _, _), (counts, _) in histograms(record).items()} == {
        ("weights", "2"),
        ("gradients", "0"),
    }


def test_steps_are_sampled_ever_more_rarely() -> None:
    p = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([p], lr=0.0)
    with dtlint.trace() as t:
        for _ in range(16):
            p.grad = torch.ones(1)
            optimizer.step()
    (found,) = [one for one in t.record.histograms if one.what == "gradients"]
    assert found.counts == [5], "steps 1, 2, 4, 8 and 16"


def test_where_no_values_are_judged_there_are_none(tmp_path: Path) -> None:
    p = nn.Parameter(torch.ones(1))
    with dtlint.trace(only="dtypes") as t:
        (p * 2).sum().backward()
        torch.optim.SGD([p], lr=0.0).step()
    assert t.record.histograms == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_record_keeps_them_in_each_dtype(dtype: torch.dtype, tmp_path: Path) -> None:
    p = nn.Parameter(torch.full((2,), 2.0**-20, dtype=dtype))
    with dtlint.trace() as t:
        p.grad = torch.zeros_like(p)
        torch.optim.SGD([p], lr=0.0).step()
    t.save(tmp_path / "t.json")
    again = load(tmp_path / "t.json")
    assert again.histograms == t.record.histograms
    (weights,) = [one for one in again.histograms if one.what == "weights"]
    assert (weights.dtype, weights.first, weights.counts) == (str(dtype)[6:], -19, [2])
    save(again, tmp_path / "again.json")
