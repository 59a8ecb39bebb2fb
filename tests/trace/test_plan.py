"""Precision plans: made from a record, applied to a program, judged by its run, and given as code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dtlint.plan.choose import PlanError, choose, ran_by
from dtlint.plan.code import code
from dtlint.plan.file import load, save
from dtlint.plan.flow import Flow
from dtlint.plan.verdict import extended, verdict
from dtlint.trace.export import record_of
from dtlint.trace.mode import Tracer
from dtlint.trace.octaves import lost_at
from dtlint.trace.options import Options
from dtlint.trace.planned import Planned
from dtlint.trace.precision_plan import PLAN_SCHEMA, Kept, Plan, PlanRefused, Reason
from dtlint.trace.record import TraceRecord
from dtlint.trace.store import RecordError
from dtlint.trace.store import load as load_record

TRAIN = Path(__file__).resolve().parents[2] / "fixtures" / "train"


def recorded(program: Callable[[], Any], assume: str | None = "float16") -> TraceRecord:
    tracer = Tracer(Options.parse(assume=assume))
    with tracer:
        program()
    return record_of(tracer, ["train.py"], 0)


def run_under(plan: Plan, program: Callable[[], Any]) -> TraceRecord:
    tracer = Tracer(Options(gradients=True))
    with tracer:
        planned = Planned(plan, tracer.sites.modules, lambda: tracer.flow.step)
        planned.install()
        try:
            program()
        except PlanRefused:
            pass
        finally:
            planned.remove()
    record = record_of(tracer, ["train.py"], 0)
    record.plan, record.plan_problem = plan, planned.problem
    return record


def plan_of(keep: tuple[str, ...] = (), **others: Any) -> Plan:
    return Plan(
        **{
            "plan": PLAN_SCHEMA,
            "dtlint": "",
            "argv": ["train.py"],
            "how": "autocast",
            "keep_in": "float32",
            "device": "cpu",
            "simulated": False,
            "scale": 1.0,
            "headroom": 2.0,
            "keep": [Kept(name) for name in keep],
            "modules": 3,
            "share": 1.0,
            **others,
        }
    )


class Block(nn.Module):
    """Its scores reach `size`, its layers do not."""

    def __init__(self, size: float = 1e5) -> None:
        super().__init__()
        self.size = size
        self.before, self.after = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.before(x)
        return self.after((x * self.size) / self.size)


class Model(nn.Module):
    def __init__(self, *sizes: float) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(size) for size in sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x)
        return x


def training(model: nn.Module, steps: int = 2, weight: float = 1.0) -> Callable[[], None]:
    def train() -> None:
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            (model(torch.randn(8, 16)).pow(2).mean() * weight).backward()
            optimizer.step()

    return train


def test_a_model_that_fits_keeps_nothing() -> None:
    plan = choose(recorded(training(Model(1.0, 2.0))))
    assert plan.keep == []
    assert plan.share == 1
    assert (plan.device, plan.argv, plan.modules) == ("cpu", ["train.py"], 7)


def test_only_the_module_whose_own_operator_overflows_is_kept() -> None:
    plan = choose(recorded(training(Model(1.0, 1e6, 1.0))))
    assert plan.names == ["blocks.1"]
    (reason,) = plan.keep[0].reasons[:1]
    assert (reason.kind, reason.expression) == ("overflow", "x * self.size")
    assert reason.value > 65504
    assert plan.share == 1, "its layers are modules of their own"


def test_what_comes_near_is_kept_by_the_headroom() -> None:
    record = recorded(training(Model(3e4)))
    reach = max(entry.reach for entry in record.entries)
    assert 65504 / 4 < reach < 65504
    assert choose(record, headroom=1).names == []
    assert choose(record, headroom=4).names == ["blocks.0"]


def test_a_sum_with_float32_is_float32_and_overflows_nothing() -> None:
    """Under autocast the residual stream is float32, since a layer's float16 result is added to a float32 input."""
    record = recorded(lambda: Model(1.0)(torch.full((4, 16), 1e6)))
    plan = choose(record)
    assert plan.names == ["blocks.0.after", "blocks.0.before"], "their operands do not fit, or their results"
    flow = Flow(record, "autocast")
    (add,) = [n for n, entry in enumerate(record.entries) if entry.op == "add"]
    assert not flow.low(())[add]
    assert Flow(record, "cast").low(())[add]


def test_no_module_of_a_plan_can_be_left_out() -> None:
    """What a wide result was added to is wide: a later overflow of the sum is none."""

    class Chain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.act, self.down = nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down(self.act(self.up(x)) * 1.0)

    model = Chain()
    with torch.no_grad():
        model.up.weight.mul_(1e7)
    assert choose(recorded(lambda: model(torch.ones(4, 16)))).names == ["down", "up"]


def test_the_loss_scale_lifts_gradients_into_range() -> None:
    record = recorded(training(Model(1.0), weight=1e-6))
    plan = choose(record)
    assert plan.scale >= 2**10
    assert plan.keep == []
    scaled = Flow(record, "autocast").scaled
    gradients = [record.entries[number] for number in scaled if record.entries[number].phase == "backward"]
    assert len(gradients) > 8
    assert max(entry.reach for entry in gradients) * plan.scale * plan.headroom < 65504
    entry = max(gradients, key=lambda entry: sum(entry.tiny))
    assert lost_at(0, entry.tiny) > 0
    assert lost_at(20, entry.tiny) == 0


def test_a_scaler_of_the_programs_finds_the_scale() -> None:
    def train() -> None:
        model = Model(1.0)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(model(torch.randn(8, 16)).pow(2).mean()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert choose(recorded(train)).scale == 0


def test_a_bias_whose_gradient_is_rounding_keeps_nothing() -> None:
    """A softmax over queries and keys does not see the keys' bias: its gradient is 0 but for rounding."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (self.query(x) @ self.key(x).transpose(-1, -2)).softmax(-1) @ x

    assert choose(recorded(training(Attention()))).keep == []


def test_plan_and_run_agree_on_dtypes() -> None:
    """What the flow foretells is what a run of the plan shows, operator by operator."""
    model = Model(1.0, 1e6)
    record = recorded(training(model))
    plan = choose(record)
    low = Flow(record, "autocast").low(plan.names)
    foretold = {
        (record.places[e.place].line, record.places[e.place].module, e.op): low[n]
        for n, e in enumerate(record.entries)
        if e.phase == "forward" and e.output == "float32"
    }
    run = run_under(plan, training(model))
    ran = {
        (run.places[e.place].line, run.places[e.place].module, e.op): e.output == "float16"
        for e in run.entries
        if e.phase == "forward" and e.output in ("float16", "float32") and not e.author
    }
    common = foretold.keys() & ran.keys()
    assert len(common) > 8
    assert {key: foretold[key] for key in common} == {key: ran[key] for key in common}


def test_a_plan_that_holds() -> None:
    model = Model(1.0, 1e6)
    plan = choose(recorded(training(model)))
    record = run_under(plan, training(model))
    judged = verdict(record)
    assert (judged.failures, judged.add, judged.holds) == ([], [], True)
    assert extended(record).names == plan.names
    low = {record.places[e.place].module for e in record.entries if e.output == "float16" and e.op == "addmm"}
    assert low == {"blocks.0.before", "blocks.0.after", "blocks.1.before", "blocks.1.after"}
    wide = [e for e in record.entries if record.places[e.place].module == "blocks.1" and e.op in ("mul", "div")]
    assert {e.output for e in wide} == {"float32"}


def test_a_run_says_which_module_is_missing() -> None:
    model = Model(1.0, 1e6)
    record = run_under(plan_of(), training(model))
    judged = verdict(record)
    assert not judged.holds
    assert "`x * self.size` (mul) in blocks.1" in judged.failures[0]
    assert [kept.module for kept in judged.add] == ["blocks.1"]
    record.argv = ["train.py", "--big"]
    better = extended(record)
    assert (better.names, better.argv) == (["blocks.1"], ["train.py", "--big"])
    assert verdict(run_under(better, training(Model(1.0, 1e6)))).holds


def test_a_run_whose_scaled_gradients_overflow_takes_a_smaller_scale() -> None:
    record = run_under(plan_of(scale=2.0**23), training(Model(1.0)))
    judged = verdict(record)
    assert not judged.holds
    assert judged.add == []
    assert extended(record).scale == 2.0**19


def test_gradients_that_vanish_are_lost() -> None:
    train = training(Model(1.0), weight=1e-7)
    plan = choose(recorded(train))
    assert verdict(run_under(plan, train)).holds
    plan.scale = 1.0
    judged = verdict(run_under(plan, train))
    assert "of the gradient of blocks.0.before.weight was lost" in " ".join(judged.failures)
    assert "blocks.0.before" in [kept.module for kept in judged.add]


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_the_scale_is_divided_out_again(scale: float) -> None:
    """Where all is float32, a power of 2 changes no bit: of no leaf, in no accumulation, in no re-entrant checkpoint."""

    def gradients(plan: Plan | None) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model, extra = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), torch.ones(4, requires_grad=True)
        x = torch.randn(3, 4, requires_grad=True)

        def run() -> None:
            for _ in range(2):
                y = torch.utils.checkpoint.checkpoint(model, x * extra, use_reentrant=True)
                (y.pow(2).sum() + model[0].weight.pow(2).sum()).backward()

        run_under(plan, run) if plan is not None else run()
        return [p.grad for p in (*model.parameters(), extra, x) if p.grad is not None]

    kept = plan_of(("0", "1", "Sequential"), scale=scale)
    assert all(map(torch.equal, gradients(kept), gradients(None)))


def test_a_checkpoint_recomputes_in_the_region_of_its_forward() -> None:
    class Checkpointed(Model):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = x + torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
            return x

    for how in ("autocast", "cast"):
        record = run_under(plan_of(("blocks.1",), how=how), training(Checkpointed(1.0, 1e6)))
        assert verdict(record).failures == []


@pytest.mark.parametrize("how", ["autocast", "cast"])
def test_what_is_kept_may_be_bfloat16(how: str) -> None:
    model = Model(1.0, 1e6)
    plan = choose(recorded(training(model)), how, "bfloat16")
    record = run_under(plan, training(model))
    assert verdict(record).failures == []
    own = [e for e in record.entries if record.places[e.place].module == "blocks.1" and e.phase == "forward"]
    assert {e.output for e in own if not e.author} == ({"float32"} if how == "autocast" else {"bfloat16"})


def test_weights_are_cast_for_the_forward_and_stay_what_they_are() -> None:
    model = Model(1.0, 1e6)
    plan = choose(recorded(training(model)), "cast")
    assert plan.names == ["blocks.1"]
    weights = [id(p) for p in model.parameters()]
    record = run_under(plan, training(model))
    assert verdict(record).failures == []
    assert [id(p) for p in model.parameters()] == weights
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {e.output for e in record.entries if e.op == "addmm"} == {"float16"}


def test_a_recurrent_layer_cannot_be_lent_other_weights() -> None:
    record = run_under(plan_of(how="cast"), lambda: nn.LSTM(4, 4)(torch.randn(2, 3, 4))[0].sum().backward())
    assert record.plan_problem == (
        "the module LSTM cannot be wrapped: its weights cannot be lent in float16; plan with --how autocast"
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_cannot_be_wrapped() -> None:
    script = torch.jit.script(nn.Linear(4, 4))
    name = type(script).__name__
    record = run_under(plan_of((name,)), lambda: script(torch.ones(2, 4)))
    assert record.plan_problem == (
        f"the module {name} cannot be wrapped: it is TorchScript; trace the program without torch.jit"
    )


def test_the_code_to_paste_does_what_the_run_did() -> None:
    model = Model(1.0, 1e6)
    plan = choose(recorded(training(model)))
    x = torch.randn(8, 16)
    outs: list[torch.Tensor] = []
    run_under(plan, lambda: outs.append(model(x)))
    space: dict[str, Any] = {}
    exec(code(plan, "autocast").partition("\nscaler =")[0], space)
    space["apply_precision_plan"](model)
    assert torch.equal(model(x), outs[0])
    assert code(plan, "names") == "blocks.1\n"
    compile(code(choose(recorded(training(Model(1e6))), "cast"), "fsdp2"), "plan", "exec")
    with pytest.raises(ValueError, match="make it with --how cast"):
        code(plan, "fsdp2")


def test_code_names_modules_as_python_does() -> None:
    plan = choose(recorded(training(Model(1e6))), "autocast")
    plan.keep = [Kept('blocks.a"b\\')]
    space: dict[str, Any] = {}
    exec(code(plan, "autocast").partition("\nscaler =")[0], space)
    assert space["KEEP"] == {'blocks.a"b\\'}


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = choose(recorded(training(Model(1.0, 1e6))))
    plan.keep[0].reasons.append(Reason("non-finite", float("inf"), "a.py", 1, "x", "mul"))
    save(plan, tmp_path / "plan.json")
    assert load(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"plan": PLAN_SCHEMA + 1}, "newer than this dtlint reads"),
        ({"plan": None}, "is not a plan; make one: dtlint plan RUN.json"),
        ({"keep": 1}, "is a damaged plan"),
        ({"how": "magic"}, "is a damaged plan"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    file = tmp_path / "plan.json"
    save(plan_of(), file)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(RecordError, match=re.escape(told)):
        load(file)


def test_records_that_no_plan_can_be_made_from() -> None:
    with pytest.raises(PlanError, match="not traced with --assume float16; trace it again"):
        choose(recorded(training(Model(1.0)), assume=None))
    record = recorded(training(Model(1.0)))
    for entry in record.entries:
        for operand in entry.inputs:
            operand.maker = None
    with pytest.raises(PlanError, match="by an older dtlint"):
        choose(record)
    record.exit_code, record.entries = 1, [e for e in record.entries if not record.places[e.place].module]
    with pytest.raises(PlanError, match="ended with exit code 1 before a model ran"):
        choose(record)
    with pytest.raises(PlanError, match="the run itself has inf or NaN"):
        choose(recorded(training(Model(1e39))))


# -- from the command line ------------------------------------------------------------------------------------------------------


def in_float32(name: str) -> str:
    """A program of the fixtures, which all run in half, as it would be in float32."""
    source = (TRAIN / name).read_text()
    source = source.replace("torch.float16", "torch.float32").replace(".half()", "")
    return re.sub(r'(autocast\(device_type="cuda"|GradScaler\("cuda")', r"\1, enabled=False", source)


@pytest.mark.parametrize(
    ("name", "steps", "how", "kept"),
    [
        ("exploding_logits.py", 6, "autocast", {"TwoTowers"}),
        ("rms_norm_half.py", 3, "autocast", set()),
        ("rms_norm_half.py", 3, "cast", {"blocks.0.norm", "blocks.1.norm", "norm"}),
        ("pretrained_half.py", 3, "autocast", set()),
        ("transformer_mask.py", 4, "autocast", set()),
        ("exploding_logits_cuda.py", 2, "autocast", {"attention"}),
    ],
)
def test_a_program_that_overflows_in_float16_does_not_under_its_plan(
    dtlint: Callable[..., Any], tmp_path: Path, name: str, steps: int, how: str, kept: set[str]
) -> None:
    (tmp_path / "train.py").write_text(in_float32(name))
    device = ["--simulate", "cuda"] if "cuda" in name else []
    script = ["train.py", "--steps", str(steps)]
    wide = dtlint("trace", *device, "--assume", "float16", "-q", "-o", "run.json", *script)
    assert wide.code == 0, wide.err
    planned = dtlint("plan", "run.json", "--how", how, "-o", "plan.json")
    assert planned.code == 0, planned.err
    command = " ".join(["dtlint trace --plan plan.json", *device, *script])
    assert f"Not verified: no run of it was seen. To verify it:\n  {command}\n" in planned.out
    tried = dtlint("trace", *device, "--plan", "plan.json", "-o", "try.json", *script)
    if tried.code:  # what only a run can show is added from its record
        assert "The plan does not hold" in tried.err
        assert dtlint("plan", "try.json", "-o", "plan.json").code == 0
        tried = dtlint("trace", *device, "--plan", "plan.json", *script)
    else:
        assert "\nVerified: it held in the run that was recorded\n" in dtlint("plan", "try.json").out
    assert "The plan holds in this run: no overflow, no lost gradient" in tried.err
    assert tried.code == 0
    assert set(load(tmp_path / "plan.json").names) == kept
    losses = [[float(loss) for loss in re.findall(r"loss (\S+)", run.out)] for run in (wide, tried)]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_a_plan_of_another_model_is_refused_and_nothing_written(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\ntorch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()\n")
    save(plan_of(("layers.0", "layers.1")), tmp_path / "plan.json")
    ran = dtlint("trace", "--plan", "plan.json", "-o", "try.json", "train.py")
    assert ran.code == 2
    assert ran.err == (
        "dtlint trace: --plan: no module that ran is called layers.0 and 1 more: the plan is of another model; make a new one\n"
    )
    assert not (tmp_path / "try.json").exists()


TRAINING = """
import torch
from torch import nn

first, second = nn.Sequential(nn.Linear(4, 4)), nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
for model in (first, second):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        model(torch.ones(2, 4)).sum().backward()
        try:
            optimizer.step()
        except Exception:
            print("caught")
        print("trained", flush=True)
"""


def test_a_plan_of_another_model_ends_the_program_before_it_trains(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    save(plan_of(("blocks.0",)), tmp_path / "plan.json")
    ran = dtlint("trace", "--plan", "plan.json", "-o", "try.json", "--report-file", "try.txt", "train.py")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "dtlint trace: --plan: no module is called blocks.0: the plan is of another model; make a new one\n"
    )
    assert not list(tmp_path.glob("try.*"))


def test_a_module_that_runs_later_is_waited_for(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("Linear(4, 4))\n", "Linear(4, 4), nn.ReLU())\n"))
    assert dtlint("trace", "-q", "--assume", "float16", "-o", "run.json", "train.py").code == 0
    run = load_record(tmp_path / "run.json")
    assert [ran_by(run, module) for module in ("0", "1", "2")] == [0, 2, 2]
    save(replace(plan_of(), keep=[Kept("2", step=2)]), tmp_path / "plan.json")
    ran = dtlint("trace", "-q", "--plan", "plan.json", "train.py")
    assert (ran.code, ran.out) == (0, "trained\n" * 4)
    save(replace(plan_of(), keep=[Kept("3", step=2)]), tmp_path / "plan.json")
    ran = dtlint("trace", "-q", "--plan", "plan.json", "train.py")
    assert (ran.code, ran.out) == (2, "trained\n" * 2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_module_that_cannot_be_wrapped_ends_the_program_as_it_is_called(
    dtlint: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmodel = torch.nn.LSTM(4, 4)\nprint('made', flush=True)\nmodel(torch.ones(2, 3, 4))\nprint('ran')\n"
    )
    save(plan_of(how="cast"), tmp_path / "plan.json")
    ran = dtlint("trace", "--plan", "plan.json", "-o", "try.json", "train.py")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "made\n", 1)
    assert "the module LSTM cannot be wrapped" in ran.err
    assert not (tmp_path / "try.json").exists()


def test_wrong_usage_is_one_line(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\n\ntorch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()\n")
    assert dtlint("trace", "-q", "-o", "run.json", "train.py").code == 0
    save(plan_of(), tmp_path / "plan.json")
    for arguments, told in (
        (("plan", "run.json", "-o", "new.json"), "run.json: the run was not traced with --assume float16"),
        (("plan", "plan.json"), "plan.json is not a trace record"),
        (("plan", "missing.json"), "cannot read missing.json"),
        (("plan", "run.json", "-o", "run.json"), "would overwrite the record"),
        (("trace", "--plan", "run.json", "train.py"), "run.json is not a plan; make one"),
        (("trace", "--plan", "plan.json", "--assume", "float16", "train.py"), "leave out --assume"),
        (("trace", "--plan", "plan.json", "-o", "plan.json", "train.py"), "would overwrite the plan"),
    ):
        ran = dtlint(*arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), arguments
        assert told in ran.err
    assert not (tmp_path / "new.json").exists()
