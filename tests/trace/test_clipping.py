"""DT918: gradients that were clipped with the GradScaler's scale on them, by what the run shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dtlint.diagnostic import Diagnostic
from dtlint.monitor import Monitor
from dtlint.trace.judge import judge
from dtlint.trace.merge import merge
from dtlint.trace.record import TraceRecord
from dtlint.trace.store import load, save

Trace = Callable[[Callable[[], Any]], TraceRecord]

clip_norm, clip_value = nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_


def clip(parameters: Any, limit: Any, by_value: bool = False) -> None:
    """By torch's functions as they are when it is called, as a library's own code does."""
    (nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_)(parameters, limit)


class Loop:
    """A training loop with a scale of 1024, and what its clipping did to the gradients."""

    def __init__(self, enabled: bool = True, fused: bool = False) -> None:
        self.layer = nn.Linear(8, 4)
        kind = (lambda p: torch.optim.Adam(p, fused=True)) if fused else (lambda p: torch.optim.SGD(p, lr=0.1))
        self.optimizer: Any = kind(self.layer.parameters())
        self.scaler = torch.amp.GradScaler("cpu", enabled=enabled, init_scale=1024.0)
        self.norms: list[float] = []

    def backward(self) -> None:
        self.scaler.scale(self.layer(torch.ones(2, 8)).pow(2).mean() * 100).backward()
        self.norms.append(
            sum(p.grad.square().sum().item() for p in self.layer.parameters() if p.grad is not None) ** 0.5
        )

    def step(self) -> None:
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()


def found(record: TraceRecord) -> list[Diagnostic]:
    return [d for d in judge(record) if d.code == "DT918"]


def test_it_is_told_with_the_norm_and_the_scale_that_there_were(trace: Trace) -> None:
    loop = Loop()

    def program() -> None:
        for _ in range(3):
            loop.backward()
            clip(loop.layer.parameters(), 1.0)
            loop.step()

    record = trace(program)
    [told] = record.clips
    assert (told.times, told.scale, told.limit, told.by_value) == (3, 1024.0, 1.0, False)
    assert told.size == pytest.approx(loop.norms[0], rel=1e-4)
    [diagnostic] = found(record)
    assert Path(diagnostic.location.path).name == Path(__file__).name
    assert "clipped gradients that had the GradScaler's scale of 1024, 3 times" in diagnostic.message
    assert "was clipped to 1, which is 0.00098" in diagnostic.message


def test_values_that_are_clipped_are_told_as_well(trace: Trace) -> None:
    loop, largest = Loop(), 0.0

    def program() -> None:
        nonlocal largest
        loop.backward()
        largest = max(p.grad.abs().max().item() for p in loop.layer.parameters() if p.grad is not None)
        clip(loop.layer.parameters(), 0.5, by_value=True)
        loop.step()

    [told] = trace(program).clips
    assert (told.by_value, told.limit) == (True, 0.5)
    assert told.size == pytest.approx(largest)


def test_an_optimizer_that_divides_by_the_scale_itself_is_no_exception(trace: Trace) -> None:
    loop = Loop(fused=True)

    def program() -> None:
        loop.backward()
        clip(loop.layer.parameters(), 1.0)
        loop.step()

    [told] = trace(program).clips
    assert (told.times, told.scale) == (1, 1024.0)


def test_each_part_of_an_accumulated_batch_counts(trace: Trace) -> None:
    loop = Loop()

    def program() -> None:
        for _ in range(2):
            loop.backward()
            clip(loop.layer.parameters(), 1.0)
        loop.step()

    assert [told.times for told in trace(program).clips] == [2]


def test_nothing_is_told_of_gradients_without_a_scale(trace: Trace) -> None:
    def right(enabled: bool = True, limit: float = 1.0, times: int = 1) -> None:
        loop = Loop(enabled)
        for _ in range(3):
            loop.backward()
            loop.scaler.unscale_(loop.optimizer)
            for _ in range(times):
                clip(loop.layer.parameters(), limit)
            loop.step()

    def without_a_scaler() -> None:
        loop = Loop(enabled=False)
        for _ in range(2):
            loop.backward()
            clip(loop.layer.parameters(), 1.0)
            loop.optimizer.step()

    def two_models() -> None:
        one, other = Loop(), Loop()
        one.backward()
        other.backward()
        one.scaler.unscale_(one.optimizer)
        clip(one.layer.parameters(), 1.0)
        other.scaler.step(other.optimizer)
        one.step()

    def kept_gradients() -> None:
        loop = Loop()
        for _ in range(3):
            loop.backward()
            loop.scaler.unscale_(loop.optimizer)
            clip(loop.layer.parameters(), 1.0)
            loop.scaler.step(loop.optimizer)
            loop.scaler.update()
            loop.optimizer.zero_grad(set_to_none=False)

    for program in (
        right,
        lambda: right(enabled=False),
        lambda: right(times=2),
        without_a_scaler,
        two_models,
        kept_gradients,
    ):
        assert found(trace(program)) == []


def test_a_limit_with_the_scale_on_it_and_a_call_that_clips_nothing_are_left_alone(trace: Trace) -> None:
    def scaled_limit() -> None:
        loop = Loop()
        loop.backward()
        clip(loop.layer.parameters(), 0.1 * loop.scaler.get_scale())
        loop.step()

    def wide() -> None:
        loop = Loop()
        loop.backward()
        clip(loop.layer.parameters(), 1e9)
        loop.step()

    def overflowed() -> None:
        loop = Loop()
        loop.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
        loop.backward()
        clip(loop.layer.parameters(), 1.0)
        loop.step()

    for program in (scaled_limit, wide, overflowed):
        assert found(trace(program)) == []


@pytest.mark.parametrize(
    ("limit", "times"),
    [(lambda scale: 1.0, 4), (lambda scale: 0.05 * scale, 0), (lambda scale: 0.001 * scale, 0)],
)
@pytest.mark.parametrize("order", [(128.0, 32.0), (32.0, 128.0)])
def test_a_limit_that_stays_while_the_scale_changes_is_not_made_for_it(
    trace: Trace, limit: Callable[[float], float], times: int, order: tuple[float, float]
) -> None:
    loop = Loop()

    def program() -> None:
        for scale in order:
            loop.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
            for _ in range(2):
                loop.backward()
                clip(loop.layer.parameters(), limit(loop.scaler.get_scale()))
                loop.step()

    clips = trace(program).clips
    assert [told.times for told in clips] == [times] * bool(times)
    if clips:
        assert (clips[0].step, clips[0].scale) == (0, order[0])


def test_the_results_are_those_without_a_trace_and_torch_is_as_it_was(trace: Trace) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        loop = Loop()
        for _ in range(2):
            loop.backward()
            clip(loop.layer.parameters(), 1.0)
            clip(loop.layer.parameters(), 1e-3, by_value=True)
            loop.step()
        return [p.sum().item() for p in loop.layer.parameters()]

    alone, traced = train(), []
    trace(lambda: traced.extend(train()))
    assert traced == alone
    assert (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_) == (clip_norm, clip_value)


def test_a_monitor_in_a_traced_program_hears_of_it_too(trace: Trace, tmp_path: Path) -> None:
    loop = Loop()

    def program() -> None:
        with Monitor(loop.layer, loop.optimizer, loop.scaler, every=1, file=tmp_path / "m.jsonl"):
            loop.backward()
            clip(loop.layer.parameters(), 1.0)
            loop.step()

    assert [told.times for told in trace(program).clips] == [1]
    assert nn.utils.clip_grad_norm_ is clip_norm


def test_it_is_kept_in_a_file_and_added_up_over_ranks(trace: Trace, tmp_path: Path) -> None:
    loop = Loop()

    def program() -> None:
        loop.backward()
        clip(loop.layer.parameters(), 1.0)
        loop.step()

    record = trace(program)
    save(record, tmp_path / "r.json")
    assert load(tmp_path / "r.json").clips == record.clips
    merged = merge([replace(record, rank=rank, world=2) for rank in range(2)])
    assert [told.times for told in merged.clips] == [2]
