"""A bound on the error of a model's output: how it is estimated, which modules it keeps, and whether a run shows that it holds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dtlint.plan.choose import PlanError, choose
from dtlint.plan.error import Errors
from dtlint.plan.flow import Flow
from dtlint.plan.verdict import extended, verdict
from dtlint.report.plan_text import verdict_lines
from dtlint.trace.export import record_of
from dtlint.trace.merge import merge
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options
from dtlint.trace.planned import Planned
from dtlint.trace.precision_plan import Kept, Plan
from dtlint.trace.record import TraceRecord
from dtlint.trace.shadow import SHIFT, _signs
from dtlint.trace.store import load, save

BOUND = 0.01


class Variance(nn.Module):
    """Its own variance is a difference of numbers a hundred times as large: harmless in float32, hopeless in float16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x: Tensor) -> Tensor:
        h = self.layer(x) + 10
        mean = h.mean(-1, keepdim=True)
        variance = (h * h).mean(-1, keepdim=True) - mean * mean
        return (h - mean) / variance.abs().add(1e-5).sqrt()


class Scores(nn.Module):
    """Its softmax is of scores that are all near 1000, where float16 has steps of 0.5."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(-2, -1) + 1000
        return scores.softmax(-1) @ self.value(x)


class Plain(nn.Module):
    """Norms, an attention and a feed-forward of usual sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.head = nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x))


MODELS: dict[str, tuple[Callable[[], nn.Module], set[str]]] = {
    "variance": (lambda: nn.Sequential(Variance(), nn.Linear(32, 8)), {"0"}),
    "scores": (lambda: nn.Sequential(nn.LayerNorm(32), Scores()), {"1"}),
    "plain": (Plain, set()),
}
"""Each with the modules that have to be kept for an error of 1%."""

BATCH = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(1))


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[name][0]()


def training(model: nn.Module, outs: list[Tensor] | None = None) -> Callable[[], None]:
    def train() -> None:
        out = model(BATCH)
        if outs is not None:
            outs.append(out.detach())
        out.square().mean().backward()
        model.zero_grad()

    return train


def recorded(model: nn.Module, **options: Any) -> TraceRecord:
    tracer = Tracer(Options.parse(assume="float16", **options))
    with tracer:
        training(model)()
    return record_of(tracer, ["train.py"], 0)


def run_under(plan: Plan, model: nn.Module, shadow: str | None = "float32") -> tuple[TraceRecord, Tensor]:
    """Of a run of the plan: its record, and what the model gave."""
    tracer, outs = Tracer(Options(gradients=True, shadow=shadow, gains=True)), list[Tensor]()
    with tracer:
        planned = Planned(plan, tracer.sites.modules, lambda: tracer.flow.step)
        planned.install()
        training(model, outs)()
        planned.remove()
    record = record_of(tracer, ["train.py"], 0)
    record.plan = plan
    return record, outs[0]


def true_error(model: nn.Module, out: Tensor) -> float:
    """Beside what float64 gives."""
    reference = copy.deepcopy(model).double()(BATCH.double())
    return ((out.double() - reference).norm() / reference.norm()).item()


@pytest.mark.parametrize("how", ["autocast", "cast"])
@pytest.mark.parametrize("name", MODELS)
def test_a_plan_keeps_the_error_below_its_bound(name: str, how: str) -> None:
    model = made(name)
    plan = choose(recorded(model, shadow="float32"), how, max_error=BOUND)
    assert set(plan.names) == MODELS[name][1]
    assert 0 < plan.error <= BOUND
    record, out = run_under(plan, model)
    judged = verdict(record)
    assert judged.failures == []
    assert true_error(model, out) <= min(plan.error, judged.error)
    assert {reason.kind for kept in plan.keep for reason in kept.reasons} <= {"error"}


@pytest.mark.parametrize("name", ["variance", "scores"])
def test_without_a_bound_it_is_far_beyond_it_and_nothing_is_kept(name: str) -> None:
    model = made(name)
    plan = choose(recorded(model, shadow="float32"))
    assert plan.names == []
    record, out = run_under(plan, model)
    true = true_error(model, out)
    assert BOUND < true < min(plan.error, verdict(record).error)
    assert verdict(record).failures == []


@pytest.mark.parametrize("name", ["variance", "scores"])
def test_a_run_in_which_the_bound_does_not_hold_says_what_to_add(name: str) -> None:
    model = made(name)
    plan = replace(choose(recorded(model)), max_error=BOUND)
    record, _ = run_under(plan, model)
    judged = verdict(record)
    assert "of the output is up to" in judged.failures[0] and "and 0.01 is asked for" in judged.failures[0]
    assert {kept.module for kept in judged.add} == MODELS[name][1]
    again = extended(record)
    held, out = run_under(again, model)
    assert verdict(held).failures == []
    assert true_error(model, out) <= BOUND


def test_a_bound_may_be_given_to_a_run_that_tried_a_plan_without_one() -> None:
    model = made("variance")
    record, _ = run_under(choose(recorded(model)), model)
    plan = extended(record, BOUND)
    assert (plan.names, plan.max_error) == (["0"], BOUND)
    unmeasured, _ = run_under(choose(recorded(model)), model, shadow=None)
    with pytest.raises(PlanError, match=r"trace it again: dtlint trace --plan plan\.json --shadow float32"):
        extended(unmeasured, BOUND)
    bound = replace(plan, max_error=BOUND)
    assert verdict(replace(unmeasured, plan=bound)).failures == [
        "the error of the output was not measured: trace with --shadow float32"
    ]


def test_the_estimate_is_no_smaller_than_the_error_and_not_many_times_larger() -> None:
    """Of models that train as they are; with loops, convolutions, and layers that run several times."""

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.Linear(64, 32)

        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros_like(x[:, 0])
            for n in range(x.size(1)):
                state = self.cell(torch.cat([x[:, n], state], -1)).tanh()
            return state

    def mlp() -> nn.Module:
        return nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(32, 32), nn.LayerNorm(32), nn.ReLU())])

    def convolutional() -> nn.Module:
        return nn.Sequential(nn.Conv1d(16, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 8, 3), nn.GroupNorm(2, 8))

    for build in (*(build for build, _ in MODELS.values()), Recurrent, mlp, convolutional):
        torch.manual_seed(0)
        model = build()
        plan = choose(recorded(model, shadow="float32"))
        record, out = run_under(plan, model)
        true = true_error(model, out)
        for estimate in (plan.error, verdict(record).error):
            assert 1 <= estimate / true < 12, (type(model), estimate, true)


def test_gains_are_what_an_operator_does_to_a_difference() -> None:
    def program() -> None:
        x = torch.full((1000,), 100.0)
        (x - 99) * 3
        torch.exp(torch.full((1000,), 8.0))
        x.sub_(90)

    tracer = Tracer(Options.parse(assume="float16", shadow="float32"))
    with tracer:
        program()
    record = record_of(tracer, ["test"], 0)
    found = {record.entries[one.entry].op: one.gains for one in record.gains}
    assert found["sub"] == pytest.approx([100.0], rel=0.01)
    assert found["mul"] == pytest.approx([1.0], rel=0.01)
    assert found["exp"] == pytest.approx([8.0], rel=0.02)
    assert found["sub_"] == pytest.approx([10.0], rel=0.01)
    signs = _signs(torch.ones(100_000))
    assert abs(signs.mean().item()) < 0.02 and set(signs.unique().tolist()) == {-1.0, 1.0}
    assert abs((signs[1:] * signs[:-1]).mean().item()) < 0.02 and SHIFT == 2**-10


def test_what_is_assumed_is_what_the_dtype_would_do() -> None:
    x = torch.rand(1000, generator=torch.Generator().manual_seed(0))
    tracer = Tracer(Options.parse(assume="float16", shadow="float32"))
    with tracer:
        y = F.gelu(x)
    record = record_of(tracer, ["test"], 0)
    [local] = record.local
    wide = F.gelu(x.half().float()).half().double()
    assert local.error == pytest.approx(((wide - y.double()).norm() / y.double().norm()).item(), rel=1e-6)
    assert torch.equal(y, F.gelu(x)), "the program has its own results"


def test_the_random_state_and_the_results_stay_what_they_are() -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters())
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 8)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return [*losses, *(b.double().sum().item() for b in model.buffers())]

    alone = train()
    tracer, traced = Tracer(Options.parse(assume="float16", shadow="float32")), list[float]()
    with tracer:
        traced = train()
    assert traced == alone


def test_what_a_bound_needs_is_said() -> None:
    record = recorded(made("plain"))
    with pytest.raises(PlanError, match="trace it again: dtlint trace --assume float16 --shadow float32"):
        choose(record, max_error=BOUND)
    measured = recorded(made("plain"), shadow="float32")
    with pytest.raises(PlanError, match="leave out --keep-in bfloat16"):
        choose(measured, keep_in="bfloat16", max_error=BOUND)


def test_records_of_ranks_keep_the_largest_gains(tmp_path: Path) -> None:
    record = recorded(made("variance"), shadow="float32")
    save(record, tmp_path / "r.json")
    assert load(tmp_path / "r.json").gains == record.gains
    merged = merge([replace(record, rank=rank, world=2) for rank in range(2)])
    flow = Flow(merged, "autocast")
    both, one = Errors(merged), Errors(record)
    low = flow.low(())
    assert both.output(both.in_float16(low)) == pytest.approx(one.output(one.in_float16(low)))


# -- from the command line ------------------------------------------------------------------------------------------------------

TRAIN = """
import torch
from torch import nn

torch.manual_seed(0)

class Variance(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x):
        h = self.layer(x) + 10
        mean = h.mean(-1, keepdim=True)
        variance = (h * h).mean(-1, keepdim=True) - mean * mean
        return (h - mean) / variance.abs().add(1e-5).sqrt()

model = nn.Sequential(Variance(), nn.Linear(32, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(2):
    optimizer.zero_grad()
    model(torch.randn(16, 32)).square().mean().backward()
    optimizer.step()
"""


def test_a_bound_from_the_command_line(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    assert dtlint("trace", "-q", "--assume", "float16", "--shadow", "float32", "-o", "run.json", "train.py").code == 0
    report = dtlint("report", "run.json").out
    assert "Local errors that float16 would have, against float32, of " in report
    made = dtlint("plan", "run.json", "--max-error", "0.01", "-o", "plan.json")
    assert made.code == 0, made.err
    assert "1 of 3 modules kept in float32\n  0\n    `mean * mean` at train.py:15: it adds" in made.out
    assert "to the relative error of the output" in made.out
    assert "Relative error of the output: 0." in made.out and "below the 1% that is asked for" in made.out
    tried = dtlint("trace", "--plan", "plan.json", "-o", "try.json", "train.py")
    assert tried.code == 0, tried.err
    assert "relative error of the output 0." in tried.err and "at most (asked for: 1%)" in tried.err
    assert "Verified: it held in the run that was recorded" in dtlint("plan", "try.json").out
    stricter = dtlint("plan", "try.json", "--max-error", "0.0001")
    assert (stricter.code, "Not verified" in stricter.out) == (0, True)
    assert "nothing is left in float16" in dtlint("plan", "run.json", "--max-error", "1e-6").out
    for arguments, told in (
        (("plan", "run.json", "--max-error", "0"), "0.0 is not in the range x>0"),
        (("plan", "run.json", "--max-error", "x"), "is not a valid float"),
    ):
        ran = dtlint(*arguments)
        assert ran.code == 2 and told in ran.err


def test_the_screen_of_a_run_says_the_error() -> None:
    model = made("plain")
    record, _ = run_under(replace(choose(recorded(model)), keep=[Kept("head")]), model)
    [first, *_] = verdict_lines(record, verdict(record))
    assert ", relative error of the output 0." in first[0] and "% at most, with 1 of " in first[0]
