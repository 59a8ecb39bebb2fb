"""`dtlint diff` and `dtlint trace --baseline` on programs of which a line was changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import os
import torch
from torch import nn

torch.manual_seed(int(os.environ.get("SEED", "0")))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        h = torch.relu(self.up(x))
        return x + self.down(h)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return (x * self.scale).tanh()


model = Model().bfloat16()
for _ in range(2):
    model(torch.randn(2, 4).bfloat16()).sum().backward()
"""

Run = Callable[..., Any]


@pytest.fixture
def ran(dtlint: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Trace the program with some texts replaced, and give the name of the record."""

    def run(*changed: tuple[str, str], seed: int = 0, name: str = "program.py", source: str = PROGRAM) -> str:
        for old, new in changed:
            assert old in source
            source = source.replace(old, new)
        (tmp_path / name).write_text(source)
        monkeypatch.setenv("SEED", str(seed))
        record = f"{len(list(tmp_path.glob('*.json')))}.json"
        done = dtlint("trace", "-q", "-o", record, name)
        assert (done.code, done.err) == (0, "")
        return record

    return run


@pytest.fixture
def differ(dtlint: Run) -> Callable[..., list[dict[str, Any]]]:
    """What changed from one record to the other, and check that the exit code says whether for the worse."""

    def differ(old: str, new: str, *options: str) -> list[dict[str, Any]]:
        done = dtlint("diff", "--output-format", "json", old, new, *options)
        told = json.loads(done.out)
        assert done.code == int(any(change["regression"] for change in told["changes"])), done.err
        return list(told["changes"])

    return differ


def test_other_seeds_change_nothing(ran: Any, differ: Any, dtlint: Run) -> None:
    old, new = ran(seed=1), ran(seed=2)
    assert differ(old, new) == []
    done = dtlint("diff", old, new)
    assert (done.code, done.out) == (0, "The dtypes are those of before.\n")


FLOAT = ("return x + self.down(h)", "return x + self.down(h).float()")
KEPT = ("block(x)", "block(x).bfloat16()")


def test_a_cast_that_was_inserted_is_the_one_cause(ran: Any, differ: Any, dtlint: Run) -> None:
    old, new = ran(KEPT), ran(KEPT, FLOAT)
    (change,) = differ(old, new)
    assert (change["kind"], change["source"], change["was"], change["now"]) == (
        *("cast", "self.down(h).float()"),
        *("bfloat16", "float32"),
    )
    assert change["modules"] == ["blocks.0", "blocks.1", "blocks.2"]
    assert {(one["what"], one["now"]) for one in change["followed"]} == {
        ("x + self.down(h).float()", "float32"),
        ("block(x).bfloat16()", "bfloat16"),
    }
    assert [one["what"] for one in change["outputs"]] == ["blocks.0", "blocks.1", "blocks.2"]
    assert dtlint("diff", old, new).out == (
        "regression program.py:16: `self.down(h).float()` in blocks.0 (+2 modules) is a new cast, bfloat16 to float32\n"
        "    3 operators followed, bfloat16 to float32: `x + self.down(h).float()` in blocks.0,"
        " `x + self.down(h).float()` in blocks.1 and `x + self.down(h).float()` in blocks.2\n"
        "    1 operator followed, float32 to bfloat16: `block(x).bfloat16()` in Model\n"
        "    the outputs of blocks.0, blocks.1 and blocks.2 are float32, not bfloat16 as before\n"
        "Found 1 regression.\n"
    )


def test_the_other_way_round_is_no_regression_unless_strict(ran: Any, differ: Any, dtlint: Run) -> None:
    old, new = ran(KEPT, FLOAT), ran(KEPT)
    changes = differ(old, new)
    assert [(change["kind"], change["source"], change["regression"]) for change in changes] == [
        ("gone", "self.down(h).float()", False),
        ("gone", "block(x).bfloat16()", False),
    ]
    assert dtlint("diff", "--strict", old, new).code == 1
    assert dtlint("diff", "--strict", new, new).code == 0


def test_a_promotion_is_told_and_what_follows_is_folded(ran: Any, differ: Any) -> None:
    (change,) = differ(ran(), ran(("self.scale).tanh()", "torch.linspace(0, 1, 4)).tanh()")))
    assert (change["kind"], change["source"], change["now"]) == ("promotion", "x * torch.linspace(0, 1, 4)", "float32")
    assert change["message"].endswith("in Model raises bfloat16 and float32 to float32")
    assert "(x * torch.linspace(0, 1, 4)).tanh()" in {one["what"] for one in change["followed"]}


def test_weights_that_are_cast_no_more_are_one_cause(ran: Any, differ: Any) -> None:
    cast = ("Model().bfloat16()", "Model()"), ("randn(2, 4).bfloat16()", "randn(2, 4)")
    changes = differ(ran(), ran(*cast))
    assert {change["kind"] for change in changes} == {"gone"}
    assert changes[0]["source"] == "Model().bfloat16()"
    assert len(changes[0]["followed"]) > 10


AUTOCAST = ("Model().bfloat16()", "Model()"), ("randn(2, 4).bfloat16()", "randn(2, 4)")
REGION = ("    model(torch", '    with torch.autocast("cpu", torch.bfloat16):\n      model(torch')


def test_autocast_that_is_off_is_one_cause(ran: Any, differ: Any) -> None:
    (change,) = differ(ran(*AUTOCAST, REGION), ran(*AUTOCAST))
    assert change["kind"] == "autocast"
    assert change["message"] == "autocast is off now, first at `self.up(x)` (addmm) in blocks.0.up"


def test_code_that_moved_or_was_renamed_is_no_change(ran: Any, differ: Any) -> None:
    moved = ran(("import os", '"""A docstring."""\n\nimport os'), name="renamed.py")
    old = ran()
    assert differ(old, moved) == []
    assert differ(old, ran(("self.blocks", "self.layers"))) == []
    assert differ(old, ran(("torch.relu(self.up(x))", "torch.relu(self.up(x)) * 1"))) == []


def test_folders_of_ranks_are_merged(ran: Any, differ: Any, dtlint: Run, tmp_path: Path) -> None:
    for folder, record in (("old", ran()), ("new", ran(("x * self.scale", "x * self.scale.float()")))):
        for rank in (0, 1):
            data = json.loads((tmp_path / record).read_text()) | {"rank": rank, "world": 2}
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / f"{rank}.json").write_text(json.dumps(data))
    assert differ("old", "old") == []
    (change,) = differ("old", "new")
    assert change["source"] == "self.scale.float()"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no trace record in empty" in dtlint("diff", "empty", "new").err


HALF = """
import torch
x = torch.linspace(0, 1, 8).half()
y = x * 40
z = y * 2
"""


def test_a_larger_magnitude_counts_near_the_limit_and_by_its_factor(ran: Any, differ: Any) -> None:
    old, new = ran(source=HALF), ran(("x * 40", "x * 20000"), source=HALF)
    changes = differ(old, new)
    assert [(change["kind"], change["was"], change["now"]) for change in changes] == [
        ("magnitude", "40", "2e+04"),
        ("magnitude", "80", "4e+04"),
    ]
    assert differ(old, new, "--factor", "1000") == []
    assert differ(old, ran(("x * 40", "x * 400"), source=HALF)) == []  # far from 65504


def test_values_that_overflow_now_are_told(ran: Any, differ: Any) -> None:
    read = HALF + "print(z.sum().item(), file=open('out', 'w'))\n"
    changes = differ(ran(source=read), ran(("y * 2", "y * 2000"), source=read))
    assert [(change["kind"], change["source"], change["now"]) for change in changes] == [
        ("nonfinite", "y * 2000", "overflow")
    ]


# -- the baseline ------------------------------------------------------------------------------------------------------


def test_a_baseline_is_small_sorted_and_the_same_for_every_seed(
    ran: Any, dtlint: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran()
    texts = []
    for seed in ("1", "2"):
        monkeypatch.setenv("SEED", seed)
        done = dtlint("trace", "-q", "--baseline", f"{seed}.txt", "--update-baseline", "program.py")
        assert (done.code, done.err) == (0, "")
        texts.append((tmp_path / f"{seed}.txt").read_text())
    assert texts[0] == texts[1]
    operators = json.loads(texts[0])["operators"]
    assert operators == sorted(operators, key=lambda row: (row["module"], row["source"], row["op"]))
    assert {"blocks.[0-2]", "blocks.[0-2].up"} <= {row["module"] for row in operators}
    assert len(texts[0].splitlines()) == 8 + len(operators) + len(json.loads(texts[0])["outputs"])


def test_a_run_is_held_to_a_baseline(ran: Any, dtlint: Run) -> None:
    ran()
    made = dtlint("trace", "--baseline", "dtypes.json", "--update-baseline", "program.py")
    assert made.err.endswith("dtlint: wrote the baseline dtypes.json\n")
    same = dtlint("trace", "--baseline", "dtypes.json", "program.py")
    assert (same.code, same.err.splitlines()[-1]) == (0, "The dtypes are those of before.")
    record = ran(KEPT, FLOAT)
    worse = dtlint("trace", "--baseline", "dtypes.json", "program.py")
    assert worse.code == 1
    assert "regression program.py:16: `self.down(h).float()` in blocks.0 (+2 modules) is a new cast" in worse.err
    assert dtlint("diff", "dtypes.json", record).out in worse.err
    accepted = dtlint("trace", "-q", "--baseline", "dtypes.json", "--update-baseline", "program.py")
    assert (accepted.code, dtlint("trace", "-q", "--baseline", "dtypes.json", "program.py").code) == (0, 0)


def test_a_magnitude_that_hardly_changed_stays_in_the_file(ran: Any, dtlint: Run, tmp_path: Path) -> None:
    update = ("trace", "-q", "--baseline", "dtypes.json", "--update-baseline", "program.py")
    ran(source=HALF)
    dtlint(*update)
    text = (tmp_path / "dtypes.json").read_text()
    assert '"reach": 64.0' in text
    ran(source=HALF.replace("linspace(0, 1, 8)", "linspace(0, 0.5, 8)"))
    dtlint(*update)
    assert (tmp_path / "dtypes.json").read_text() == text.replace("(0, 1, 8)", "(0, 0.5, 8)").replace(
        '"reach": 1.0', '"reach": 0.5'
    )


def test_a_program_that_fails_updates_nothing(ran: Any, dtlint: Run, tmp_path: Path) -> None:
    ran()
    dtlint("trace", "-q", "--baseline", "dtypes.json", "--update-baseline", "program.py")
    text = (tmp_path / "dtypes.json").read_text()
    (tmp_path / "program.py").write_text(PROGRAM + "\nraise SystemExit(3)\n")
    failed = dtlint("trace", "-q", "--baseline", "dtypes.json", "--update-baseline", "program.py")
    assert failed.code == 3
    assert failed.err.startswith("dtlint: the program failed; the baseline ")
    held = dtlint("trace", "--baseline", "dtypes.json", "program.py")
    assert held.code == 3
    assert "note: the run ended by an error" in held.err
    (tmp_path / "program.py").write_text("print('no torch')")
    empty = dtlint("trace", "-q", "--baseline", "dtypes.json", "--update-baseline", "program.py")
    assert (empty.code, empty.err.startswith("dtlint: nothing was traced; the baseline ")) == (2, True)
    assert (tmp_path / "dtypes.json").read_text() == text


def test_bad_input_is_refused_in_one_line(ran: Any, dtlint: Run, tmp_path: Path) -> None:
    record = ran()
    dtlint("trace", "-q", "--baseline", "good.json", "--update-baseline", "program.py")
    good = (tmp_path / "good.json").read_text()
    (tmp_path / "cut.json").write_text(good[: len(good) // 2])
    (tmp_path / "newer.json").write_text(good.replace('"dtlint-baseline": 1', '"dtlint-baseline": 2'))
    (tmp_path / "damaged.json").write_text(good.replace('"gave"', '"given_"'))
    program = (tmp_path / "program.py").read_text()
    for arguments, message in (
        (("diff", "none.json", record), "cannot read none.json: No such file or directory"),
        (("diff", "cut.json", record), "cut.json is not a trace record or baseline: it is not valid JSON"),
        (("diff", "newer.json", record), "of version 2, newer than this dtlint reads; upgrade dtlint"),
        (("diff", "damaged.json", record), "is a damaged baseline ('gave'); restore it"),
        (("diff", record, "good.json"), "good.json is a baseline, which does not show why"),
        (("diff", "--factor", "0.5", record, record), "--factor 0.5 is less than 1"),
        (("diff", "--report-file", record, "good.json", record), "would overwrite what it compares"),
        (("trace", "--update-baseline", "program.py"), "name one"),
        (("trace", "--factor", "4", "program.py"), "--factor says how much larger than in the --baseline is too large"),
        (("trace", "--baseline", "none.json", "program.py"), "there is no baseline none.json; make it with"),
        (("trace", "--baseline", "program.py", "--update-baseline", "program.py"), "would overwrite"),
        (("trace", "--baseline", record, "--update-baseline", "program.py"), "would overwrite"),
        (("trace", "--baseline", "good.json", "-o", "good.json", "program.py"), "would overwrite the baseline"),
        (("trace", "--baseline", "good.json", "--html", "good.json", "program.py"), "would overwrite the baseline"),
        (("trace", "--baseline", "no/good.json", "--update-baseline", "program.py"), "there is no directory no"),
    ):
        done = dtlint(*arguments)
        assert (done.code, message in done.err, done.err.count("\n")) == (2, True, 1), (arguments, done.err)
    assert (tmp_path / "program.py").read_text() == program
    assert (tmp_path / "good.json").read_text() == good
