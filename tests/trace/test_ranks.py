"""Distributed runs: a record of each rank, and one report of all that tells on which rank a thing was born."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest
import torch

import dtlint as api
from dtlint.trace.merge import merge
from dtlint.trace.rank import Rank
from dtlint.trace.record import TraceRecord
from dtlint.trace.store import load, save


class Ran(Protocol):
    """What a run left behind."""

    code: int
    out: str
    err: str


Dtlint = Callable[..., Ran]

DDP = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    x = torch.full((2, 4), 1e30 if step == 1 and dist.get_rank() == 1 else 1.0 + dist.get_rank())
    loss = model(x).pow(2).sum()
    loss.backward()
    optimizer.step()
    print(model.module.weight.tolist())
dist.destroy_process_group()
"""
"""Each rank has data of its own, and in the second step rank 1's overflows."""


class Ranks(NamedTuple):
    """What two ranks left behind, in their order."""

    directory: Path
    codes: list[int]
    outs: list[str]
    errs: list[str]


@pytest.fixture(scope="module")
def ddp(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """Two processes as torchrun begins them, each traced into the same directory."""
    directory = tmp_path_factory.mktemp("ddp")
    (directory / "ddp.py").write_text(DDP)
    (directory / "traces").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "dtlint", "trace", "-o", "traces", "ddp.py"]
    ranks = [
        subprocess.Popen(command, cwd=directory, env={**shared, "RANK": rank}, stdout=-1, stderr=-1, text=True)
        for rank in ("0", "1")
    ]
    try:
        said = [process.communicate(timeout=90) for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    outs, errs = zip(*said, strict=True)
    return Ranks(directory / "traces", [process.returncode for process in ranks], list(outs), list(errs))


def test_two_ranks_of_ddp_train_together_and_end(ddp: Ranks) -> None:
    assert ddp.codes == [0, 0]
    first, other = (out.splitlines() for out in ddp.outs)
    assert len(first) == 3
    assert first == other, "all ranks have the same weights after each step"
    assert "nan" not in first[0] and "nan" in first[2]
    for rank, err in enumerate(ddp.errs):
        assert f"dtlint: rank {rank} of 2\ndtlint trace: 3 optimizer steps" in err


def test_the_report_of_all_ranks_tells_where_it_was_born(ddp: Ranks, dtlint: Dtlint) -> None:
    assert sorted(file.name for file in ddp.directory.iterdir()) == ["trace.rank0.json", "trace.rank1.json"]
    report = dtlint("report", str(ddp.directory))
    assert report.code == 0 and report.err == ""
    assert report.out.startswith("dtlint trace: 2 ranks of 2, 3 optimizer steps, ")
    first = report.out.splitlines()[2:4]
    assert "ddp.py:11" in first[0]
    assert "in step 2 on rank 1" in first[1]
    assert "came in" not in report.out, "what the collective brought to rank 0 is not a cause of its own"


@pytest.fixture(scope="module")
def record() -> TraceRecord:
    with api.trace() as t:
        (torch.full((2,), 6e4).half() * 2).float()
    return t.record


def of_rank(record: TraceRecord, rank: int, world: int = 2, **changes: Any) -> TraceRecord:
    return replace(record, rank=rank, world=world, **changes)


def test_what_ranks_share_is_added_up(record: TraceRecord) -> None:
    merged = merge([of_rank(record, 0), of_rank(record, 1, exit_code=3)])
    assert (merged.ranks, merged.world, merged.exit_code) == ([0, 1], 2, 3)
    assert len(merged.entries) == len(record.entries)
    assert [e.count for e in merged.entries] == [2 * e.count for e in record.entries]
    assert merged.places == record.places
    assert [(e.kind, e.rank, e.times) for e in merged.events] == [("overflow", 0, 2)]


def test_an_event_belongs_to_the_rank_where_it_came_first(record: TraceRecord) -> None:
    late = [replace(event, step=7) for event in record.events]
    merged = merge([of_rank(record, 0, events=late, steps=9), of_rank(record, 1, steps=9)])
    assert [(e.rank, e.step) for e in merged.events] == [(1, 0)]
    assert merged.when(merged.events[0]) == " in step 1 on rank 1"


def test_what_a_collective_brought_is_the_spread_of_the_birth_elsewhere(record: TraceRecord) -> None:
    (birth,) = record.events
    birth = replace(birth, reached=["gradients"])
    brought = replace(birth, kind="came-in", brought="c10d::allreduce_", times=4, spread=2, reached=["weights"])
    merged = merge([of_rank(record, 0, events=[brought]), of_rank(record, 1, events=[birth])])
    assert [(e.kind, e.rank, e.reached) for e in merged.events] == [("overflow", 1, ["gradients", "weights"])]
    assert merged.events[0].spread == birth.spread + 6
    alone = merge([of_rank(record, 0, events=[brought]), of_rank(record, 1, events=[])])
    assert [e.kind for e in alone.events] == ["came-in"], "without a birth to explain it, it stands"


def test_a_merged_record_is_a_record(record: TraceRecord, tmp_path: Path) -> None:
    merged = merge([of_rank(record, 0), of_rank(record, 1)])
    save(merged, tmp_path / "all.json")
    assert load(tmp_path / "all.json") == merged
    assert merge([record]) is record


@pytest.mark.parametrize(
    ("environment", "rank", "name"),
    [
        ({}, (0, 1), "t.json"),
        ({"RANK": "0", "WORLD_SIZE": "1"}, (0, 1), "t.json"),
        ({"RANK": "3", "WORLD_SIZE": "8"}, (3, 8), "t.rank3.json"),
        ({"RANK": "x", "WORLD_SIZE": "8"}, (0, 1), "t.json"),
    ],
)
def test_each_rank_writes_a_file_of_its_own(
    environment: dict[str, str], rank: tuple[int, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert Rank.here() == rank
    assert Rank.here().file(Path("t.json")).name == name


def test_an_output_that_ends_in_a_slash_is_a_directory_though_there_is_none_yet(
    tmp_path: Path, dtlint: Dtlint, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text("import torch")
    (tmp_path / "file").touch()
    assert dtlint("trace", "-o", "runs/one/", "train.py").code == 0
    assert (tmp_path / "runs/one/trace.json").is_file()
    ran = dtlint("trace", "-o", "file/", "train.py")
    assert ran.code == 2 and "cannot make the directory file/" in ran.err
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert dtlint("trace", "-o", "traces/", "train.py").code == 0
    assert [file.name for file in (tmp_path / "traces").iterdir()] == ["trace.rank1.json"]


def test_a_directory_without_records_is_refused(tmp_path: Path, dtlint: Dtlint) -> None:
    (tmp_path / "none").mkdir()
    ran = dtlint("report", "none")
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "there is no trace record in none" in ran.err


@pytest.mark.parametrize("command", ["report", "diff"])
@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ({"rank": 1}, {"rank": 1}, "two records of rank 1, a.json and b.json"),
        ({"rank": 0, "world": 1}, {"rank": 0, "world": 1}, "two records, a.json and b.json"),
        ({"rank": 0}, {"rank": 0, "world": 1}, "a.json is of a run of 2 ranks, and b.json of a run of 1 rank"),
        ({"rank": 0}, {"rank": 1, "argv": ["eval.py"]}, "a.json is of train.py, and b.json of eval.py"),
        ({"rank": 0}, {"rank": 1, "torch": "1.0"}, "a.json is of a run under torch 9.0, and b.json of a run under torch 1.0"),
        ({"rank": 0}, {"rank": 1, "dtlint": "9"}, "a.json is written by dtlint 0, and b.json written by dtlint 9"),
    ],
)  # fmt: skip
def test_a_directory_with_several_runs_is_refused(
    command: str, one: dict[str, Any], other: dict[str, Any], told: str, record: TraceRecord, tmp_path: Path, dtlint: Dtlint
) -> None:  # fmt: skip
    (tmp_path / "two").mkdir()
    for name, its in (("a", one), ("b", other)):
        its = {"argv": ["somewhere/train.py"], "torch": "9.0", "dtlint": "0", **its}
        save(of_rank(record, **its), tmp_path / "two" / f"{name}.json")
    ran = dtlint(command, *["two"] * (2 if command == "diff" else 1))
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert f"two holds records of several runs: {told}; keep those of one run in a directory" in ran.err


def test_diff_says_what_it_passed_over(record: TraceRecord, tmp_path: Path, dtlint: Dtlint) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        save(of_rank(record, 0), tmp_path / name / "a.json")
    (tmp_path / "new" / "config.json").write_text(json.dumps({"layers": 2}))
    ran = dtlint("diff", "old", "new")
    assert ran.code == 0
    assert "1 of 2 ranks left no record in old" in ran.err
    assert "passed over: new/config.json is not a trace record" in ran.err


def test_files_that_are_no_records_and_ranks_that_are_missing_are_told(
    record: TraceRecord, tmp_path: Path, dtlint: Dtlint
) -> None:
    save(of_rank(record, 1, world=3), tmp_path / "t.rank1.json")
    (tmp_path / "config.json").write_text(json.dumps({"layers": 2}))
    ran = dtlint("report", ".")
    assert ran.code == 0
    assert "passed over: config.json is not a trace record" in ran.err
    assert "2 of 3 ranks left no record" in ran.err
