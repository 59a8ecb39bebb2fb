"""What counts as a birth of a non-finite value, what as a mask, and what as a promotion."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

from dtlint.trace.record import TraceRecord

Trace = Callable[[Callable[[], Any]], TraceRecord]
HALF = torch.float16


def causal() -> torch.Tensor:
    return torch.ones(8, 8).triu(1).bool()


def additive_mask() -> None:
    mask = torch.full((8, 8), float("-inf")).triu(1)
    ((torch.randn(8, 8) + mask).softmax(-1) @ torch.randn(8, 8)).sum()


def masked_fill() -> None:
    torch.randn(8, 8).masked_fill(causal(), -math.inf).softmax(-1).sum()


def where_with_a_tensor() -> None:
    torch.where(causal(), torch.tensor(-math.inf), torch.randn(8, 8)).softmax(-1).sum()


def where_with_a_number() -> None:
    torch.where(causal(), -math.inf, torch.randn(8, 8)).softmax(-1).sum()


def assigned_mask() -> None:
    scores = torch.randn(8, 8)
    scores[causal()] = -math.inf
    scores.softmax(-1).sum()


MASK_BUFFER = torch.full((8, 8), float("-inf")).triu(1)


def mask_made_before_the_trace() -> None:
    (torch.randn(8, 8) + MASK_BUFFER).softmax(-1).sum()


DOUBLE = nn.Linear(3, 3).double()


def half_mask() -> None:
    mask = torch.full((8, 8), float("-inf")).triu(1).half()
    (torch.randn(8, 8).half() + mask).softmax(-1).sum()


def best_loss_so_far() -> None:
    best = torch.tensor(float("inf"))
    torch.minimum(best, torch.ones(())).item()


def clamp_to_infinity() -> None:
    torch.ones(3).clamp(min=0, max=math.inf) * 2


def uninitialised_memory() -> None:
    torch.empty(100_000).zero_().add_(1)


def attention() -> None:
    q = torch.randn(1, 2, 8, 4)
    nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=torch.zeros(8, 8).masked_fill(causal(), -math.inf))


@pytest.mark.parametrize(
    "program",
    [
        additive_mask,
        masked_fill,
        where_with_a_tensor,
        where_with_a_number,
        assigned_mask,
        mask_made_before_the_trace,
        half_mask,
        best_loss_so_far,
        clamp_to_infinity,
        uninitialised_memory,
        attention,
    ],
)
def test_what_the_program_means_is_silent(program: Callable[[], None], trace: Trace) -> None:
    assert trace(program).events == []


def fully_masked_row() -> None:
    torch.randn(8, 8).masked_fill(torch.ones(8, 8).bool(), -math.inf).softmax(-1).sum()


def row_masked_by_hand() -> None:
    scores = torch.randn(2, 4).masked_fill(torch.ones(2, 4).bool(), -math.inf)
    (scores - scores.max(-1, keepdim=True).values).exp().sum()


def lowest_plus_score() -> None:
    (torch.full((8, 8), torch.finfo(HALF).min, dtype=HALF) + torch.full((8, 8), -40.0, dtype=HALF)).softmax(-1)


def log_of_zero() -> None:
    torch.log(torch.zeros(3) + 0.0)


def gradient_of_sqrt_at_zero() -> None:
    torch.sqrt(torch.ones(3, requires_grad=True) * 0).sum().backward()


def cast() -> None:
    (torch.full((3,), 1e5) * 1.0).half() + 1


def cast_to_bfloat16() -> None:
    (torch.full((3,), torch.finfo(torch.float32).min) * 1).bfloat16()


def bmm() -> None:
    a, b = torch.full((1, 8, 64), 100.0, dtype=HALF), torch.full((1, 64, 8), 100.0, dtype=HALF)
    torch.bmm(a * 1, b * 1)


def from_numpy() -> None:
    torch.from_numpy(np.array([1.0, float("nan")], dtype="f4")) * 2


def tensor_of_nan() -> None:
    torch.tensor([1.0, float("nan")]) * 2


DAMAGED = nn.Linear(4, 4)
with torch.no_grad():
    DAMAGED.weight[0, 0] = float("nan")


def weight() -> None:
    DAMAGED(torch.randn(2, 4))


def division_by_zero() -> None:
    torch.ones(3) / torch.zeros(3)


def square_root_of_a_negative() -> None:
    (torch.ones(3) * -1).sqrt()


def adam_eps() -> None:
    p = nn.Parameter(torch.zeros(4, dtype=HALF))
    optimizer = torch.optim.Adam([p], lr=1e-3, eps=1e-8)
    p.grad = torch.full((4,), 1e-6, dtype=HALF)
    optimizer.step()


def gradient_from_elsewhere() -> None:
    """As an all-reduce leaves it: the other rank's NaN, written where no operator is seen."""
    p = nn.Parameter(torch.zeros(4))
    optimizer = torch.optim.SGD([p], lr=1.0)
    p.grad = torch.zeros(4)
    p.grad.numpy().fill(np.nan)
    optimizer.step()


def rms_norm() -> None:
    x = torch.full((2, 64), 300.0, dtype=HALF)
    x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def in_place() -> None:
    x = torch.full((8,), 200.0, dtype=HALF)
    x.mul_(200.0).mul_(2.0)
    x.add_(torch.ones(8))


def part_in_place() -> None:
    x = torch.full((2, 8), 200.0, dtype=HALF)
    x[0].mul_(2000.0)
    x[1].mul_(2.0)  # finite, but the storage still holds the inf
    x.sum()


def checkpointed() -> None:
    w = torch.randn(8, 8, requires_grad=True)
    x = torch.full((2, 8), 9.0, requires_grad=True)
    checkpoint(lambda a: (a @ w).exp() * 1e38, x, use_reentrant=False).sum().backward()


def hidden_by_clamp() -> None:
    (torch.full((4,), 1e5).half() * 1).clamp(-6e4, 6e4) * 1


BORN = {
    fully_masked_row: ["masked-row _softmax"],
    row_masked_by_hand: ["masked-row sub"],
    lowest_plus_score: ["overflow add"],
    log_of_zero: ["pole log"],
    gradient_of_sqrt_at_zero: ["pole div backward"],
    cast: ["overflow _to_copy"],
    cast_to_bfloat16: ["overflow _to_copy"],
    bmm: ["overflow bmm"],
    from_numpy: ["came-in lift_fresh"],
    tensor_of_nan: ["came-in lift_fresh"],
    weight: ["came-in addmm"],
    division_by_zero: ["pole div"],
    square_root_of_a_negative: ["invalid sqrt"],
    adam_eps: ["overflow optimizer"],
    gradient_from_elsewhere: ["came-in optimizer"],
    rms_norm: ["overflow pow"],
    in_place: ["overflow mul_"],
    part_in_place: ["overflow mul_"],
    checkpointed: ["overflow mul", "overflow mul backward"],
    hidden_by_clamp: ["overflow _to_copy"],
}


@pytest.mark.parametrize(("program", "expected"), BORN.items(), ids=[program.__name__ for program in BORN])
def test_one_accident_is_one_event(program: Callable[[], None], expected: list[str], trace: Trace) -> None:
    record = trace(program)
    told = []
    for event in record.events:
        entry = None if event.entry is None else record.entries[event.entry]
        backward = " backward" if entry is not None and entry.phase == "backward" else ""
        told.append(f"{event.kind} {'optimizer' if entry is None else entry.op}{backward}")
    assert told == expected


def test_an_event_tells_its_place_its_inputs_and_its_fate(trace: Trace) -> None:
    record = trace(rms_norm)
    (event,) = record.events
    assert event.place is not None
    place = record.places[event.place]
    assert place.file.endswith("test_semantics.py")
    assert place.line == rms_norm.__code__.co_firstlineno + 2
    assert (event.dtype, event.high, event.inputs[0].high) == ("float16", math.inf, 300.0)
    assert event.spread == 2, "the mean, and the mean plus eps; their rsqrt is 0"
    assert not event.hurts


def batch_spoilt_by_the_program() -> None:
    batch = torch.rand(4, 4)
    batch[1, 2] = math.inf
    features = (batch * 2).relu()
    features - features


def test_a_nan_of_an_inf_that_the_program_wrote_tells_where(trace: Trace) -> None:
    (event,) = trace(batch_spoilt_by_the_program).events
    record = trace(batch_spoilt_by_the_program)
    assert event.kind == "invalid" and event.written is not None
    assert record.places[event.written].expression == "batch[1, 2]"
    assert [span.high for span in event.inputs] == [math.inf, math.inf], "and not what lay there before"


def mean_of_losses() -> None:
    losses = torch.zeros(3)
    for number in range(3):
        loss = (torch.zeros(4) / 0).sum()
        losses[number] = loss.item()
    losses.mean()
    torch.tensor([loss.item(), 1.0]).mean()
    torch.ones(3) * loss.item()
    torch.full((3,), loss.item()) + 1


def test_a_nan_that_the_program_read_and_writes_back_is_no_new_one(trace: Trace) -> None:
    (event,) = trace(mean_of_losses).events
    assert (event.kind, event.reached) == ("invalid", ["a number the program read"])


def test_a_batch_is_judged_for_itself_though_a_nan_was_read_before(trace: Trace) -> None:
    def program() -> None:
        (torch.zeros(4) / 0).sum().item()
        torch.tensor([[math.nan, 1.0]]) * 2

    assert [event.kind for event in trace(program).events] == ["invalid", "came-in"]


def test_a_hidden_overflow_spreads_to_what_was_computed_before_the_clamp_only(trace: Trace) -> None:
    (event,) = trace(hidden_by_clamp).events
    assert (event.spread, event.reached) == (1, [])


def test_what_reached_the_loss_the_gradients_and_the_weights(trace: Trace) -> None:
    def step() -> None:
        layer = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
        nn.init.ones_(layer.weight)
        loss = (layer(torch.ones(2, 4)) * 100).exp().sum()
        loss.backward()
        optimizer.step()
        loss.item()

    (event,) = [event for event in trace(step).events if event.kind == "overflow"]
    assert event.reached == ["the loss", "gradients", "weights", "a number the program read"]


def findings(record: TraceRecord) -> list[str]:
    return [f"{e.finding} {'+'.join(o.dtype for o in e.inputs)}->{e.output}" for e in record.entries if e.finding]


PROMOTIONS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "half with float32": (
        lambda: torch.ones(4, dtype=HALF) * torch.ones(4),
        ["promoted float16+float32->float32"],
    ),
    "half with bfloat16": (
        lambda: torch.ones(4, dtype=HALF) + torch.ones(4, dtype=torch.bfloat16),
        ["promoted float16+bfloat16->float32"],
    ),
    "cat": (
        lambda: torch.cat([torch.ones(4, dtype=HALF), torch.ones(4)]),
        ["promoted float16+float32->float32"],
    ),
    "a 0-dim float64 raises nothing": (
        lambda: torch.ones(4, dtype=HALF) * torch.tensor(2.0, dtype=torch.float64),
        [],
    ),
    "a NumPy scalar raises nothing": (lambda: torch.tensor(np.float64(2.0)) * torch.ones(3), []),
    "two 0-dim tensors": (lambda: torch.tensor(np.array(2.0)) * torch.tensor(1.0), []),
    "in place, the target keeps its dtype": (lambda: torch.ones(4, dtype=HALF).add_(torch.ones(4)), []),
    "a layer norm with float32 weights is by design": (
        lambda: torch.layer_norm(torch.ones(2, 4).bfloat16(), (4,), torch.ones(4), torch.zeros(4)),
        [],
    ),
    "a NumPy batch": (
        lambda: torch.randn(4) * torch.from_numpy(np.ones(4)),
        ["promoted float32+float64->float64"],
    ),
    "NumPy's linspace": (
        lambda: torch.ones(3) + torch.as_tensor(np.linspace(0, 1, 3)),
        ["promoted float32+float64->float64"],
    ),
    "float64 data alone": (lambda: torch.from_numpy(np.ones(4)) * 2, ["float64-data float64->float64"]),
    "float64 weights, whose origin is not known": (lambda: DOUBLE(torch.ones(1, 3).double()), []),
    "float64 that was asked for": (lambda: (torch.ones(3).double() * 2, torch.ones(3).sum(dtype=torch.float64)), []),
}


@pytest.mark.parametrize(("program", "expected"), PROMOTIONS.values(), ids=PROMOTIONS)
def test_promotions(program: Callable[[], Any], expected: list[str], trace: Trace) -> None:
    assert findings(trace(program)) == expected


def test_the_operand_to_blame_and_where_its_dtype_came_from(trace: Trace) -> None:
    class Rotary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("cos", torch.ones(4))

        def forward(self, q: torch.Tensor) -> torch.Tensor:
            return q * self.cos

    rotary = Rotary()
    record = trace(lambda: rotary(torch.ones(2, 4, dtype=torch.bfloat16)))
    (entry,) = [entry for entry in record.entries if entry.finding]
    assert entry.culprit == 1
    assert record.origin(entry.inputs[1]) == "buffer Rotary.cos"
    assert "torch.ones(2, 4, dtype=torch.bfloat16)" in record.origin(entry.inputs[0])


def authors(record: TraceRecord) -> set[tuple[str, str, str]]:
    return {(e.author, e.inputs[-1].dtype, e.output or "") for e in record.entries if e.author}


def test_who_asked_for_a_cast(trace: Trace) -> None:
    def program() -> None:
        layer = nn.Linear(4, 4)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = layer(torch.ones(2, 4))
            with torch.autocast("cpu", enabled=False):
                z = y.float()
        z.sum().backward()
        layer.half()

    found = authors(trace(program))
    assert ("autocast", "float32", "bfloat16") in found
    assert ("asked", "bfloat16", "float32") in found
    assert ("asked", "float32", "float16") in found, "layer.half() casts inside torch, but the program asked"
    assert ("backward", "bfloat16", "float32") in found


def test_a_round_trip_is_one_only_while_nothing_was_computed(trace: Trace) -> None:
    def trip() -> None:
        x = torch.ones(8, dtype=HALF)
        x.float().half()
        y = x.float()
        y.add_(1)
        y.half()

    record = trace(trip)
    (entry,) = [entry for entry in record.entries if entry.round_trips]
    assert record.places[entry.place].line == trip.__code__.co_firstlineno + 2


def test_a_dtype_mismatch_reaches_the_program_as_it_would_without_a_trace(trace: Trace) -> None:
    def mismatch() -> None:
        torch.mm(torch.randn(4, 4).half(), torch.randn(4, 4))

    with pytest.raises(RuntimeError) as plain:
        mismatch()
    with pytest.raises(RuntimeError) as traced:
        trace(mismatch)
    assert str(traced.value) == str(plain.value)


def test_the_backward_is_told_at_the_line_and_module_of_the_forward(trace: Trace) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.GELU())

    def step() -> None:
        model(torch.ones(2, 4)).sum().backward()

    record = trace(step)
    backward = {(e.op, record.places[e.place].module) for e in record.entries if e.phase == "backward"}
    assert ("gelu_backward", "1") in backward
    assert ("mm", "0") in backward
    lines = {record.places[e.place].line for e in record.entries if e.phase == "backward"}
    assert lines == {step.__code__.co_firstlineno + 1}


def test_the_backward_of_a_view_is_told_at_the_view(trace: Trace) -> None:
    def program() -> None:
        x = torch.ones(2, 4, requires_grad=True)
        y = x.expand(3, 2, 4)
        y.sin().sum().backward()

    record = trace(program)
    (entry,) = [e for e in record.entries if e.phase == "backward" and e.op == "sum"]
    assert record.places[entry.place].expression == "x.expand(3, 2, 4)"


def test_memory_that_is_used_again_is_not_mistaken_for_what_lay_there(trace: Trace) -> None:
    """Storages are known by address, and an address is used again as soon as its storage has died."""

    def program() -> None:
        for _ in range(50):
            torch.zeros(3).log()
            torch.from_numpy(np.ones(3, dtype="f4")) * 2

    record = trace(program)
    assert [event.kind for event in record.events] == ["pole"]
    assert (record.events[0].times, record.events[0].spread) == (50, 0)


class Python310:
    """`sys` as Python 3.10 has it: instructions know their line, not their columns."""

    version_info = (3, 10, 0)
    _getframe = staticmethod(sys._getframe)


def test_on_python_310_places_are_whole_lines(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.trace.site.sys", Python310)

    def program() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = nn.Linear(4, 4)(torch.ones(2, 4))
        y.float()

    record = trace(program)
    assert {e.author for e in record.entries if e.author} == {"autocast", "asked"}
    (asked,) = [record.places[e.place] for e in record.entries if e.author == "asked"]
    assert (asked.expression, asked.column, asked.end_column) == ("y.float()", 8, 17)
    assert asked.line == asked.end_line == program.__code__.co_firstlineno + 3


def test_memory_that_numpy_changed_came_in_and_is_not_blamed_on_its_reader(trace: Trace) -> None:
    buffer = np.zeros(4, dtype=np.float32)

    def program() -> None:
        x = torch.from_numpy(buffer)
        (x * 2).sum()
        buffer[0] = np.inf
        (x * 2).sum()

    (event,) = trace(program).events
    assert (event.kind, event.spread) == ("came-in", 2)


def test_memory_that_another_thread_changed_came_in(trace: Trace) -> None:
    alive = []

    def program() -> None:
        shared = torch.zeros(4)
        alive.append(shared)
        shared * 1
        thread = threading.Thread(target=shared.fill_, args=(float("nan"),))
        thread.start()
        thread.join()
        (shared * 2).sum()

    (event,) = trace(program).events
    assert (event.kind, event.subject) == ("came-in", "memory that was written outside the traced operators")


def test_an_overflow_beside_memory_never_written_is_still_one(trace: Trace) -> None:
    """As with a cache for keys and values: its rest may hold anything."""

    def program() -> None:
        cache = torch.empty(8)
        with torch._C._DisableTorchDispatch():
            cache[4:] = float("nan")
        cache[:4] = torch.full((4,), 3e38)
        (cache[:4] * 2).sum()

    assert [event.kind for event in trace(program).events] == ["overflow"]


def test_what_went_bad_after_it_was_read_explains_nothing(trace: Trace) -> None:
    def program() -> None:
        x = torch.full((4,), 3e38)
        (x * 2).sum()
        x.mul_(3)

    assert [event.kind for event in trace(program).events] == ["overflow", "overflow"]


@pytest.mark.parametrize("values", [[0.1, -3.00001], [-1e-9, 65519.0], [0.0], []], ids=str)
@pytest.mark.parametrize("dtype", [HALF, torch.bfloat16], ids=str)
def test_what_weights_are_cast_to_has_the_range_of_their_values(
    values: list[float], dtype: torch.dtype, trace: Trace
) -> None:
    """It is told by rounding the weight's own range."""
    weights = [nn.Parameter(torch.tensor(some)) for some in (values, [], values[:1])]
    (entry,) = trace(lambda: [weight.to(dtype) for weight in weights]).entries
    cast = [0.0, *weights[0].detach().to(dtype).tolist()]
    assert (entry.count, entry.low, entry.high) == (3, min(cast), max(cast))


def test_a_weight_that_does_not_fit_into_half_is_named_with_the_range_that_it_had(trace: Trace) -> None:
    weight = nn.Parameter(torch.tensor([-2.0, 70000.0]))
    (event,) = trace(lambda: weight.half()).events
    assert (event.kind, event.dtype, event.low, event.high) == ("overflow", "float16", -2.0, math.inf)
    assert [(one.low, one.high) for one in event.inputs] == [(-2.0, 70000.0)]


def test_a_weight_that_is_read_transposed_is_judged_as_it_lies(trace: Trace) -> None:
    weight = torch.randn(3, 4, 5, requires_grad=True)
    with torch.no_grad():
        weight[1, 2, 3] = 3e38

    def program() -> None:
        (weight.transpose(0, 2) * 2).sum()

    (event,) = trace(program).events
    assert [(i.low, i.high) for i in event.inputs][:1] == [(weight.min().item(), weight.max().item())]
