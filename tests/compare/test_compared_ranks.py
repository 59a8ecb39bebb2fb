"""Distributed runs are compared rank by rank: each has batches of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from dtlint.cli import main
from dtlint.compare import CannotCompare, compare, compare_ranks
from dtlint.report.compare_text import write_comparison
from dtlint.trace.merge import merge
from dtlint.trace.record import TraceRecord
from dtlint.trace.store import save

Sketched = Callable[..., TraceRecord]

RANKS = 2


def run(
    sketched: Sketched, dtype: torch.dtype, wrong: tuple[int, ...] = (), ranks: int = RANKS
) -> dict[int, TraceRecord]:
    """Each rank multiplies numbers of its own, and those of `wrong` scale the product."""

    def step(rank: int) -> None:
        torch.manual_seed(rank)
        x = torch.randn(8, 8).to(dtype)
        y = (x @ x).relu()
        z = y * 1.5 if rank in wrong else y * 1.0
        (z + 1).sum()

    return {
        rank: replace(sketched(lambda rank=rank: step(rank)), rank=rank, world=ranks)  # type: ignore[misc]
        for rank in range(ranks)
    }


def screen(*arguments: Any) -> str:
    stream = StringIO()
    write_comparison(compare_ranks(*arguments, ("a", "b")), stream)
    return stream.getvalue()


def test_honest_ranks_are_honest(sketched: Sketched) -> None:
    one, other = run(sketched, torch.float32), run(sketched, torch.bfloat16)
    both, alone = compare_ranks(one, other, ("a", "b")), compare(one[0], other[0])
    assert (both.findings, both.ranks, both.compared) == ([], [0, 1], 2 * alone.compared)
    assert [module.path for module in both.modules] == [module.path for module in alone.modules]
    assert "results compared, of step 1 on ranks 0 and 1;" in screen(one, other)


def test_what_is_wrong_on_one_rank_is_said_of_it(sketched: Sketched) -> None:
    good = run(sketched, torch.float32)
    [finding] = compare_ranks(good, run(sketched, torch.float32, (1,)), ("a", "b")).findings
    assert (finding.op, finding.ranks, finding.times) == ("mul", (1,), 1)
    assert f"{Path(__file__).name}:{finding.place.line}, on rank 1 alone\n" in screen(
        good, run(sketched, torch.float32, (1,))
    )
    [everywhere] = compare_ranks(good, run(sketched, torch.float32, (0, 1)), ("a", "b")).findings
    assert (everywhere.ranks, everywhere.times) == ((0, 1), 2)
    assert " alone" not in screen(good, run(sketched, torch.float32, (0, 1)))


def test_what_cannot_be_compared_is_said_of_its_rank(sketched: Sketched) -> None:
    one, other = run(sketched, torch.float32), run(sketched, torch.float32)
    with pytest.raises(CannotCompare, match=r"^on rank 1, b has no sketches; trace again"):
        compare_ranks(one, {0: other[0], 1: replace(other[1], sketches=None)}, ("a", "b"))
    with pytest.raises(CannotCompare, match="a and b share no rank"):
        compare_ranks({0: one[0]}, {1: other[1]}, ("a", "b"))
    with pytest.raises(CannotCompare, match="A is of rank 0 and B of rank 1, which have batches of their own"):
        compare(one[0], other[1])
    with pytest.raises(CannotCompare, match="A is of several ranks, merged"):
        compare(merge([*one.values()]), other[0])


@pytest.fixture
def folders(sketched: Sketched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The records of a good run in `a`, those of one that is wrong on rank 1 in `b`, and one of three ranks in `c`."""
    monkeypatch.chdir(tmp_path)
    runs = {
        "a": run(sketched, torch.float32),
        "b": run(sketched, torch.float32, (1,)),
        "c": run(sketched, torch.float32, ranks=3),
    }
    for name, records in runs.items():
        (tmp_path / name).mkdir()
        for rank, record in records.items():
            save(record, tmp_path / name / f"trace.rank{rank}.json")
    return tmp_path


def compared(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments])


def test_directories_are_compared_rank_by_rank(folders: Path) -> None:
    assert compared("a", "a").exit_code == 0
    wrong = compared("a", "b")
    assert (wrong.exit_code, ", on rank 1 alone" in wrong.stdout) == (1, True)
    more = compared("a", "c")
    assert (more.exit_code, "dtlint: rank 2 of c is not in a, and is not compared\n" in more.stderr) == (0, True)


def test_a_file_is_compared_with_the_same_rank_of_a_directory(folders: Path) -> None:
    assert compared("a/trace.rank0.json", "b").exit_code == 0
    assert compared("a/trace.rank1.json", "b").exit_code == 1
    assert "dtlint compare: b/trace.rank1.json (float32)" in compared("b", "a/trace.rank1.json").stdout
    lacking = compared("a", "c/trace.rank2.json")
    assert lacking.exit_code == 2
    assert "a holds no record of rank 2, which the other is; give another file" in lacking.stderr
