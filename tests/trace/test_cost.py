"""What a trace leaves out so as to cost less: steps, modules, values. What it leaves out it does not see at all."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn as nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

import dtlint
from dtlint.trace.export import record_of
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options
from dtlint.trace.progress import Progress
from dtlint.trace.record import TraceRecord


def traced(program: Callable[[], Any], **options: Any) -> TraceRecord:
    tracer = Tracer(Options.parse(**options))
    with tracer:
        program()
    return record_of(tracer, ["test"], 0)


class Loop:
    """A training loop that notes in which steps a dispatch mode was on, in the model and in the optimizer."""

    def __init__(self, steps: int, bad_in: int = 0) -> None:
        self.steps, self.bad_in = steps, bad_in
        self.model: list[int] = []
        self.optimizer: list[int] = []

    def __call__(self) -> None:
        layer = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        optimizer.register_step_pre_hook(lambda *_: None)
        original = optimizer.param_groups[0]["lr"]
        for step in range(1, self.steps + 1):
            self.model.append(len(_get_current_dispatch_mode_stack()))
            x = torch.ones(1, 2) if step != self.bad_in else torch.zeros(1, 2).log() * 0
            optimizer.zero_grad()
            layer(x).sum().backward()
            optimizer.param_groups[0]["lr"] = Spying(original, self.optimizer)
            optimizer.step()


class Spying(float):
    """A learning rate that notes the depth of the dispatch stack when the optimizer reads its sign."""

    seen: list[int]

    def __new__(cls, value: float, seen: list[int]) -> Spying:
        self = super().__new__(cls, value)
        self.seen = seen
        return self

    def __neg__(self) -> float:
        self.seen.append(len(_get_current_dispatch_mode_stack()))
        return -float(self)


def test_between_the_steps_that_are_traced_the_mode_is_off_the_stack() -> None:
    loop = Loop(7)
    record = traced(loop, every=3)
    assert loop.model == [1, 0, 0, 1, 0, 0, 1]
    assert (record.steps, record.traced) == (7, 3)
    assert {e.count for e in record.entries if e.op == "addmm"} == {3}
    assert [(u.what, u.count) for u in record.unseen if "left out" in u.what] == [("steps that --every 3 left out", 4)]


def test_a_span_of_steps() -> None:
    loop = Loop(5)
    record = traced(loop, steps="2:3")
    assert loop.model == [0, 1, 1, 0, 0]
    assert "steps that --steps 2:3 left out" in {u.what for u in record.unseen}


def test_the_optimizer_itself_runs_with_the_mode_off() -> None:
    loop = Loop(2)
    record = traced(loop)
    assert loop.model == [1, 1]
    assert set(loop.optimizer) == {0}
    assert "mul_" not in {e.op for e in record.entries}


@pytest.mark.parametrize(("bad_in", "kinds"), [(3, ["pole"]), (2, ["came-in"])], ids=["traced", "not traced"])
def test_what_happens_in_a_step_that_is_left_out_comes_in_later(bad_in: int, kinds: list[str]) -> None:
    """Step 2 spoils the weights unseen; in step 3 they are judged when they are first read."""
    record = traced(Loop(3, bad_in), every=2)
    assert [e.kind for e in record.events if e.step == 2][:1] == kinds


def test_a_program_s_own_mode_stays_where_it_is_while_the_tracer_comes_and_goes() -> None:
    seen: list[str] = []

    class Own(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def program() -> None:
        layer = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        with Own() as own:
            for _ in range(4):
                layer(torch.ones(1, 2)).sum().backward()
                optimizer.step()
                assert _get_current_dispatch_mode_stack()[-1] is own
        assert own not in _get_current_dispatch_mode_stack()

    assert traced(program, every=2).traced == 2
    assert seen.count("addmm.default") == 4
    assert _get_current_dispatch_mode_stack() == []


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu()).sum()


def test_only_operators_of_the_modules_that_match_are_recorded() -> None:
    model = Two()
    record = traced(lambda: model(torch.ones(2, 4)).backward(), modules=["sec*"])
    assert {place.module for place in record.places} == {"second"}
    assert {(e.op, e.phase) for e in record.entries} >= {("addmm", "forward"), ("mm", "backward")}
    assert not [e.op for e in record.entries if e.op == "relu" or (e.op == "sum" and e.phase == "forward")]


def test_what_a_module_that_is_left_out_writes_comes_in() -> None:
    class Writes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.fill_(float("nan"))
            return x

    writes, doubles = Writes(), Two()
    x = torch.ones(2, 4)
    record = traced(lambda: (doubles(x), writes(x), doubles(x)), modules=["first"])
    assert [e.kind for e in record.events] == ["came-in"]


def test_only_dtypes_judges_no_values() -> None:
    record = traced(lambda: torch.zeros(2).log() * 2 + torch.ones(2, dtype=torch.float64), only="dtypes")
    assert record.events == []
    assert {e.finding for e in record.entries} == {"", "promoted"}


@pytest.mark.parametrize(("words", "code"), [("overflow", 2), ("promotion,DT904", 2), ("promotion", 0), ("any", 0)])
def test_only_dtypes_refuses_to_fail_on_what_it_does_not_judge(
    words: str, code: int, tmp_path: Path, dtlint: Callable[..., Any]
) -> None:
    (tmp_path / "script.py").write_text("print('ran')")
    ran = dtlint("trace", "--quiet", "--only", "dtypes", "--fail-on", words, "script.py")
    assert (ran.code, ran.out) == (code, "" if code else "ran\n")
    assert ran.err.count("\n") == bool(code)
    assert not code or "could never fail: --only dtypes judges no values" in ran.err


def test_watch_judges_the_values_of_these_dtypes_alone() -> None:
    def program() -> None:
        torch.zeros(2).log()
        torch.full((2,), 6e4).half() * 2

    assert [e.dtype for e in traced(program, watch=["float16"]).events] == ["float16"]
    assert [e.dtype for e in traced(program).events] == ["float32", "float16"]


def test_a_program_may_say_itself_where_a_step_ends() -> None:
    """Two optimizers in one step, or none of torch's: what counts is what the program says."""

    def program() -> None:
        layer = nn.Linear(2, 2)
        optimizers = [torch.optim.SGD([p], lr=0.1) for p in layer.parameters()]
        for _ in range(3):
            layer(torch.ones(1, 2)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
            dtlint.step()

    record = traced(program)
    assert record.steps == 4  # the first two were counted before the program spoke up
    dtlint.step()  # without a trace it does nothing


def test_a_skipped_step_of_a_scaler_counts_though_the_mode_is_off() -> None:
    def program() -> None:
        layer = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
        for step in range(4):
            optimizer.zero_grad()
            scaler.scale(layer(torch.ones(1, 2) * (float("inf") if step == 2 else 1)).sum()).backward()
            scaler.step(optimizer)
            scaler.update()

    record = traced(program, every=4)
    assert record.scaler is not None
    assert (record.steps, record.scaler.updates, record.scaler.skipped) == (4, 4, 1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_line_is_for_terminals_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Progress.where_seen(io.StringIO()) is None
    terminal = Terminal()
    progress = Progress.where_seen(terminal)
    assert progress is not None
    tracer = Tracer()
    tracer.steps.heard = progress
    monkeypatch.setattr("dtlint.trace.progress.EACH", 0.0)
    progress._due = 0.0
    with tracer:
        Loop(2)()
    progress.clear()
    lines = terminal.getvalue().split("\r\x1b[2K")
    assert lines[1].startswith("dtlint: step 1, ") and lines[1].endswith("operators, 0 events\r")
    assert lines[2].startswith("dtlint: step 2, ")
    assert lines[-1] == ""


def test_events_whose_kinds_take_turns_at_one_place_stay_two() -> None:
    def program() -> None:
        for number in range(6):
            torch.tensor(float(number % 2)) / torch.zeros(1)

    assert [(e.kind, e.times) for e in traced(program).events] == [("invalid", 3), ("pole", 3)]


def test_a_trace_in_which_nothing_ran_does_not_say_that_all_is_well(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text("import torch\ntorch.zeros(2).log()\n")
    ran = dtlint("trace", "--steps", "5:6", "script.py")
    assert "0 operators" in ran.err
    assert "Non-finite values: not looked for, as no operator was traced" in ran.err


def test_a_notebook_is_refused_before_anything_runs(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "a.ipynb").write_text("{}")
    ran = dtlint("trace", "a.ipynb")
    assert (ran.code, ran.out) == (2, "")
    assert "a.ipynb is a notebook: convert it to a script" in ran.err
