"""Runs that differ in nothing but precision: nothing is beyond rounding, and all of them is compared."""

from __future__ import annotations

from collections.abc import Callable

import honest
import pytest
import torch

from dtlint.compare import CannotCompare, compare
from dtlint.trace.record import TraceRecord

Sketched = Callable[..., TraceRecord]


@pytest.mark.parametrize("name", honest.MODELS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_is_honest_rounding(name: str, dtype: torch.dtype, sketched: Sketched) -> None:
    comparison = compare(sketched(lambda: honest.train(name)), sketched(lambda: honest.train(name), dtype))
    assert comparison.findings == []
    assert comparison.precision.other == str(dtype).removeprefix("torch.")
    assert comparison.compared > 100
    assert [line for _, line in comparison.unmatched if not line.backward] == []


@pytest.mark.parametrize("name", honest.MODELS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_so_are_weights_of_another_dtype(name: str, dtype: torch.dtype, sketched: Sketched) -> None:
    comparison = compare(sketched(lambda: honest.train(name)), sketched(lambda: honest.train(name, dtype)))
    assert comparison.findings == []
    assert sum(map(len, comparison.honest.values())) > 100


def test_a_run_does_not_differ_from_itself(sketched: Sketched) -> None:
    one, other = (sketched(lambda: honest.train("gpt")) for _ in range(2))
    comparison = compare(one, other)
    assert comparison.equal == comparison.compared > 100
    assert {loss == its for _, loss, its in comparison.losses} == {True}


def test_what_a_backward_computes_of_forward_values_was_never_scaled(sketched: Sketched) -> None:
    def scaled(enabled: bool) -> None:
        layer = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=enabled)
        for _ in range(2):
            x = layer(torch.randn(4, 8))
            optimizer.zero_grad()
            scaler.scale((x.pow(2) + torch.rsqrt(x.abs() + 0.1) + x.sin()).mean()).backward()
            scaler.step(optimizer)
            scaler.update()

    comparison = compare(sketched(lambda: scaled(False)), sketched(lambda: scaled(True)))
    assert comparison.findings == []
    assert comparison.equal == comparison.compared > 40
    assert [(step, loss == its) for step, loss, its in comparison.losses] == [(0, True), (1, True)]


def test_models_of_other_sizes_are_told_as_such(sketched: Sketched) -> None:
    def train(width: int) -> None:
        model = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.ReLU(), torch.nn.Linear(width, 2))
        optimizer = torch.optim.SGD(model.parameters())
        for _ in range(2):
            model(torch.randn(3, 4)).sum().backward()
            optimizer.step()

    with pytest.raises(CannotCompare, match=r"models: parameter 0\.bias has the shape \[8\] in the one, and \[16\]"):
        compare(sketched(lambda: train(8)), sketched(lambda: train(16)))


def test_losses_are_told_without_their_scale(sketched: Sketched) -> None:
    losses: list[float] = []

    def scaled(enabled: bool) -> None:
        layer = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=enabled, init_scale=3000.0, growth_interval=1)
        losses.clear()
        for _ in range(3):
            optimizer.zero_grad()
            loss = layer(torch.randn(4, 8)).square().mean() / 2
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())

    comparison = compare(sketched(lambda: scaled(False)), sketched(lambda: scaled(True)))
    assert [loss for _, loss, _ in comparison.losses] == pytest.approx(losses)
    assert [its for *_, its in comparison.losses] == pytest.approx(losses)
    assert comparison.findings == [], "a scale need not be a power of 2"


def test_the_scale_of_a_gradient_is_taken_out(sketched: Sketched) -> None:
    def scaled(enabled: bool) -> None:
        model, loss = honest.gpt()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", enabled=enabled, init_scale=2.0**30)
        for _ in range(4):  # the first steps overflow, and are skipped
            optimizer.zero_grad()
            scaler.scale(loss(torch.float32)).backward()
            scaler.step(optimizer)
            scaler.update()

    one, other = sketched(lambda: scaled(False)), sketched(lambda: scaled(True), torch.float16)
    assert other.scaler is not None
    assert other.scaler.skipped > 0
    assert compare(one, other).findings == []


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_fused_attention_is_compared_with_its_parts(autocast: torch.dtype | None, sketched: Sketched) -> None:
    """Its gradients are all of one size, and are made in another order."""
    inputs = torch.randn(3, 2, 4, 8, 16).requires_grad_()

    def fused() -> None:
        q, k, v = inputs * 1.5
        torch.nn.functional.scaled_dot_product_attention(q, k, v).square().mean().backward()

    def apart() -> None:
        q, k, v = inputs * 1.5
        ((q @ k.transpose(-2, -1) / 4).softmax(-1) @ v).square().mean().backward()

    comparison = compare(sketched(fused), sketched(apart, autocast))
    assert comparison.findings == []
    assert comparison.compared >= 8
    assert {name for name, _ in comparison.unmatched} <= {"A", "B"}


def test_a_reduction_that_was_written_as_a_long_loop_is_compared(sketched: Sketched) -> None:
    def train(looped: bool) -> None:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(2):
            y = model(torch.randn(8, 64))
            if looped:
                total = torch.zeros(8, 1, dtype=torch.bfloat16)
                for column in range(64):
                    total = total + y[:, column : column + 1].bfloat16() ** 2
                mean = total.float() / 64
            else:
                mean = (y * y).mean(1, keepdim=True)
            (y * torch.rsqrt(mean + 1e-6)).pow(3).mean().backward()
            optimizer.step()

    comparison = compare(sketched(lambda: train(False)), sketched(lambda: train(True)))
    first = comparison.findings[0]
    assert first.place.expression == "y[:, column : column + 1].bfloat16()"
    assert first.cause == "only B casts to bfloat16 there"


def test_what_cannot_be_compared_says_what_to_do(sketched: Sketched) -> None:
    one = sketched(lambda: honest.train("resnet", steps=1))
    other = sketched(lambda: honest.train("gpt", steps=1))
    with pytest.raises(CannotCompare, match=r"are of different programs: .* trace one program twice"):
        compare(one, other)
    later = sketched(lambda: honest.train("resnet", steps=3), steps="3:3")
    with pytest.raises(CannotCompare, match="share no sketched step; trace both with the same --steps"):
        compare(one, later)
    bare = sketched(lambda: honest.train("resnet", steps=1))
    bare.sketches = None
    with pytest.raises(CannotCompare, match="B has no sketches; trace again with: dtlint trace --sketch --output B"):
        compare(one, bare)
    older = sketched(lambda: honest.train("resnet", steps=1))
    assert older.sketches is not None
    older.sketches.method = "md5/4/64"
    with pytest.raises(CannotCompare, match="whose sketches are of another kind"):
        compare(one, older)
    broken = sketched(lambda: honest.train("resnet", steps=1))
    assert broken.sketches is not None
    broken.sketches.steps[0].lines = "0 0 0 99"
    with pytest.raises(CannotCompare, match="B is damaged"):
        compare(one, broken)
