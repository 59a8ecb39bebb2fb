"""What modules did over the steps: the columns say what the entries do, and stay few however long the run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import dtlint
from dtlint.trace import series as module
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import CALLS, NOTHING, ModuleSeries, Series
from dtlint.trace.series import fewer
from dtlint.trace.store import RecordError, load, save

Trace = Callable[[Callable[[], Any]], TraceRecord]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, dtype=torch.float16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).half())


def training(steps: int, grow: float = 1.0) -> Callable[[], None]:
    def run() -> None:
        torch.manual_seed(0)
        net, x = Net(), torch.ones(2, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            net(x).float().sum().backward()
            optimizer.step()
            x = x * grow

    return run


def expanded(row: ModuleSeries) -> list[list[int]]:
    return [run for run in row.runs for _ in range(run[0])]


def calls_of(series: Series) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for row in series.rows:
        for cell in expanded(row):
            found.update({(row.module, row.phase, row.dtypes[n]): c for n, c in enumerate(cell[CALLS:]) if c})
    return found


def calls_of_entries(record: TraceRecord) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for entry in record.entries:
        if entry.output:
            found[record.places[entry.place].module, entry.phase, entry.output] += entry.count
    return found


def test_each_step_is_a_column_with_the_calls_of_its_modules(trace: Trace) -> None:
    record = trace(training(5))
    assert record.series is not None
    assert record.series.starts[:5] == [0, 1, 2, 3, 4]
    assert calls_of(record.series) == calls_of_entries(record)
    (row,) = [row for row in record.series.rows if (row.module, row.phase) == ("second", "forward")]
    assert row.dtypes == ["float16"]
    assert len(expanded(row)) == 5


def test_magnitudes_are_those_of_their_step_and_the_entries_keep_the_largest(trace: Trace) -> None:
    record = trace(training(6, grow=16.0))
    assert record.series is not None
    (row,) = [row for row in record.series.rows if (row.module, row.phase) == ("first", "forward")]
    exponents = [cell[1] for cell in expanded(row)]
    assert exponents == sorted(set(exponents))
    reach = max(e.reach for e in record.entries if record.places[e.place].module == "first" and e.phase == "forward")
    assert math.frexp(reach)[1] == max(exponents)


def test_what_is_not_finite_is_counted_in_its_step(trace: Trace) -> None:
    record = trace(training(6, grow=64.0))
    assert record.series is not None
    (row,) = [row for row in record.series.rows if (row.module, row.phase) == ("second", "forward")]
    bad = [cell[3] for cell in expanded(row)]
    assert bad[0] == 0 and bad[-1] == 1


def test_the_infs_of_a_mask_are_not_counted(trace: Trace) -> None:
    def run() -> None:
        scores, mask = torch.ones(4, 4), torch.full((4, 4), float("-inf")).triu(1)
        ((scores + mask).softmax(-1) * 2).sum()

    record = trace(run)
    assert record.series is not None
    assert [run[3] for row in record.series.rows for run in row.runs] == [0]
    (masked,) = [entry for entry in record.entries if entry.op == "add"]
    assert (masked.nonfinite, masked.meant) == (1, 1)


def test_a_run_without_steps_is_one_column(trace: Trace) -> None:
    record = trace(lambda: Net()(torch.ones(2, 4)))
    assert record.series is not None
    assert record.series.starts == [0]
    assert calls_of(record.series) == calls_of_entries(record)


def test_a_program_that_imports_torch_and_computes_nothing_has_none(trace: Trace) -> None:
    assert trace(lambda: None).series is None


def test_columns_stay_few_and_lose_no_call(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_COLUMNS", 16)

    def run() -> None:
        x = torch.ones(3)
        for _ in range(100):
            x * 2
            dtlint.step()

    record = trace(run)
    assert record.series is not None
    assert 8 <= len(record.series.starts) < 16
    assert record.series.starts == sorted(record.series.starts)
    assert calls_of(record.series) == calls_of_entries(record)


def test_a_record_made_on_the_way_changes_nothing() -> None:
    with dtlint.trace() as t:
        for number in range(3):
            torch.ones(3) * 2
            if number == 1:
                halfway = t.record
            dtlint.step()
    series = t.record.series
    assert halfway.series is not None and series is not None
    assert calls_of(series) == calls_of_entries(t.record)
    assert series.starts == [0, 1, 2]


def test_the_scale_is_kept_where_it_changes(trace: Trace) -> None:
    def run() -> None:
        net = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
        for number in range(4):
            loss = net(torch.full((1, 2), float("inf") if number == 2 else 1.0)).sum()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    scaler = trace(run).scaler
    assert scaler is not None
    assert [(change.update, change.scale) for change in scaler.changes] == [(0, 1024.0), (1, 2048.0), (2, 1024.0)]


cells = st.tuples(st.sampled_from([NOTHING, 0, 3]), st.sampled_from([-1, 0, 7]), st.integers(0, 2), st.integers(0, 3))


@given(st.lists(cells, min_size=1, max_size=40))
def test_merging_columns_adds_calls_and_keeps_the_extremes(given_: list[tuple[int, int, int, int]]) -> None:
    row = ModuleSeries("m", "forward", ["float16"], [])
    for cell in given_:
        if row.runs and row.runs[-1][1:] == list(cell):
            row.runs[-1][0] += 1
        else:
            row.runs.append([1, *cell])
    merged = fewer(Series(list(range(len(given_))), [row]), most=1)
    found = [cell for each in merged.rows for cell in expanded(each)]
    assert len(merged.rows[0].runs) == 1
    assert len(found) == len(merged.starts)
    assert sum(cell[CALLS] for cell in found) == sum(cell[3] for cell in given_)
    assert sum(cell[3] for cell in found) == sum(cell[2] for cell in given_)
    for place, index in ((1, 0), (2, 1)):
        assert max(cell[place] for cell in found) == max(cell[index] for cell in given_)


def test_a_damaged_series_is_refused(trace: Trace, tmp_path: Path) -> None:
    record = trace(training(2))
    assert record.series is not None
    for damage in ([9, 0, 0, 0], [1, 0], [0, 0, 0, 0], [1, 0, 0, 0, 1, 1, 1, 1, 1, 1]):
        row = record.series.rows[0]
        kept, row.runs = row.runs, [damage]
        save(record, tmp_path / "t.json")
        with pytest.raises(RecordError, match="damaged"):
            load(tmp_path / "t.json")
        row.runs = kept
