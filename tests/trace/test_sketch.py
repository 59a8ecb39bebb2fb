"""Sketches: how well they tell differences, what they are of, and what they leave alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dtlint.compare.difference import FLOOR, relative
from dtlint.compare.run import Line, Run, Sketch
from dtlint.trace.export import record_of
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options, OptionsError
from dtlint.trace.schema import SAMPLE, is_sketched
from dtlint.trace.sketch import Waiting, _beside, sampled
from dtlint.trace.store import load, save


def sketch_of(x: Tensor) -> Sketch:
    """The sketch of a tensor."""
    waiting = Waiting(x)
    waiting.add(0, x, _beside(sampled(x.numel()), x) if x.numel() > SAMPLE else None)
    [(_, (low, high, norm, *sums))] = waiting.read()
    return Sketch(low, high, norm, tuple(sums))


def lines_of(function: Callable[[], Any], step: int = 0, **options: Any) -> list[Line]:
    tracer = Tracer(Options.parse(sketch=True, **options))
    with tracer:
        function()
    return Run(record_of(tracer, ["test"], 0), "A").lines(step)


def gaussian(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# -- the estimate ------------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10_000),
    numel=st.integers(1, 3000),
    size=st.sampled_from([1e-5, 1e-3, 0.1, 1.0]),
    shape=st.sampled_from(["noise", "scale", "shift"]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_difference_is_estimated_within_a_factor_of_two(seed: int, numel: int, size: float, shape: str) -> None:
    x = gaussian(seed, numel)
    change = {"noise": gaussian(seed + 1, numel), "scale": x, "shift": torch.ones(numel)}[shape]
    y = x + size * change
    true = ((x - y).double().norm() / max(x.norm(), y.norm())).item()
    found = relative(sketch_of(x), sketch_of(y))
    if numel <= SAMPLE:
        assert true / 2 - FLOOR <= found <= true * 2 + FLOOR
    else:  # the sample's own error is added
        assert true / 2.5 - FLOOR <= found <= true * 2.5 + FLOOR


def test_the_standard_error_is_what_the_documentation_says() -> None:
    x = gaussian(0, 300)
    ratios = []
    for seed in range(400):
        y = x + 0.01 * gaussian(seed + 1, 300)
        ratios.append(relative(sketch_of(x), sketch_of(y)) * max(x.norm(), y.norm()).item() / (x - y).norm().item())
    mean = sum(ratios) / len(ratios)
    error = math.sqrt(sum((ratio - mean) ** 2 for ratio in ratios) / len(ratios))
    assert abs(mean - 1) < 0.05
    assert 0.12 < error < 0.22


def test_equal_tensors_do_not_differ_whatever_their_dtype_and_layout() -> None:
    x = gaussian(0, 64, 64).bfloat16()
    for same in (x.float(), x.double(), x.t().contiguous().t()):
        assert relative(sketch_of(x), sketch_of(same)) <= FLOOR


def test_masks_and_what_is_not_finite_do_not_drown_the_rest() -> None:
    x = gaussian(0, 100)
    masked = [x.clone() for _ in range(3)]
    for y, value in zip(masked, (-math.inf, torch.finfo(torch.float32).min, -65504.0), strict=True):
        y[50:] = value
    assert relative(sketch_of(masked[0]), sketch_of(masked[1])) <= FLOOR
    assert relative(sketch_of(masked[1]), sketch_of(masked[2])) <= FLOOR
    assert sketch_of(masked[0]).finite
    assert relative(sketch_of(x), sketch_of(x * math.nan)) == math.inf


def test_the_sample_has_one_value_of_each_span() -> None:
    for numel in (513, 1000, 123_457):
        places = sampled(numel)
        assert len(places) == SAMPLE
        assert places == sorted(places)
        assert max(places) < numel
        assert all(abs(place - n * numel / SAMPLE) <= numel / SAMPLE for n, place in enumerate(places))


# -- what they are of ----------------------------------------------------------------------------------------------------


def test_lines_say_what_each_result_is_made_of() -> None:
    layer = nn.Linear(3, 2)

    def program() -> None:
        layer(torch.ones(4, 3)).relu().sum().backward()

    lines = lines_of(program)
    assert [line.op or line.name for line in lines if not line.backward][:4] == [
        "ones",
        "parameter Linear.bias",
        "parameter Linear.weight",
        "addmm",
    ]
    addmm = next(line for line in lines if line.op == "addmm")
    assert [lines[n].op or lines[n].name for n in addmm.sources] == [
        "parameter Linear.bias",
        "ones",
        "parameter Linear.weight",
    ]
    assert addmm.place is not None
    assert addmm.module == "Linear"
    backward = next(line for line in lines if line.op == "threshold_backward")
    assert "relu" in {lines[n].op for n in backward.sources}


def test_a_target_in_place_is_known_as_it_was_before() -> None:
    x = torch.full((4,), 2.0)

    def program() -> None:
        x.mul_(3)
        x.add_(1)

    lines = lines_of(program)
    assert [(line.op, line.sketch and line.sketch.high) for line in lines] == [("", 2.0), ("mul", 6.0), ("add", 7.0)]
    assert [line.sources for line in lines] == [(), (0,), (1,)]


def test_parts_of_a_storage_have_several_writers() -> None:
    def program() -> None:
        out = torch.empty(2, 4)
        out[0] = torch.ones(4) * 2
        out[1] = torch.ones(4) * 3
        out.sum()

    lines = lines_of(program)
    total = next(line for line in lines if line.op == "sum")
    assert [lines[n].op for n in total.sources] == ["copy", "copy"]


def test_what_an_optimizer_or_numpy_wrote_is_looked_at_anew() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    array = weight.detach().numpy()

    def program() -> None:
        for _ in range(2):
            (weight * 2).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        array[:] = 7
        weight.sum()

    tracer = Tracer(Options.parse(sketch=True))
    with tracer:
        program()
    run = Run(record_of(tracer, ["test"], 0), "A")
    assert [next(line.sketch.high for line in run.lines(n) if not line.entry and line.sketch) for n in run.steps] == [
        1.0,
        0.0,
        7.0,
    ]


def test_fewer_and_fewer_steps_are_sketched() -> None:
    assert [n for n in range(1, 50) if is_sketched(n)] == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]
    assert sum(map(is_sketched, range(1, 501))) == 17
    layer = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def program() -> None:
        for _ in range(7):
            layer(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    tracer = Tracer(Options.parse(sketch=True, every=1))
    with tracer:
        program()
    record = record_of(tracer, ["test"], 0)
    assert record.sketches is not None
    assert [step.step for step in record.sketches.steps] == [0, 1, 2, 3, 5]


def test_a_sketch_takes_less_than_200_bytes(tmp_path: Path) -> None:
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(20)))
    sizes = []
    for sketch in (False, True):
        tracer = Tracer(Options(sketch=sketch))
        with tracer:
            model(torch.ones(2, 8)).sum().backward()
        record = record_of(tracer, ["test"], 0)
        save(record, tmp_path / "record.json")
        sizes.append((tmp_path / "record.json").stat().st_size)
    again = load(tmp_path / "record.json")
    assert again.sketches == record.sketches
    assert again.sketches is not None
    lines = again.sketches.steps[0].lines.count(";") + 1
    assert sizes[1] - sizes[0] < 200 * lines


# -- what they leave alone -------------------------------------------------------------------------------------------------


def test_neither_results_nor_random_numbers_change() -> None:
    def program() -> list[Any]:
        torch.manual_seed(3)
        layer = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.5))
        optimizer = torch.optim.Adam(layer.parameters())
        for _ in range(3):
            layer(torch.randn(16, 64)).square().mean().backward()
            optimizer.step()
        return [torch.get_rng_state(), *(p.detach().clone() for p in layer.parameters())]

    plain = program()
    with Tracer(Options(sketch=True)):
        traced = program()
    assert all(torch.equal(one, other) for one, other in zip(plain, traced, strict=True))


def test_storages_are_let_go_of() -> None:
    tracer = Tracer(Options(sketch=True))
    sketches = tracer.sketches
    assert sketches is not None
    with tracer:
        x = torch.ones(8)
        for _ in range(50):
            x = x * 1.01
    assert sketches._known == {}
    assert sketches._values == {}


def test_a_step_has_no_more_lines_than_are_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.trace.sketch.MOST_LINES", 5)

    def program() -> None:
        x = torch.ones(3)
        for _ in range(20):
            x = x + 1

    tracer = Tracer(Options(sketch=True))
    with tracer:
        program()
    record = record_of(tracer, ["test"], 0)
    assert len(Run(record, "A").lines(0)) == 5
    assert [u.count for u in record.unseen if "were not sketched" in u.what] == [15]


def test_odd_tensors_are_passed_over() -> None:
    def program() -> None:
        a = torch.ones(3, 3)
        (a.to_sparse() @ a).sum()
        torch.ones(0) * 2
        torch.ones(3, device="meta") + 1
        torch.view_as_complex(torch.ones(2, 2)).abs()
        torch._foreach_add_([torch.ones(2), torch.ones(3)], 1.0)

    lines = lines_of(program)
    assert {"ones", "sum", "abs"} <= {line.op for line in lines}


def test_there_is_nothing_to_sketch_where_no_values_are_looked_at() -> None:
    with pytest.raises(OptionsError, match="leave one of them out"):
        Options.parse(only="dtypes", sketch=True)
