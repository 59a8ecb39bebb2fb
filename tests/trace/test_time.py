"""Times of operators, and what is made of them: why 16 bits are no faster, and what they would gain."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dtlint.trace.clock
from dtlint.report.time_text import time_lines
from dtlint.trace.clock import Clock
from dtlint.trace.export import record_of
from dtlint.trace.gains import Gain, by_dtype, gains
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options
from dtlint.trace.ratios import CPU, LARGE, WITHOUT_BFLOAT16
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import VALUES_IN_GRAPHS, Unseen
from dtlint.trace.store import load, save


def timed(program: Callable[[], Any], **options: Any) -> TraceRecord:
    tracer = Tracer(Options.parse(time=True, **options))
    with tracer:
        program()
    record = record_of(tracer, ["train.py"], 0)
    if record.timing is not None:
        record.timing.processor = "AMD EPYC"  # whatever the tests run on
    return record


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(256, 256), nn.Linear(256, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x).softmax(-1)
        with torch.autocast("cpu", enabled=False):
            return self.head(x.float())


def training(dtype: torch.dtype, model: nn.Module, losses: list[float] | None = None) -> Callable[[], None]:
    def train() -> None:
        torch.manual_seed(0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
        for _ in range(3):
            with torch.autocast("cpu", dtype=dtype):
                loss = model(torch.randn(128, 256)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if losses is not None:
                losses.append(loss.item())

    return train


def found(record: TraceRecord, kind: str) -> list[Gain]:
    return [gain for gain in gains(record) if gain.kind == kind]


def give_times(record: TraceRecord, seconds: Callable[[Any], float]) -> None:
    """Instead of what was measured, which differs from run to run."""
    for entry in record.entries:
        entry.seconds = seconds(entry)


def test_each_call_is_timed_and_the_first_one_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes 1000 ns, then one of 10 and one of 30."""
    ticks = itertools.chain([0, 1000, 2000, 2010, 3000, 3030], itertools.repeat(0))
    monkeypatch.setattr(dtlint.trace.clock, "perf_counter_ns", lambda: next(ticks))
    x = torch.ones(4)

    def program() -> None:
        for _ in range(3):
            x.exp()

    (entry,) = [entry for entry in timed(program).entries if entry.op == "exp"]
    assert entry.count == 3
    assert entry.seconds == pytest.approx(60e-9)


def test_a_step_is_timed_but_the_first(tmp_path: Path) -> None:
    record = timed(training(torch.bfloat16, Model()))
    timing = record.timing
    assert timing is not None
    assert timing.steps == 2
    assert 0 < timing.operators < timing.wall
    assert 0 < timing.optimizers < timing.wall
    assert 0 < timing.call < 1e-3
    assert (timing.device, timing.float32) == ("cpu", "highest")
    assert all(entry.seconds > 0 for entry in record.entries if entry.op == "addmm")
    save(record, tmp_path / "trace.json")
    assert load(tmp_path / "trace.json") == record


def test_steps_that_are_left_out_are_not_in_the_times() -> None:
    record = timed(training(torch.bfloat16, Model()), every=2)
    assert record.timing is not None
    assert record.timing.steps == 1


def test_without_the_option_nothing_is_timed() -> None:
    tracer = Tracer()
    with tracer:
        torch.ones(4).exp()
    record = record_of(tracer, ["train.py"], 0)
    assert record.timing is None
    assert {entry.seconds for entry in record.entries} == {0.0}
    assert list(time_lines(record)) == []


def test_timing_changes_no_result() -> None:
    plain: list[float] = []
    torch.manual_seed(0)
    training(torch.bfloat16, Model(), plain)()
    with_times: list[float] = []
    torch.manual_seed(0)
    timed(training(torch.bfloat16, Model(), with_times))
    assert with_times == plain


def test_without_bfloat16_instructions_products_in_it_are_slow() -> None:
    record = timed(training(torch.bfloat16, Model()))
    assert record.timing is not None
    record.timing.processor = f"AMD EPYC{WITHOUT_BFLOAT16}"
    give_times(record, lambda entry: 1e-3 * (entry.op == "addmm"))
    (wide,), (slow,) = found(record, "wide"), found(record, "slow")
    assert wide.most < 0
    assert (slow.what, slow.least > 0) == ("addmm in bfloat16", True)
    printed = "\n".join(text for text, _ in time_lines(record))
    assert "nothing would be gained in 16 bits" in printed
    assert "less in float32" in printed


def test_work_that_autocast_missed_is_told_with_its_reason_and_gain() -> None:
    record = timed(training(torch.bfloat16, Model()))
    give_times(record, lambda entry: 1e-3 * (entry.op == "addmm"))
    (wide,) = found(record, "wide")
    assert (wide.what, wide.why) == ("addmm in float32", "autocast was off there")
    assert max(entry.flops for entry in record.entries) >= LARGE
    known = CPU["large product", "bfloat16"]
    assert wide.least == pytest.approx(1e-3 * (1 - 1 / known.least))
    assert wide.most == pytest.approx(1e-3 * (1 - 1 / known.most))


def test_float16_is_slower_on_a_cpu() -> None:
    record = timed(training(torch.float16, Model()))
    give_times(record, lambda entry: 1e-3 * (entry.op == "addmm" and entry.output == "float16"))
    (slow,) = found(record, "slow")
    assert (slow.what, slow.why) == ("addmm in float16", "a CPU as the one measured is slower in float16")
    assert 0 < slow.least < slow.most < slow.seconds


def test_casts_that_cost_more_than_they_save() -> None:
    record = timed(training(torch.bfloat16, Model()))
    give_times(record, lambda e: 2e-3 if e.author else 1e-6 if e.op in ("addmm", "mm") else 0.0)
    (casts,) = found(record, "casts")
    assert casts.what == "9 casts"
    assert casts.why.startswith("what reads them saves")
    give_times(record, lambda e: 1e-6 if e.author else 1e-3 if e.op in ("addmm", "mm") else 0.0)
    assert found(record, "casts") == []


def test_what_autocast_widens_on_a_gpu_and_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    record = timed(training(torch.bfloat16, Model()))
    assert record.timing is not None
    record.timing.device, record.timing.processor = "cuda", "NVIDIA A100-SXM4-80GB"
    for entry in record.entries:
        entry.device = "cuda"
    give_times(record, lambda entry: 1e-3 * (entry.op == "addmm"))
    (wide,) = found(record, "wide")
    assert (wide.least, wide.most) == (0.0, pytest.approx(1e-3 * (1 - 19.5 / 312)))
    (tf32,) = found(record, "tf32")
    assert tf32.most == pytest.approx(1e-3 * (1 - 19.5 / 156))
    assert 'torch.set_float32_matmul_precision("high")' in tf32.why
    record.timing.float32 = "high"
    assert found(record, "tf32") == []
    assert found(record, "wide")[0].most == pytest.approx(1e-3 * (1 - 156 / 312))
    for other in ("an unknown GPU", "NVIDIA RTX A1000", "NVIDIA T400 4GB"):
        record.timing.processor = other
        assert gains(record) == []


def test_the_screen_of_times() -> None:
    record = timed(training(torch.bfloat16, Model()))
    assert record.timing is not None
    record.timing.wall, record.timing.operators, record.timing.optimizers, record.timing.call = 8e-3, 6e-3, 4e-4, 1e-6
    give_times(record, lambda entry: 3e-3 * (entry.op == "addmm"))
    lines = [text for text, _ in time_lines(record)]
    assert lines[0] == (
        "Time: 4 ms a step, of which operators 75% and the optimizer 5%; the rest is Python, data and this trace,"
        " which no dtype changes"
    )
    assert lines[1].startswith("  operators by dtype: 50% float32, 50% bfloat16; ")
    record.unseen.append(Unseen(VALUES_IN_GRAPHS, 1))
    assert any("compiled code is not among the operators" in text for text, _ in time_lines(record))
    assert sum(by_dtype(record).values()) == pytest.approx(6e-3)
    told = "because autocast was off there; 738 us to 778 us less in 16 bits"
    assert any("addmm in float32" in line and told in line for line in lines)


def test_the_command(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n\nprint((torch.ones(64, 64) @ torch.ones(64, 64)).sum().item())\n"
    )
    ran = dtlint("trace", "--time", "train.py")
    assert (ran.code, ran.out) == (0, "262144.0\n")
    assert "\nTime: " in ran.err
    ran = dtlint("trace", "--time", "--simulate", "cuda", "train.py")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("dtlint trace: --time: a simulated device has no times; leave out --simulate or --time\n")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_events_agree_with_the_profiler() -> None:
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(4096, 4096, device="cuda")

    def program() -> None:
        for _ in range(20):
            x @ x

    program()
    (entry,) = [entry for entry in timed(program).entries if entry.op == "mm"]
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        program()
    spent = sum(event.self_device_time_total for event in profiled.key_averages()) * 1e-6
    assert entry.seconds == pytest.approx(spent, rel=0.2)


def test_what_waits_on_the_clock_is_read_in_the_end() -> None:
    clock = Clock()
    clock.timed(torch.exp)(torch.ones(3))
    timing = clock.timing()
    assert timing.steps == 0
    assert 0 < timing.operators <= timing.wall
