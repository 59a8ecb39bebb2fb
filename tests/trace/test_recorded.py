"""What a record holds besides non-finite values: loss to zero, near misses, weights, memory, skips, errors, collectives."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.nn as nn

import dtlint
from dtlint.diagnostic import Severity
from dtlint.report.trace_text import write_trace
from dtlint.trace.balance import kept_wide, share_low, wide_work, work
from dtlint.trace.export import record_of
from dtlint.trace.judge import judge
from dtlint.trace.lost import due
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import Entry
from dtlint.trace.slots import SLOTS

Trace = Callable[[Callable[[], Any]], TraceRecord]
HALF, BRAIN = torch.float16, torch.bfloat16


def assumed(function: Callable[[], Any]) -> TraceRecord:
    tracer = Tracer(Options(assume="float16"))
    with tracer:
        function()
    return record_of(tracer, ["test"], 0)


def entry_of(record: TraceRecord, op: str, phase: str = "forward") -> Entry:
    (found,) = [entry for entry in record.entries if entry.op == op and entry.phase == phase]
    return found


def codes(record: TraceRecord) -> list[str]:
    return [f"{d.severity.value} {d.code}" for d in judge(record)]


def everything(record: TraceRecord) -> str:
    out = io.StringIO()
    write_trace(record, judge(record), out, everything=True)
    return out.getvalue()


# -- lost to zero -----------------------------------------------------------------------------------------------------


def test_the_share_of_values_that_a_cast_turns_into_zero(trace: Trace) -> None:
    x = torch.tensor([0.0, 1.0, 1e-8, -1e-9]).repeat(64)  # what was 0 is not lost

    def program() -> None:
        x.half()
        x.bfloat16()  # of float32's range

    record = trace(program)
    half, brain = [entry for entry in record.entries if entry.author]
    assert (half.sampled, half.lost) == (192, 128)
    assert half.share_lost == pytest.approx(2 / 3)
    assert (brain.sampled, brain.lost) == (0, 0)
    assert codes(record) == ["info DT910"]


def test_early_calls_are_sampled_more_densely_than_late_ones() -> None:
    assert [count for count in range(1, 200) if due(count)] == [1, 2, 4, 8, 16, 32, 64, 128, 192]


def test_gradients_that_a_cast_loses_are_a_warning(trace: Trace) -> None:
    def program() -> None:
        x = torch.ones(8, 16, dtype=HALF, requires_grad=True)
        (x.float() * 1e-9).sum().backward()

    record = trace(program)
    (cast,) = [entry for entry in record.entries if entry.author == "backward"]
    assert (cast.output, cast.share_lost) == ("float16", 1.0)
    assert codes(record) == ["warning DT910"]


# -- near misses ------------------------------------------------------------------------------------------------------


def half_mask_added() -> None:
    mask = torch.zeros(8, 8, dtype=HALF).masked_fill(torch.ones(8, 8).triu(1).bool(), torch.finfo(HALF).min / 2)
    (torch.randn(8, 8).half() + mask).softmax(-1)


def half_mask_multiplied() -> None:
    keep = torch.ones(8, 8, dtype=HALF).tril()
    ((1.0 - keep) * -60000.0 + torch.randn(8, 8).half()).softmax(-1)


FROM_BEFORE = torch.zeros(8, 8, dtype=HALF).masked_fill(torch.ones(8, 8).triu(1).bool(), -60000.0)


def half_mask_from_before() -> None:
    (torch.randn(8, 8).half() + FROM_BEFORE).softmax(-1)


@pytest.mark.parametrize("program", [half_mask_added, half_mask_multiplied, half_mask_from_before])
def test_what_bars_positions_is_no_near_miss(program: Callable[[], None], trace: Trace) -> None:
    record = trace(program)
    assert max(entry.reach for entry in record.entries) < 10
    assert codes(record) == []


def test_a_bound_bars_nothing(trace: Trace) -> None:
    def program() -> None:
        x = torch.full((4,), -200.0).half()
        (x.clamp(min=-1000.0) * 200.0).log()

    assert entry_of(trace(program), "mul").reach == 40_000


def test_what_is_large_on_its_own_is_one(trace: Trace) -> None:
    def program() -> None:
        x = torch.full((4,), -200.0).half()
        (x * 200.0 + 1.0).abs().log()

    record = trace(program)
    assert entry_of(record, "mul").reach == 40_000
    assert codes(record) == ["warning DT911"]


def test_gradients_under_a_scaler_are_held_high_on_purpose(trace: Trace) -> None:
    def program() -> None:
        layer = nn.Linear(4, 1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**15)
        with torch.autocast("cpu", dtype=HALF):
            loss = layer(torch.ones(1, 4)).float().sum() * 1.5
        scaler.scale(loss).backward()
        optimizer = torch.optim.SGD(layer.parameters(), lr=1e-3)
        scaler.step(optimizer)
        scaler.update()

    record = trace(program)
    assert max(entry.reach for entry in record.entries if entry.output == "float16") > 0.5 * 65504
    assert codes(record) == []


def test_assuming_float16_tells_what_would_not_fit_it() -> None:
    def program() -> None:
        x = torch.full((16, 16), 300.0)
        x.square().mean().item()
        (x * 1e-12).sum()

    record = assumed(program)
    assert record.assume == "float16"
    told = {d.code: d.message for d in judge(record)}
    assert "pow reaches 90000 in float32: 137% of float16's limit of 65504" in told["DT911"]
    assert "100% of the values of mul would be 0 in float16" in told["DT910"]
    assert "Would not fit float16:" in everything(record)


def test_assuming_float16_knows_what_autocast_would_keep_in_float32() -> None:
    record = assumed(lambda: torch.full((4,), 12.0).exp())
    (found,) = judge(record)
    assert (found.code, found.severity.value) == ("DT911", "info")
    assert "though autocast on CUDA would keep it in float32" in found.message


def test_without_the_question_nothing_is_said_of_float16(trace: Trace) -> None:
    record = trace(lambda: torch.full((16, 16), 300.0).square().mean() * 1e-12)
    assert [entry.sampled for entry in record.entries] == [0] * len(record.entries)
    assert codes(record) == []


# -- integers and the balance of work ---------------------------------------------------------------------------------


def test_integers_that_become_floats_are_recorded_and_are_no_finding(trace: Trace) -> None:
    record = trace(lambda: (torch.arange(4) / 2, torch.arange(4) * 0.5, torch.arange(4) + 1, torch.arange(4).float()))
    assert [e.op for e in record.entries if e.finding == "int-to-float"] == ["div", "mul"]
    assert codes(record) == []
    assert "int64 to float32 in div" in everything(record)


def test_the_balance_of_work_and_why_some_of_it_is_wide(trace: Trace) -> None:
    encoder, head = nn.Linear(64, 64), nn.Linear(64, 64)

    def program() -> None:
        features = encoder(torch.randn(8, 64))  # before autocast
        with torch.autocast("cpu", dtype=BRAIN):
            y = head(features)
            torch.mm(torch.randn(8, 8, dtype=torch.float64), torch.randn(8, 8, dtype=torch.float64))
            nn.functional.layer_norm(y, (64,)).float().sum().backward()

    record = trace(program)
    flops = work(record)
    assert share_low(record) == pytest.approx(flops["bfloat16"] / flops.total())
    assert [(wide.entry.op, wide.why) for wide in wide_work(record)] == [
        ("addmm", "autocast was off there"),
        ("mm", "autocast leaves float64 operands as they are"),
    ]


def attention() -> None:
    layer = nn.Linear(16, 48)
    with torch.autocast("cpu", dtype=BRAIN):
        q, k, v = layer(torch.randn(1, 2, 4, 16)).chunk(3, -1)
        mask = torch.ones(4, 4, dtype=torch.bool).tril()
        nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1).float().sum().backward()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 keeps no columns")
def test_operators_within_attention_are_told_as_such(trace: Trace) -> None:
    record = trace(attention)
    inner = [e for e in record.entries if e.op == "bmm" and e.phase == "forward"]
    assert {e.inside for e in inner} == {"scaled_dot_product_attention"}
    assert [wide.why for wide in wide_work(record)] == ["scaled_dot_product_attention computes so within on CPUs"]
    assert kept_wide(record) == []
    assert "DT905" not in codes(record)
    authors = [e.author for e in record.entries if e.place == inner[0].place and e.author and e.phase == "forward"]
    assert set(authors) == {"implicit"}
    record.simulated = "cuda"
    assert wide_work(record)[0].why.endswith("within on CPUs, which is not the path of a GPU")


def test_autocast_is_blamed_only_for_what_its_lists_hold(trace: Trace) -> None:
    def program() -> None:
        x, state = torch.randn(2, 4), torch.randn(2, 4)
        with torch.autocast("cpu", dtype=BRAIN):
            torch.mm(x, x.t(), out=torch.empty(2, 2))
            torch.nn.GRUCell(4, 4)(x, state)

    record = trace(program)
    assert "autocast does not cover" not in everything(record)


def test_a_training_in_float32_whose_evaluation_is_autocast_is_left_alone(trace: Trace) -> None:
    def program() -> None:
        layer = nn.Linear(64, 64)
        layer(torch.randn(8, 64)).sum().backward()
        with torch.no_grad(), torch.autocast("cpu", dtype=BRAIN):
            layer(torch.randn(8, 64))

    assert "DT913" not in "".join(codes(trace(program)))


def test_what_autocast_keeps_in_float32(trace: Trace) -> None:
    def program() -> None:
        with torch.autocast("cpu", dtype=BRAIN):
            y = nn.Linear(4, 4)(torch.ones(2, 4))
            nn.functional.mse_loss(y, torch.ones(2, 4))

    record = trace(program)
    assert [(kept.op, kept.count) for kept in kept_wide(record)] == [("mse_loss", 1)]


def test_what_reads_the_result_of_such_an_operator_on_the_same_line_is_not_kept(trace: Trace) -> None:
    def program() -> None:
        with torch.autocast("cpu", dtype=BRAIN):
            y = nn.Linear(4, 4)(torch.ones(2, 4))
            nn.functional.mse_loss(y, torch.ones(2, 4), reduction="none") * 2

    record = trace(program)
    assert [kept.op for kept in kept_wide(record)] == ["mse_loss"]


# -- the optimizer ----------------------------------------------------------------------------------------------------


def train(layer: nn.Module, optimizer: torch.optim.Optimizer, dtype: torch.dtype, steps: int = 4) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        layer(torch.ones(4, 16, dtype=dtype)).float().pow(2).mean().backward()
        optimizer.step()


def test_weights_are_told_with_their_dtypes(trace: Trace) -> None:
    layer = nn.Linear(16, 16)
    record = trace(lambda: train(layer, torch.optim.Adam(layer.parameters()), torch.float32))
    weight, bias = record.weights
    assert (weight.name, weight.shape) == ("Linear.weight", [16, 16])
    assert (weight.dtype, weight.gradient, weight.states) == ("float32", "float32", ["float32"])
    assert (bias.name, bias.checked) == ("Linear.bias", 0)
    assert "2 weights in float32, gradients in float32, optimizer states in float32" in everything(record)


def test_weights_that_round_back_to_where_they_were_are_stuck(trace: Trace) -> None:
    layer = nn.Linear(16, 16).to(BRAIN)
    record = trace(lambda: train(layer, torch.optim.Adam(layer.parameters(), lr=1e-6), BRAIN))
    weight = record.weights[0]
    assert weight.checked == 3 * 256, "steps 1, 2 and 4 are looked at, and every value has a gradient"
    assert weight.share_stuck > 0.9
    assert codes(record) == ["warning DT912"]


@pytest.mark.parametrize("rate", [1e-1, 0.0])
def test_weights_that_move_or_are_not_meant_to_are_not(rate: float, trace: Trace) -> None:
    layer = nn.Linear(16, 16).to(BRAIN)
    record = trace(lambda: train(layer, torch.optim.Adam(layer.parameters(), lr=rate), BRAIN))
    assert codes(record) == []


class WithMaster(torch.optim.SGD):
    """Keeps a float32 copy of each weight, and rounds it into the weight."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                copy = state.setdefault("copy", p.detach().float())
                copy.sub_(p.grad.float(), alpha=group["lr"])
                p.copy_(copy)


def test_a_bias_whose_gradient_is_rounding_alone_is_not_stuck(trace: Trace) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = (self.q(x) @ self.k(x).transpose(-1, -2)).softmax(-1)
            return y

    model = Attention().to(BRAIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

    def program() -> None:
        for _ in range(4):
            optimizer.zero_grad()
            (model(torch.randn(2, 16, 64, dtype=BRAIN)) * torch.randn(16, dtype=BRAIN)).float().sum().backward()
            optimizer.step()

    record = trace(program)
    weights = {weight.name.rpartition("Attention.")[2]: weight for weight in record.weights}
    assert weights["k.bias"].checked < 64 < weights["q.bias"].checked
    assert codes(record) == []


def test_weights_of_which_the_gradients_were_not_finite_are_not_told_to_be_stuck(trace: Trace) -> None:
    layer = nn.Linear(16, 16).to(BRAIN)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1e-6)

    def program() -> None:
        train(layer, optimizer, BRAIN)
        layer(torch.ones(4, 16, dtype=BRAIN)).sub(3).sqrt().float().sum().backward()

    assert codes(trace(program)) == ["error DT902"]


def test_weights_that_have_a_float32_copy_are_not_stuck(trace: Trace) -> None:
    layer = nn.Linear(16, 16).to(BRAIN)
    record = trace(lambda: train(layer, WithMaster(layer.parameters(), lr=1e-6), BRAIN))
    assert record.weights[0].states == ["float32"]
    assert (record.weights[0].checked, record.weights[0].stuck) == (3 * 256, 0)


def test_a_weight_without_a_gradient_may_stay(trace: Trace) -> None:
    embedding = nn.Embedding(64, 16).to(BRAIN)

    def program() -> None:
        optimizer = torch.optim.SGD(embedding.parameters(), lr=1.0)
        for _ in range(4):
            optimizer.zero_grad()
            embedding(torch.tensor([3])).float().sum().backward()  # one row of 64
            optimizer.step()

    record = trace(program)
    assert record.weights[0].checked == 3 * 16
    assert record.weights[0].stuck == 0


def test_memory_by_dtype(trace: Trace) -> None:
    layer = nn.Linear(16, 16)
    frozen = nn.Linear(16, 16, bias=False).half().requires_grad_(False)

    def program() -> None:
        optimizer = torch.optim.Adam(layer.parameters())
        frozen(torch.ones(1, 16, dtype=HALF))
        train(layer, optimizer, torch.float32)

    held = {(memory.what, memory.dtype): memory.nbytes for memory in trace(program).memory}
    parameters = 4 * (256 + 16)
    assert held["parameters", "float32"] == parameters
    assert held["parameters", "float16"] == 2 * 256
    assert held["gradients", "float32"] == parameters
    assert held["optimizer states", "float32"] == 2 * parameters
    assert 4 * 4 * 16 <= held["activations", "float32"] < 4 * parameters


def test_each_skip_has_its_step_and_its_culprit(trace: Trace) -> None:
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def program() -> None:
        for step in range(4):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=HALF):
                loss = layer(torch.ones(2, 4)).float().pow(2).sum()
            if step == 2:
                loss = loss * 3e38 * 3e38
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    record = trace(program)
    assert record.scaler is not None
    (skip,) = record.scaler.skips
    assert skip.step == 2
    assert skip.event is not None
    assert record.what(record.events[skip.event]).startswith("`loss * 3e38")
    assert (record.scaler.scale, record.scaler.lowest) == (512.0, 512.0)
    assert "step 3 was skipped because of `loss * 3e38" in everything(record)


def skips_of(record: TraceRecord) -> list[tuple[int, str]]:
    """Each skipped step, and the expression that is said to be behind it."""
    assert record.scaler is not None
    at = [(skip.step, None if skip.event is None else record.events[skip.event].place) for skip in record.scaler.skips]
    return [(step, "" if place is None else record.places[place].expression) for step, place in at]


@pytest.mark.parametrize("marked", [False, True])
def test_each_skip_is_put_down_to_its_own_step(trace: Callable[[Callable[[], Any]], TraceRecord], marked: bool) -> None:
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def program() -> None:
        for step in range(6):
            optimizer.zero_grad()
            loss = layer(torch.ones(2, 4)).pow(2).sum()
            if step == 1:
                loss = loss * 3e38 * 3e38
            elif step in (2, 4):
                loss = loss / torch.zeros(())
            scaler.scale(loss).backward()
            if step == 5:
                layer.weight.grad = None if layer.weight.grad is None else layer.weight.grad.fill_(math.inf)
            scaler.step(optimizer)
            scaler.update()
            if marked:
                dtlint.step()

    record = trace(program)
    division = "loss / torch.zeros(())"
    assert skips_of(record) == [(1, "loss * 3e38"), (2, division), (4, division), (5, "")]


def test_of_two_optimizers_that_take_turns_each_skip_is_put_down_to_what_ran_before_it(
    trace: Callable[[Callable[[], Any]], TraceRecord],
) -> None:
    one, other = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizers = [torch.optim.SGD(layer.parameters(), lr=0.01) for layer in (one, other)]
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def program() -> None:
        for step in range(4):
            for optimizer in optimizers:
                optimizer.zero_grad()
            scaler.scale(one(torch.ones(2, 4)).pow(2).sum()).backward()
            scaler.step(optimizers[0])
            loss = other(torch.ones(2, 4)).pow(2).sum()
            if step == 1:
                loss = loss * 3e38 * 3e38
            elif step == 2:
                loss = loss / torch.zeros(())
            scaler.scale(loss).backward()
            scaler.step(optimizers[1])
            scaler.update()

    assert [expression for _, expression in skips_of(trace(program))] == ["loss * 3e38", "loss / torch.zeros(())"]


# -- dtype errors -----------------------------------------------------------------------------------------------------


def refused(program: Callable[[], Any]) -> tuple[TraceRecord, str]:
    tracer = Tracer()
    with pytest.raises(RuntimeError) as caught, tracer:
        program()
    return record_of(tracer, ["test"], 1), "\n".join(getattr(caught.value, "__notes__", []))


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.gain = torch.ones(4)  # no buffer: .half() leaves it

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.gain
        return self.fc(x)


def test_a_dtype_error_says_where_each_operand_s_dtype_came_from() -> None:
    model = Scaled().half()
    record, note = refused(lambda: model(torch.ones(2, 4, dtype=HALF)))
    (error,) = record.errors
    assert (error.op, error.arguments, error.fatal) == ("addmm", ["self", "mat1", "mat2"], True)
    assert "mat1 is float32, from `x * self.gain`" in note
    assert "mat2 is float16, parameter fc.weight" in note
    (found,) = [d for d in judge(record) if d.code == "DT914"]
    assert found.severity.value == "error"
    assert found.location.span.line == Scaled.forward.__code__.co_firstlineno + 2
    assert "The program ended by a dtype error:" in everything(record)


def test_an_error_that_torch_raises_before_any_operator_is_explained_too() -> None:
    model = nn.Conv2d(3, 3, 3)
    record, note = refused(lambda: model(torch.ones(1, 3, 8, 8).half()))
    (error,) = record.errors
    assert (error.op, error.arguments, error.fatal) == ("conv2d", ["input", "weight", "bias"], True)
    assert "input is float16, from `torch.ones(1, 3, 8, 8).half()`" in note


def test_a_number_that_does_not_fit_is_told_with_the_line_that_made_the_operand_half() -> None:
    def program() -> None:
        scores = torch.ones(4, 4) @ torch.ones(4, 4)
        halves = scores.half()
        halves.masked_fill(torch.ones(4, 4).bool(), -1e9)

    record, note = refused(program)
    (error,) = record.errors
    assert (error.op, error.arguments, error.fatal) == ("masked_fill", ["self"], True), "the mask has no part in it"
    assert (
        note
        == "dtlint: in masked_fill, self is float16, from `scores.half()` at tests/trace/test_recorded.py:"
        + str(program.__code__.co_firstlineno + 2)
    )
    (found,) = [d for d in judge(record) if d.code == "DT914"]
    assert found.message.startswith("masked_fill was given a number beyond the range of its dtype: self is float16")
    assert "torch.finfo" in str(found.help)


def test_an_index_s_origin_is_not_followed_rather_than_outside() -> None:
    record, note = refused(lambda: torch.ones(4).double().index_add_(0, torch.ones(2).long(), torch.ones(2)))
    assert "index is int64, of an origin not followed" in note
    (found,) = [d for d in judge(record) if d.code == "DT914"]
    assert "index is int64, from values whose origin was not followed" in found.message


def test_an_error_that_the_program_caught_is_information(trace: Trace) -> None:
    def program() -> None:
        for _ in range(3):
            with pytest.raises(RuntimeError):
                torch.mm(torch.ones(2, 2).half(), torch.ones(2, 2))

    record = trace(program)
    assert [(error.count, error.fatal) for error in record.errors] == [(3, False)]
    assert codes(record) == ["info DT914"]


@pytest.mark.parametrize(
    "program",
    [
        lambda: torch.mm(torch.ones(2, 3), torch.ones(2, 3)),
        lambda: torch.ones(2).half().view(3),
        lambda: (torch.ones(2).half(), torch.ones(2)[torch.tensor([5])]),
    ],
    ids=["shapes", "a view", "an index"],
)
def test_other_errors_are_left_alone(program: Callable[[], Any], trace: Trace) -> None:
    with pytest.raises((RuntimeError, IndexError)) as caught:
        trace(program)
    assert not hasattr(caught.value, "__notes__")


def test_work_of_autograd_for_a_line_before_the_trace_has_no_line_number(trace: Trace) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=20))
    try:
        weight = torch.ones(4, requires_grad=True)
        loss = (weight * 2).sum()
        weight.register_hook(dist.all_reduce)
        record = trace(loss.backward)
    finally:
        dist.destroy_process_group()
    assert "at a place in autograd" in everything(record) and "<autograd>" not in everything(record)


# -- what is born where -----------------------------------------------------------------------------------------------


def test_a_nan_of_the_forward_is_told_before_that_of_its_backward(trace: Trace) -> None:
    """The entropy of a distribution with barred actions: 0 * -inf, a common accident."""

    def program() -> None:
        barred = torch.tensor([True, False, False])
        logits = torch.zeros(3, requires_grad=True)
        log_p = logits.masked_fill(barred, -math.inf).log_softmax(-1)
        entropy = -(log_p.exp() * log_p).sum()
        entropy.backward()
        entropy.item()

    (found,) = [d for d in judge(trace(program)) if d.code == "DT902"]
    assert found.message.startswith("`log_p.exp() * log_p` (mul) gave NaN from inputs in [0, 0.5] and [-inf, -0.6931]")
    assert ", with inf from `logits.masked_fill(barred, -math.inf)`" in found.message


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_collectives_are_told_with_their_dtype_and_bytes(trace: Trace) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=20))
    try:
        record = trace(lambda: (dist.all_reduce(torch.ones(8, dtype=BRAIN)), dist.all_reduce(torch.ones(4))))
    finally:
        dist.destroy_process_group()
    found = [(e.op, e.inputs[0].dtype, e.nbytes) for e in record.entries if e.op.startswith("c10d::")]
    assert found == [("c10d::allreduce_", "bfloat16", 16), ("c10d::allreduce_", "float32", 16)]
    assert "c10d::allreduce_ of bfloat16" in everything(record)


def test_what_a_collective_brought_is_named(trace: Trace) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=20))
    x = torch.full((4,), 2.0)

    def program() -> None:
        dist.all_reduce(x)
        x.numpy()[0] = float("nan")  # as another rank's NaN would arrive
        (x * 2).sum()

    try:
        record = trace(program)
    finally:
        dist.destroy_process_group()
    (event,) = record.events
    assert (event.kind, event.brought) == ("came-in", "c10d::allreduce_")
    assert "what c10d::allreduce_ brought held NaN when" in judge(record)[0].message


def test_what_was_not_seen_has_a_place_and_what_is_by_design_is_no_finding(trace: Trace) -> None:
    def program() -> None:
        torch.eye(4).to_sparse() * 2.0

    record = trace(program)
    (unseen,) = record.unseen
    assert unseen.place is not None
    assert record.places[unseen.place].line == program.__code__.co_firstlineno + 1
    layer = nn.Linear(16, 16)
    trained = trace(lambda: train(layer, torch.optim.SGD(layer.parameters(), lr=0.1), torch.float32))
    assert [unseen.by_design for unseen in trained.unseen] == [True]
    assert codes(trained) == []


def test_a_weight_that_came_in_bad_is_named(trace: Trace) -> None:
    layer = nn.Linear(4, 4)
    with torch.no_grad():
        layer.weight[0, 0] = float("nan")
    record = trace(lambda: layer(torch.randn(2, 4)).sum().item())
    assert judge(record)[0].message.startswith("parameter Linear.weight held NaN in 1 of 16 values when")


def test_the_report_shows_everything_if_asked(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text("import torch\nx = torch.ones(64, 64).half()\n(x.float() + 1).sum()\n")
    short = dtlint("trace", "--output", "t.json", "script.py").err
    ran = dtlint("report", "--all", "t.json")
    assert ran.code == 0
    assert ran.out.startswith(short.removesuffix("dtlint: wrote the record t.json\n"))
    assert "\nCasts\n  float32 to float16 at script.py:2; asked, once, 0.0246 MB\n" in ran.out


def test_a_list_that_grows_adds_no_signatures(trace: Trace) -> None:
    def program() -> None:
        seen: list[torch.Tensor] = []
        for _ in range(50):
            seen.append(torch.ones(2))
            torch.cat(seen)

    record = trace(program)
    assert entry_of(record, "cat").count == 50


def test_inference_mode_hides_no_casts(trace: Trace) -> None:
    """There `to` and `linear` come whole, and not as the operators that they are made of."""
    layer = nn.Linear(8, 8)

    def program() -> None:
        with torch.inference_mode():
            x = torch.ones(2, 8).half()
            y = x.float().pow(2)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                layer(y)
            x * torch.rsqrt(y)

    record = trace(program)
    casts = [(entry.author, entry.inputs[-1].dtype, entry.output) for entry in record.entries if entry.author]
    assert casts[:2] == [("asked", "float32", "float16"), ("asked", "float16", "float32")]
    assert {author for author, *_ in casts[2:]} == {"autocast"}
    assert [entry.output for entry in record.entries if entry.flops] == ["bfloat16"]
    (promotion,) = [d for d in judge(record) if d.code == "DT905"]
    assert promotion.severity is Severity.INFO  # the program cast that operand itself
    assert "`x.float()`" in promotion.message


def test_a_report_says_what_it_did_not_look_for(tmp_path: Path, dtlint: Callable[..., Any]) -> None:
    (tmp_path / "script.py").write_text("import torch\nx = torch.ones(9).half() * 60000\nx.float() * x * 2\n")
    ran = dtlint("trace", "--only", "dtypes", "script.py")
    assert "Non-finite values: not looked for, as only dtypes were traced" in ran.err
    assert "Casts: 2 in all: 2 asked for by the program" in ran.err
    assert "Not seen" not in ran.err
    ran = dtlint("trace", "--watch", "float32", "script.py")
    assert "Non-finite values: none in float32 that the program did not mean" in ran.err


# -- where dtypes come from -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wide", "told"), [((1, 1), False), ((1, 0), True)], ids=["one origin", "two origins"])
def test_an_operand_whose_dtype_comes_from_several_lines(wide: tuple[int, int], told: bool, trace: Trace) -> None:
    def program() -> None:
        x = torch.ones(4).half() * 1
        for which in wide:
            other = x.float() if which else torch.zeros(4) + 1
            x * other

    record = trace(program)
    (promotion,) = [d for d in judge(record) if d.code == "DT905"]
    assert "`x.float()` at " in promotion.message
    assert (", among others" in promotion.message) is told
    assert [operand.varies for operand in entry_of_promotion(record).inputs] == [False, told]


def entry_of_promotion(record: TraceRecord) -> Entry:
    (found,) = [entry for entry in record.entries if entry.finding == "promoted"]
    return found


def test_a_line_of_an_installed_package_is_told_from_the_package_on(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "lib" / "site-packages" / "nets" / "layers.py"
    file.parent.mkdir(parents=True)
    file.write_text("import torch\ny = torch.full((3,), 1e5).half() * 1\n")
    record = trace(lambda: exec(compile(file.read_text(), str(file), "exec"), {}))
    assert "warning[DT901] nets/layers.py:2, called from " in everything(record)
    assert str(tmp_path) not in everything(record)
    assert {place.file for place in record.places} == {str(file)}
    assert {d.location.path for d in judge(record)} == {str(file)}


@pytest.mark.parametrize("count", [SLOTS - 2, SLOTS - 1, SLOTS, 2 * SLOTS + 1])
def test_a_step_may_have_more_results_than_there_are_slots(count: int, trace: Trace) -> None:
    """All slots taken is when they are read, and what is judged next begins anew."""

    def program() -> None:
        x = torch.ones(1)
        for _ in range(count):
            x * 2
        x.sub(1).log()

    record = trace(program)
    assert entry_of(record, "mul").count == count
    assert [(event.kind, event.times) for event in record.events] == [("pole", 1)]
