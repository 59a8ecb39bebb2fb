"""Where non-finite values began, when a trace sees a part of the operators only: what it did not see it does not tell."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn as nn

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.trace.export import record_of
from dtlint.trace.judge import judge
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options

BORN = ("DT901", "DT902", "DT903", "DT904", "DT909")


def found(program: Callable[[], Any], **options: Any) -> list[Diagnostic]:
    """What a trace with these options says of non-finite values."""
    tracer = Tracer(Options.parse(**options))
    with tracer:
        program()
    return [d for d in judge(record_of(tracer, ["test"], 0)) if d.code in BORN]


class Pair(nn.Module):
    """Two layers, with a function between them."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.a, self.b, self.between = nn.Linear(4, 4), nn.Linear(4, 4), between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.b(self.between(self.a(x)))
        return y


def run(between: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], Any]:
    return lambda: Pair(between)(torch.randn(2, 4))


@pytest.mark.parametrize(
    ("between", "value"),
    [
        (lambda x: torch.log(x * 0), "-inf"),
        (lambda x: torch.log(x * 0) * -1, "inf"),
        (lambda x: torch.sqrt(-x.square() - 1), "NaN"),
        (lambda x: torch.log(x.detach() * 0, out=torch.empty(2, 4)), "-inf"),
    ],
)
def test_what_a_module_that_is_left_out_made_is_said_to_have_come_in(
    between: Callable[[torch.Tensor], torch.Tensor], value: str
) -> None:
    (told,) = found(run(between), modules=["b"])
    assert told.code == "DT909"
    assert f"a tensor from outside what was traced held {value} when " in told.message
    assert (
        "and an operator outside --module b may have made it so: it spread to 1 result that the trace saw"
        in told.message
    )
    assert told.help == "run without --module to see where it was made"


def test_with_all_modules_the_origin_is_told() -> None:
    (told,) = found(run(lambda x: torch.log(x * 0)))
    assert told.code == "DT903"


def test_what_a_module_that_is_traced_makes_is_its_own() -> None:
    class Roots(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sqrt(-x.square() - 1).sum()

    (told,) = found(lambda: Roots()(torch.ones(4)), modules=["Roots"])
    assert (told.code, "gave NaN from inputs in [-2, -2]" in told.message) == ("DT902", True)


class Masked(nn.Module):
    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (scores + mask).softmax(-1).sum()


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = Masked()

    def forward(self, keep: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.attn(torch.ones(2, 4), torch.zeros(2, 4).masked_fill(~keep, -math.inf))
        return y


def test_a_mask_from_outside_the_modules_is_a_mask_still() -> None:
    keep = torch.ones(2, 4, dtype=torch.bool).tril()
    assert found(lambda: Around()(keep), modules=["attn"]) == []
    keep[0] = False
    assert [d.code for d in found(lambda: Around()(keep), modules=["attn"])] == ["DT904"]


def test_lists_that_a_module_which_is_left_out_writes() -> None:
    class Divides(nn.Module):
        def forward(self, xs: list[torch.Tensor]) -> None:
            torch._foreach_mul_(xs, math.nan)

    class Doubles(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * 2).sum()

    def program() -> None:
        x, doubles = torch.ones(4), Doubles()
        doubles(x)
        Divides()([x])
        doubles(x)

    (told,) = found(program, modules=["Doubles"])
    assert "an operator outside --module Doubles may have made it so" in told.message


def test_what_a_step_that_is_left_out_made_is_said_to_have_come_in() -> None:
    def program() -> None:
        layer, state = nn.Linear(2, 2), torch.ones(1, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        for step in range(3):
            if step == 1:
                state = torch.zeros(1, 2).log() * 0
            (layer(state).sum() * 0).backward()
            optimizer.step()

    told = found(program, every=2)
    assert {d.code for d in told} == {"DT909"}
    assert all("in step 3, and a step that --every 2 leaves out may have made it so" in d.message for d in told)
    assert {d.help for d in told} == {"trace the steps between with --steps 2:3 to see where it was made"}


def test_in_the_first_step_of_all_no_step_was_left_out() -> None:
    batch = torch.tensor([1.0, math.nan])
    (told,) = found(lambda: (batch * 2).sum(), every=2)
    assert told.message.startswith("data from outside (a batch or a constant) held NaN")
    assert told.help.startswith("check the data")


# -- dtypes that are not watched --------------------------------------------------------------------------------------


def test_a_value_in_a_dtype_that_is_not_watched_comes_in_with_the_cast() -> None:
    def program() -> None:
        y = torch.full((4,), 60000.0).half() * 2
        torch.log_softmax(y.float(), 0)

    (told,) = found(program, watch=["float32"])
    assert told.code == "DT909"
    assert told.message == (
        "inf came in with the float16 operand of `y.float()` (the cast); --watch leaves float16 out:"
        " it spread to 1 result that the trace saw"
    )
    assert told.help == "run without --watch to see where it was made"
    (told,) = found(program, watch=["float32", "float16"])
    assert told.code == "DT901"


def test_a_result_of_mixed_dtypes_may_have_inherited() -> None:
    half = torch.tensor([60000.0, 1.0]).half()
    (told,) = found(lambda: ((half * 2) * torch.zeros(2)).sum(), watch=["float32"])
    assert told.message.startswith(
        "NaN may have come in with the float16 operand of `(half * 2) * torch.zeros(2)` (mul);"
    )


def test_a_result_of_watched_dtypes_alone_is_a_birth() -> None:
    half = torch.tensor([2.0, 1.0]).half()
    told = found(lambda: ((half * 2).float() - 5).log().sum(), watch=["float32"])
    assert [d.code for d in told] == ["DT902"]


def test_a_mask_in_a_dtype_that_is_not_watched_is_a_mask_still() -> None:
    mask = torch.tensor([0.0, -math.inf]).half()
    assert found(lambda: (torch.ones(2) + mask.float()).softmax(0).sum(), watch=["float32"]) == []


def test_complex_operands_may_hold_it_too() -> None:
    z = torch.tensor([complex(math.nan, 0.0)])
    (told,) = found(lambda: (z * 2).abs().sum())
    assert told.message.startswith(
        "NaN may have come in with the complex64 operand of `(z * 2).abs()` (abs): it spread"
    )
    assert told.help == "check the complex64 operand with torch.isfinite"


# -- Python numbers among the operands --------------------------------------------------------------------------------


def test_a_small_divisor_overflows_and_is_no_pole() -> None:
    x = torch.full((4,), 400.0).half()
    (told,) = found(lambda: ((x * 1) / 0.005).sum().item())
    assert told.code == "DT901"
    assert "(div) overflowed float16, 400 / 0.005 is past 65504: " in told.message


def test_a_divisor_of_zero_is_a_pole() -> None:
    (told,) = found(lambda: ((torch.ones(4) * 1) / 0.0).sum().item())
    assert told.code == "DT903"


def test_a_divisor_around_zero_that_is_never_zero_overflows() -> None:
    x, y = torch.full((2,), 6e4).half() * 1, torch.tensor([-0.5, 0.5]).half() * 1
    (told,) = found(lambda: (x / y).sum().item())
    assert told.code == "DT901"
    y[0] = 0
    (told,) = found(lambda: (x / y).sum().item())
    assert told.code == "DT903"


def test_the_inverse_of_a_small_number_tells_how_small_it_was() -> None:
    x = torch.tensor([1e-7, 3.0])
    (told,) = found(lambda: ((x * 1).half().reciprocal() * 1).sum().item())
    assert "(reciprocal) overflowed float16, inputs as small as 1.2e-07: " in told.message


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_number_that_is_not_finite_is_the_programs_own_at_a_later_call_too(value: float) -> None:
    def program() -> None:
        x = torch.ones(4)
        for factor in (1.0, 2.0, value):
            y = x * factor
        y.sum().item()

    told = found(program)
    if math.isinf(value):
        assert told == []
    else:
        (nan,) = told
        assert nan.message.startswith("`x * factor` (mul) was given the number nan, and gave NaN: ")
        assert nan.help == "look at the line where the program computes this number"


def test_numbers_that_change_are_of_one_signature() -> None:
    tracer = Tracer()
    with tracer:
        x = torch.ones(4)
        for factor in (1.0, 2.0, 0.0, 3.0, 0.0):
            x * factor
    assert [entry.count for entry in record_of(tracer, ["test"], 0).entries if entry.op == "mul"] == [3, 2]


# -- operators that add up --------------------------------------------------------------------------------------------


def many(*shape: int) -> torch.Tensor:
    return torch.full(shape, 60.0).half()


def embedding() -> torch.Tensor:
    layer = nn.Embedding(4, 8).half()
    layer(torch.zeros(2000, dtype=torch.long)).backward(many(2000, 8))
    return layer.weight.grad * 1


def put() -> torch.Tensor:
    at = torch.zeros(2000, dtype=torch.long)
    return torch.zeros(4).half().index_put((at,), many(2000), accumulate=True) * 1


def indexed() -> torch.Tensor:
    x = torch.zeros(4).half().requires_grad_()
    x[torch.zeros(2000, dtype=torch.long)].backward(many(2000))
    return x.grad * 1


def windows() -> torch.Tensor:
    x = torch.ones(1, 1, 6, 6).half()
    x[0, 0, 2, 2] = 2
    x.requires_grad_()
    nn.functional.max_pool2d(x, 3, 1).backward(many(1, 1, 4, 4) * 500)
    return x.grad * 1


@pytest.mark.parametrize("program", [embedding, put, indexed, windows])
def test_operators_that_add_up_overflow_themselves(program: Callable[[], torch.Tensor]) -> None:
    (told,) = found(lambda: program().sum().item())
    assert told.code == "DT901"
    assert "(mul)" not in told.message


# -- memory that changes without an operator --------------------------------------------------------------------------


def test_numpy_that_wrote_a_tensor_is_to_blame_and_not_the_next_operator_in_place() -> None:
    def program() -> None:
        y = torch.ones(4) * 2
        y.sum().item()
        y.numpy()[1] = math.nan
        y /= 2
        y.sum().item()

    def later() -> None:
        y = torch.ones(4) * 2
        array = y.numpy()
        y += 1
        array[1] = math.nan
        y /= 2
        y.sum().item()

    (told,) = found(later)
    assert told.code == "DT909"
    assert told.message.startswith("memory that was written outside the traced operators held NaN when `y /= 2` (div_)")


def test_a_batch_whose_first_reader_works_in_place() -> None:
    batch = torch.tensor([1.0, math.nan])
    (told,) = found(lambda: batch.div_(255).sum().item())
    assert told.code == "DT909"
    assert told.message.startswith("data from outside (a batch or a constant) held NaN when `batch.div_(255)` (div_)")


def test_memory_that_numpy_gave_back_is_not_looked_at_any_more() -> None:
    tracer = Tracer()
    with tracer:
        y = torch.ones(4) * 2
        key = y.untyped_storage()._cdata
        array, other = y.numpy(), y.numpy()
        del array
        assert key in tracer.flow._outside
        del other
        assert key not in tracer.flow._outside


def test_running_statistics_are_judged_where_they_are_written() -> None:
    layer = nn.BatchNorm1d(2)

    def program() -> None:
        layer(torch.full((2, 2), 1e20) * torch.tensor([[1.0], [-1.0]]))
        layer.eval()
        (layer.running_var - layer.running_var).sum().item()

    (told,) = found(program)
    assert told.code == "DT901"
    assert "(native_batch_norm) in BatchNorm1d overflowed float32" in told.message


@pytest.fixture
def two_ranks() -> Iterator[None]:
    """This is one of two ranks; the other is not there, and collectives bring what a test writes."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("two_ranks")
def test_what_a_collective_brought_is_not_blamed_on_the_next_operator_in_place() -> None:
    def program() -> None:
        metric = torch.ones(2) * 1.5
        metric.sum().item()
        torch.distributed.all_reduce(metric)
        metric.untyped_storage().copy_(torch.tensor([math.nan, 1.5]).untyped_storage())
        metric /= 2
        metric.sum().item()

    (told,) = found(program)
    assert told.code == "DT909"
    assert told.message.startswith("what c10d::allreduce_ brought held NaN when `metric /= 2` (div_) used it")


@pytest.mark.usefixtures("two_ranks")
def test_what_a_collective_takes_reaches_other_ranks() -> None:
    (told,) = found(lambda: torch.distributed.all_reduce(torch.zeros(2).log()))
    assert told.code == "DT903"
    assert told.message.endswith("gave -inf: it reached other ranks")


# -- how grave it is --------------------------------------------------------------------------------------------------


def train(loss_of: Callable[[nn.Linear, int], torch.Tensor], steps: int = 2) -> None:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(layer, step).backward()
        optimizer.step()


def test_what_became_of_the_backward_of_an_expression_is_told_with_its_forward() -> None:
    def loss_of(layer: nn.Linear, step: int) -> torch.Tensor:
        p = torch.softmax(layer(torch.ones(1, 2)) * 0 + torch.tensor([0.0, 200.0]), -1)
        return -(torch.log(p) * torch.tensor([1.0, 0.0])).sum()

    (told,) = found(lambda: train(loss_of))
    assert told.code == "DT903"
    assert "reached the loss, gradients and weights" in told.message


def test_a_metric_that_is_nan_stands_below_what_reached_the_loss() -> None:
    def loss_of(layer: nn.Linear, step: int) -> torch.Tensor:
        (torch.zeros(()) / torch.zeros(())).item()
        return torch.sqrt(layer(torch.ones(1, 2)).square().sum() * (1 - 2 * step))

    told = found(lambda: train(loss_of))
    assert [(d.severity, "(sqrt)" in d.message) for d in told] == [(Severity.ERROR, True), (Severity.WARNING, False)]


def test_a_label_that_is_nan_and_masked_is_information() -> None:
    def loss_of(layer: nn.Linear, step: int) -> torch.Tensor:
        y = torch.tensor([[1.0, math.nan]])
        return (layer(torch.ones(1, 2)) - y)[~y.isnan()].square().sum()

    told = found(lambda: train(loss_of))
    assert {(d.code, d.severity) for d in told} == {("DT909", Severity.INFO)}


def test_a_gradient_of_code_that_is_left_out_is_told_by_its_weights() -> None:
    def loss_of(layer: nn.Linear, step: int) -> torch.Tensor:
        return (layer(torch.ones(1, 2)) * math.inf).sum() * 0

    (told,) = found(lambda: train(loss_of), modules=["elsewhere"])
    assert told.code == "DT909"
    assert told.message.startswith(
        "`optimizer.step()` wrote NaN to 2 parameters, as parameter Linear.weight in step 1; their gradients came from code"
        " that --module elsewhere left out: "
    )


def test_an_infinite_ctc_loss_is_no_overflow() -> None:
    def program() -> None:
        x = (torch.randn(3, 1, 4) * 1).log_softmax(-1).requires_grad_()
        nn.functional.ctc_loss(
            x, torch.ones(1, 3, dtype=torch.long), torch.tensor([3]), torch.tensor([3]), zero_infinity=True
        ).backward()

    (told,) = found(program)
    assert (told.code, told.severity) == ("DT903", Severity.INFO)
    assert "gave inf, as no alignment of a target with its input is possible: nothing inherited it" in told.message


@pytest.mark.parametrize("mask", [lambda keep: (1 - keep) * -1e9, lambda keep: (keep - 1) * 1e9])
def test_a_mask_of_ones_times_a_number_beyond_half(mask: Callable[[torch.Tensor], torch.Tensor]) -> None:
    keep = torch.tensor([1.0, 1.0, 0.0]).half()
    scores = torch.randn(2, 3).half()
    assert found(lambda: (scores + mask(keep)).softmax(-1).sum().item()) == []
    (told,) = found(lambda: ((scores * 600 * 600).abs() * -1).sum().item())
    assert told.code == "DT901"


# -- the cause behind the line ----------------------------------------------------------------------------------------


def test_a_logarithm_of_a_softmax_that_underflowed() -> None:
    def program() -> None:
        p = torch.softmax(torch.tensor([0.0, 200.0]) * 1, 0)
        torch.log(p).sum().item()

    (told,) = found(program)
    assert ", as `torch.softmax(torch.tensor([0.0, 200.0]) * 1, 0)` at " in told.message
    assert told.help == "take log_softmax of the scores, which does not leave the log space"


def test_an_epsilon_that_is_zero_in_half() -> None:
    def program() -> None:
        norm = (torch.zeros(4).half() * 1).mean() + 1e-8
        (torch.ones(4).half() / norm).sum().item()

    (told,) = found(program)
    assert " held 0, since 1e-08 is 0 in float16: " in told.message


def test_an_epsilon_that_is_zero_in_half_below_a_zero() -> None:
    def program() -> None:
        x = torch.zeros(4).half() * 1
        (x / (x.norm() + 1e-8)).sum().item()

    (told,) = found(program)
    assert told.code == "DT902"
    assert " held 0, since 1e-08 is 0 in float16: " in told.message
    assert told.help == "keep the divisor away from 0 with an eps that its dtype can hold"


def test_weights_that_grew_before_an_overflow() -> None:
    layer = nn.Linear(2, 1, bias=False)
    nn.init.constant_(layer.weight, 0.5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1000.0)

    def program() -> None:
        for _ in range(12):
            optimizer.zero_grad()
            layer(torch.ones(1, 2)).pow(2).sum().backward()
            optimizer.step()

    told = found(program)[0]
    assert re.search(
        r", after the weights grew from \S+ to \S+ in \d+ steps at a learning rate of 1000: ", told.message
    )
    assert told.help == "lower the learning rate, warm it up, or clip the gradients"


def test_weights_that_stayed_are_not_told_of() -> None:
    layer = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

    def program() -> None:
        for scale in (1.0, 1.0, 1e30):
            (layer(torch.ones(1, 2)) * scale * scale).sum().backward()
            optimizer.step()

    assert "grew" not in found(program)[0].message


@pytest.mark.filterwarnings("ignore:std")
def test_a_deviation_of_one_value() -> None:
    (told,) = found(lambda: torch.ones(1, 4).std(0).sum().item())
    assert told.help == "of a single value it is 0/0: give correction=0, or more values"


@pytest.mark.parametrize(
    ("rate", "words"), [(1e38, "at a learning rate of 1e+38"), (math.nan, "at a learning rate of nan")]
)
def test_a_learning_rate_that_spoils_the_weights(rate: float, words: str) -> None:
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    optimizer.param_groups[0]["lr"] = rate

    def program() -> None:
        (layer(torch.ones(1, 2)).sum() * 100).backward()
        optimizer.step()

    (told,) = found(program)
    assert words in told.message
    assert "learning rate" in told.help


def test_a_buffer_that_was_loaded_with_a_nan_is_named(tmp_path: Path) -> None:
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2))
    state = model.state_dict()
    state["0.running_mean"][1] = math.nan
    torch.save(state, tmp_path / "model.pt")
    nn.init.zeros_(model[0].running_mean)

    def program() -> None:
        model.load_state_dict(torch.load(tmp_path / "model.pt"))
        model.eval()(torch.ones(4, 3)).sum().item()

    (told,) = found(program)
    assert told.message.startswith("what was loaded into buffer 0.running_mean held NaN when `model.load_state_dict(")
    assert "load_state_dict" in told.message


def test_how_much_of_a_batch_came_in_bad() -> None:
    batch = torch.ones(16, 3)
    batch[4, 1] = math.nan
    (told,) = found(lambda: (batch * 2).sum().item())
    assert "held NaN in 1 of 48 values, first in sample 5 of 16, when `batch * 2` (mul) used it: " in told.message


def test_how_much_of_a_batch_came_in_bad_that_the_backward_reads_again() -> None:
    layer, batch = nn.Linear(3, 2), torch.ones(16, 3)
    batch[4, 1] = math.nan
    (told,) = found(lambda: layer(batch).sum().backward())
    assert "held NaN in 1 of 48 values, first in sample 5 of 16, when `layer(batch)` (addmm)" in told.message


def test_a_bad_row_of_a_data_set_is_told_where_its_batch_is_made() -> None:
    rows = torch.ones(8, 3)
    rows[5, 1] = math.nan

    def program() -> None:
        for first in range(0, 8, 4):
            batch = torch.stack([rows[first + number] for number in range(4)])
            (batch * 2).sum().item()

    (told,) = found(program)
    assert told.message.startswith("data from outside (a batch or a constant) held NaN when `torch.stack([")


def test_a_bad_row_that_is_left_out_is_not_to_blame() -> None:
    rows = torch.ones(8, 3)
    rows[0, 1] = math.nan

    def program() -> None:
        batch = torch.stack([rows[0], rows[1]])
        good = torch.stack([rows[1], rows[2]])
        (torch.log(good * 0) * 1).sum().item()
        del batch

    (told,) = found(program)
    assert told.code == "DT903"


def test_of_memory_that_was_written_since_no_count_is_told() -> None:
    batch = torch.ones(16, 3)
    batch[4, 1] = math.nan

    def program() -> None:
        (batch * 2).sum().item()
        batch.zero_()

    (told,) = found(program)
    assert "held NaN when " in told.message
