"""dtlint.Monitor: what it reads agrees with what is computed by hand, and the loop computes what it would alone."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import dtlint  # noqa: E402
from dtlint.monitor import Reading  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Alone in an empty directory; no monitor outlives its test."""
    made = []
    begin = dtlint.Monitor.__init__
    monkeypatch.setattr(dtlint.Monitor, "__init__", lambda self, *a, **k: (begin(self, *a, **k), made.append(self))[0])
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    for monitor in made:
        monitor.close()


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4))


def half_loop(
    model: nn.Module,
    optimizer: Any,
    scaler: Any,
    steps: int = 4,
    unscale: bool = False,
    micro: int = 1,
    before: Callable[[int], None] = lambda step: None,
    loss_of: Callable[[int, Any], Any] = lambda step, loss: loss,
) -> None:
    """A loop as people write it: float16 autocast, a scaler, and gradients that are accumulated over `micro` batches."""
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        for _ in range(micro):
            with torch.autocast("cpu", torch.float16):
                loss = loss_of(step, model(torch.randn(4, 8)).pow(2).mean()) / micro
            scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(optimizer)
        before(step)
        scaler.step(optimizer)
        scaler.update()


def by_hand(model: nn.Module, divisor: float) -> float:
    return float(torch.cat([p.grad.flatten() for p in model.parameters()]).double().norm()) / divisor


def readings(file: str = "dtlint-monitor.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("micro", [1, 3])
def test_scale_and_norm_are_those_computed_by_hand(unscale: bool, micro: int) -> None:
    model = network()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", 1024.0, growth_interval=2)
    norms: list[tuple[float, float]] = []
    seen: list[Reading] = []
    dtlint.Monitor(model, optimizer, scaler, every=1, listener=seen.append)

    def note(step: int) -> None:
        scale = scaler.get_scale()
        norms.append((scale, by_hand(model, 1 if unscale else scale)))

    half_loop(model, optimizer, scaler, 5, unscale, micro, before=note)
    assert [scale for scale, _ in norms] == [1024, 1024, 2048, 2048, 4096]
    assert [reading.scale for reading in seen] == [scale for scale, _ in norms]
    assert [reading.grad_norm for reading in seen] == pytest.approx([norm for _, norm in norms], rel=1e-6)
    parts = [module.grad_norm for module in seen[0].modules.values() if module.grad_norm is not None]
    assert sum(part**2 for part in parts) ** 0.5 == pytest.approx(norms[0][1], rel=1e-6)


def test_norm_is_told_as_it_is_before_torch_clips() -> None:
    model = network()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", 1024.0)
    norms: list[float] = []
    monitor = dtlint.Monitor(model, optimizer, scaler, every=1, file=None)
    half_loop(
        model,
        optimizer,
        scaler,
        unscale=True,
        before=lambda step: norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1e-3))),
    )
    assert monitor.last is not None
    assert monitor.last.grad_norm == pytest.approx(norms[-1], rel=1e-6)


def test_torch_is_left_as_it_was_whichever_monitor_ends_first() -> None:
    functions = (nn.utils.clip_grad_norm_, nn.utils.clip_grad.clip_grad_norm_)
    monitors = []
    for _ in range(2):
        model = network()
        monitors.append(dtlint.Monitor(model, torch.optim.SGD(model.parameters(), 0.1), every=1, file=None))
    assert nn.utils.clip_grad_norm_ is not functions[0]
    for monitor in monitors:
        monitor.close()
    assert (nn.utils.clip_grad_norm_, nn.utils.clip_grad.clip_grad_norm_) == functions


def test_skipped_steps_are_counted_also_where_they_are_not_sampled() -> None:
    model = network()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", 1024.0)
    seen: list[Reading] = []
    monitor = dtlint.Monitor(model, optimizer, scaler, every=4, listener=seen.append)
    bad = (2, 3, 8)
    half_loop(model, optimizer, scaler, 8, loss_of=lambda step, loss: loss * float("inf") if step in bad else loss)
    assert monitor.steps == 8
    assert [(r.step, r.skipped, r.skipped_since) for r in seen] == [(4, 2, 2), (8, 3, 1)]
    assert readings()[-1]["grad_norm"] in ("inf", "nan")
    assert [r.modules["0"].compared for r in seen] != [0, 0]
    assert seen[1].modules["0"].compared == 0  # nothing was to move in a step that was skipped


def test_results_of_modules() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU()).half()
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1e-5]]))
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    monitor = dtlint.Monitor(model, optimizer, every=1)
    model(torch.tensor([[-3.0, 1.0], [2.0, 0.0]]).half()).sum().backward()  # [-3, 1e-5], [2, 0]
    with torch.no_grad():
        model(torch.full((1, 2), 1000.0).half())  # an evaluation is none of the step
    optimizer.step()
    assert monitor.last is not None
    first, relu = monitor.last.modules["0"], monitor.last.modules["1"]
    assert (first.dtype, first.amax, first.underflow, first.zero) == ("float16", 3.0, 1 / 3, 1 / 4)
    assert (relu.amax, relu.underflow, relu.zero) == (2.0, 1 / 2, 1 / 2)
    assert first.grad_dtype == "float16"
    assert first.compared == 0  # a rate of 0 is to move nothing


def test_float32_may_be_measured_by_float16() -> None:
    model = nn.Sequential(nn.Identity(), nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monitor = dtlint.Monitor(model, optimizer, every=1, file=None, assume="float16")
    model(torch.tensor([[1e-5], [1.0]])).sum().backward()
    optimizer.step()
    assert monitor.last is not None
    assert monitor.last.modules["0"].underflow == 0.5


def test_weights_that_are_stuck() -> None:
    model = nn.Linear(16, 16, bias=False).to(torch.bfloat16)
    nn.init.constant_(model.weight, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    monitor = dtlint.Monitor(model, optimizer, every=1, file=None)
    model(torch.ones(2, 16, dtype=torch.bfloat16)).sum().backward()  # each gradient is 2
    optimizer.step()
    assert monitor.last is not None
    assert (monitor.last.modules[""].compared, monitor.last.modules[""].stuck) == (256, 1.0)
    optimizer.param_groups[0]["lr"] = 0.1
    optimizer.step()
    assert monitor.last.modules[""].stuck == 0.0


@pytest.mark.parametrize("kind", ["plain", "wrapped", "fused", "closure"])
def test_nothing_that_is_computed_changes(kind: str) -> None:
    def train(monitored: bool) -> Any:
        torch.manual_seed(1)
        inner = network()
        model: nn.Module = _Wrapper(inner) if kind == "wrapped" else inner
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2, fused=kind == "fused")
        scaler = torch.amp.GradScaler("cpu", 2.0**14, enabled=kind != "closure")
        if monitored:
            dtlint.Monitor(model, optimizer, scaler, every=2)
        if kind == "closure":
            for _ in range(4):
                optimizer.step(lambda: _closure(model, optimizer))
        else:
            half_loop(model, optimizer, scaler, loss_of=lambda step, loss: loss * (float("inf") if step == 1 else 1))
        return [*(p.detach().clone() for p in inner.parameters()), torch.rand(3)]

    alone, monitored = train(False), train(True)
    assert all(torch.equal(a, b) for a, b in zip(alone, monitored, strict=True))
    last = readings()[-1]
    assert [*last["modules"]] == ["0", "1", "2", "3"]
    assert last["skipped"] == (kind != "closure")
    assert last["grad_norm"] > 0
    assert not last["unseen"]


class _Wrapper(nn.Module):
    """As DistributedDataParallel is one."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Any) -> Any:
        return self.module(x)


def _closure(model: nn.Module, optimizer: Any) -> Any:
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    return loss


def test_between_sampled_steps_nothing_is_on_the_model() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monitor = dtlint.Monitor(model, optimizer, every=3)
    hooked = []
    for _ in range(6):
        hooked.append(any(module._forward_hooks for module in model.modules()))
        _closure(model, optimizer)
        optimizer.step()
    assert hooked == [False, False, True, False, False, True]
    monitor.close()
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_one_transfer_for_each_sampled_step(monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint.monitor import waiting

    fetched = []
    monkeypatch.setattr(waiting, "fetch", lambda x, fetch=waiting.fetch: (fetched.append(len(x)), fetch(x))[1])
    model = network()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cpu", 1024.0)
    with dtlint.Monitor(model, optimizer, scaler, every=5), _no_items():
        half_loop(model, optimizer, scaler, 10, micro=2)
    assert len(fetched) == 2


class _no_items(torch.utils._python_dispatch.TorchDispatchMode):
    """Refuses that the monitor reads a number out of a tensor as the model runs; the scaler itself may."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert "_local_scalar_dense" not in str(func) or args[0].dtype is torch.float32
        return func(*args, **(kwargs or {}))


def test_a_model_copied_in_a_sampled_step_is_free_of_the_monitor() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monitor = dtlint.Monitor(model, optimizer, every=1)
    average = copy.deepcopy(model)
    pickle.loads(pickle.dumps(model))
    average(torch.full((1, 8), 1e6)).sum().backward()
    _closure(model, optimizer)
    optimizer.step()
    assert monitor.last is not None
    assert (monitor.last.modules["0"].amax or 0) < 1e3


def test_compiled_models_run_as_they_would_and_what_is_not_seen_is_said() -> None:
    torch._dynamo.reset()
    model = network()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monitor = dtlint.Monitor(compiled, optimizer, every=2)
    from torch._dynamo.utils import counters

    counters.clear()
    for _ in range(6):
        _closure(compiled, optimizer)
        optimizer.step()
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]
    assert monitor.last is not None
    assert monitor.last.unseen == ["results of modules inside compiled code"]
    assert (monitor.last.modules[""].amax or 0) > 0  # of the whole
    assert (monitor.last.modules["0"].grad_norm or 0) > 0


def test_it_can_be_traced_at_the_same_time() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    operators = []
    for monitored in (False, True):
        monitor = dtlint.Monitor(model, optimizer, every=1) if monitored else None
        with dtlint.trace() as t:
            _closure(model, optimizer)
            optimizer.step()
        operators.append(t.record.operators)
        if monitor is not None:
            monitor.close()
    assert operators[0] == operators[1]


def test_file_is_thinned_out_as_it_grows() -> None:
    from dtlint.monitor.outputs import JsonLines

    file = JsonLines(Path("log.jsonl"), most=2000)
    for step in range(1, 101):
        file.write(Reading(step, 0.0))
    assert Path("log.jsonl").stat().st_size < 2000
    steps = [reading["step"] for reading in readings("log.jsonl")]
    assert steps[-1] == 100
    assert steps == sorted(steps)
    assert steps[0] < 20


def test_a_file_that_cannot_be_written_any_more_ends_the_writing_alone(caplog: pytest.LogCaptureFixture) -> None:
    Path("logs").mkdir()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    monitor = dtlint.Monitor(model, optimizer, every=1, file="logs/a.jsonl")
    Path("logs").rmdir()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            _closure(model, optimizer)
            optimizer.step()
    assert monitor.last is not None
    assert len(caplog.messages) == 1
    assert "writes to JsonLines no longer" in caplog.messages[0]


class _Board:
    """What TensorBoard and W&B are told."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.told[name] = (value, step)

    def flush(self) -> None: ...

    def define_metric(self, name: str, step_metric: str = "") -> None: ...

    def log(self, values: dict[str, float], commit: bool = True) -> None:
        assert not commit  # that moves the run's own step
        self.told |= values


def test_loggers_get_numbers() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    board, run = _Board(), _Board()
    with dtlint.Monitor(model, optimizer, every=2, tensorboard=board, wandb=run) as monitor:
        for _ in range(2):
            _closure(model, optimizer)
            optimizer.step()
    assert monitor.last is not None
    assert board.told["dtlint/grad_norm"] == (monitor.last.grad_norm, 2)
    assert run.told["dtlint/amax/0"] == monitor.last.modules["0"].amax
    assert run.told["dtlint/step"] == 2


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"model": 3}, TypeError, "the model is a int; give the nn.Module that is trained"),
        ({"optimizer": 3}, TypeError, "the optimizer is a int; give a torch.optim.Optimizer"),
        ({"scaler": 3}, TypeError, "the scaler is a int; give the loop's torch.amp.GradScaler, or none"),
        ({"every": 0}, ValueError, "every 0 is no number of steps; give 1 or more"),
        ({"modules": "attn"}, ValueError, "modules 'attn' matches no module of the model; there are: 0, 1, 2, 3"),
        ({"assume": "int8"}, ValueError, "assume 'int8' is not known; use float16 or bfloat16"),
        ({"file": "no/a.jsonl"}, ValueError, "cannot write no/a.jsonl: there is no directory no"),
        ({"tensorboard": 3}, TypeError, "tensorboard is a int; give a directory or a SummaryWriter"),
        ({"wandb": 3}, TypeError, "wandb is a int; give True or the run that wandb.init() returns"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(change: dict[str, Any], kind: Any, message: str) -> None:
    model = network()
    given: dict[str, Any] = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), 0.1), "scaler": None}
    with pytest.raises(kind) as refused:
        dtlint.Monitor(**given | change)
    assert str(refused.value) == message
    assert not [*Path().iterdir()]
