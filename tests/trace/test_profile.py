"""`dtlint trace --profile`: torch.profiler beside the tracer, and what TensorBoard's plugin makes of the file."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from dtlint.cli.profile import Profiling
from dtlint.profile.tracks import PID
from dtlint.trace.marks import Profiled

PROGRAM = """
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.head = nn.Linear(8, 16), nn.Linear(16, 1)
        self.register_buffer("scale", torch.ones(16))

    def forward(self, x):
        return self.head((self.fc(x).half() * self.scale).float())


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
for _ in range(STEPS):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(4, 8)).pow(2).mean()).backward()
    scaler.step(optimizer)
    scaler.update()
"""

Run = Callable[..., Any]


def profile_of(folder: Path) -> dict[str, Any]:
    (file,) = folder.glob("*.pt.trace.json")
    trace: dict[str, Any] = json.loads(file.read_text())
    return trace


def marks(trace: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event.get("pid") == PID and event["ph"] == kind]


def test_what_the_tracer_saw_stands_beside_the_operators(dtlint: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("STEPS", "2"))
    done = dtlint("trace", "--profile", "out", "train.py")
    assert done.code == 0
    assert "open it in https://ui.perfetto.dev" in done.err.splitlines()[-1]
    trace = profile_of(tmp_path / "out")
    slices = marks(trace, "X")
    assert [one["name"] for one in slices if one["name"].startswith("step")] == ["step 1", "step 2"]
    promoted = [one for one in slices if one["name"] == "mul(float16, float32) gives float32"]
    assert len(promoted) == 2
    assert promoted[0]["args"] == {
        "file": "train.py",
        "line": 15,
        "source": "`self.fc(x).half() * self.scale`",
        "module": "Model",
        "finding": "promoted",
    }
    times = [one for one in trace["traceEvents"] if one.get("name") == "aten::mul" and one["cat"] == "cpu_op"]
    assert any(one["ts"] < times[-1]["ts"] + times[-1]["dur"] for one in promoted)
    assert {one["name"] for one in marks(trace, "i")} == {"overflow in to_copy", "step 1 skipped", "step 2 skipped"}
    step = next(one for one in slices if one["name"] == "step 1")
    assert all(step["ts"] <= promoted[0][name] <= step["ts"] + step["dur"] for name in ("ts",))


def test_the_window_ends_after_ten_steps_and_begins_with_the_first_that_is_traced(dtlint: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("STEPS", "14"))
    dtlint("trace", "-q", "--profile", "all", "train.py")
    names = [one["name"] for one in marks(profile_of(tmp_path / "all"), "X") if one["name"].startswith("step")]
    assert (names[0], names[-1], len(names)) == ("step 1", "step 10", 10)
    dtlint("trace", "-q", "--steps", "3:4", "--profile", "some", "train.py")
    names = [one["name"] for one in marks(profile_of(tmp_path / "some"), "X") if one["name"].startswith("step")]
    assert names == ["step 3", "step 4"]


OWN = """
import torch
torch.ones(2) + 1
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
    torch.ones(2) * 2
print([e.key for e in p.key_averages() if e.key == "aten::mul"])
"""


def test_a_profiler_of_the_program_takes_over(dtlint: Run, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    done = dtlint("trace", "--profile", "out", "own.py")
    assert (done.code, done.out) == (0, "['aten::mul']\n")
    assert "the program started a profiler of its own, and the window ended there" in done.err
    assert profile_of(tmp_path / "out")["traceEvents"]


def test_a_folder_that_cannot_be_written_is_refused_before_the_program_runs(dtlint: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('ran', 'w')")
    (tmp_path / "file").write_text("")
    for folder in ("file", "file/below", "/proc/none"):
        done = dtlint("trace", "--profile", folder, "train.py")
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert f"--profile: cannot write into {folder}: " in done.err
    assert not (tmp_path / "ran").exists()


def test_a_program_without_torch_leaves_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert Profiling(str(tmp_path), "train.py", 0, quiet=True).write() == 2
    assert capsys.readouterr().err == "dtlint: torch was not traced, so there is no profile\n"
    assert list(tmp_path.iterdir()) == []


def test_steps_that_never_came_leave_no_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profiling = Profiling(str(tmp_path), "train.py", 0, quiet=True)
    profiling.take(Profiled("", [], 0))
    assert profiling.write() == 2
    assert capsys.readouterr().err == "dtlint: there is no profile: no step was traced\n"
    assert list(tmp_path.iterdir()) == []


# -- TensorBoard -------------------------------------------------------------------------------------------------------

needs_tensorboard = pytest.mark.skipif(
    not (find_spec("tensorboard") and find_spec("torch_tb_profiler")), reason="needs dtlint[tensorboard]"
)


@contextmanager
def tensorboard(folder: Path, port: int) -> Iterator[str]:
    """TensorBoard as `dtlint profile --tensorboard` starts it; gives the address of the plugin's API."""
    command = [sys.executable, "-m", "dtlint", "profile", str(folder), "--tensorboard", "--port", str(port)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        yield f"http://127.0.0.1:{port}/data/plugin/pytorch_profiler"
    finally:
        server.kill()
        server.wait()


def asked(base: str, what: str) -> Any:
    with urlopen(f"{base}/{what}", timeout=10) as answer:
        return json.loads(answer.read())


def waited_for(base: str, runs: int) -> list[str]:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        try:
            told = asked(base, "runs")
            if len(told["runs"]) == runs and not told["loading"]:
                return sorted(told["runs"])
        except OSError:
            pass
        time.sleep(0.3)
    raise AssertionError("TensorBoard did not load the runs in 90 s")


@needs_tensorboard
def test_tensorboard_tells_the_run_and_our_events_change_none_of_its_numbers(dtlint: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("STEPS", "2"))
    assert dtlint("trace", "-q", "--profile", "logs/with", "train.py").code == 0
    trace = profile_of(tmp_path / "logs" / "with")
    assert marks(trace, "X")
    plain = {**trace, "traceEvents": [event for event in trace["traceEvents"] if event.get("pid") != PID]}
    (tmp_path / "logs" / "without").mkdir()
    (tmp_path / "logs" / "without" / "train_0.1.pt.trace.json").write_text(json.dumps(plain))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tensorboard(tmp_path / "logs", port) as base:
        assert waited_for(base, 2) == ["with", "without"]
        told = {}
        for run in ("with", "without"):
            (worker,) = asked(base, f"workers?run={run}&view=Overview")
            of = f"run={run}&worker={worker}&span={asked(base, f'spans?run={run}&worker={worker}')[0]}"
            told[run] = [
                asked(base, f"{page}?{of}&{view}")
                for page, view in (
                    ("overview", "view=Overview"),
                    ("operation", "view=Operator&group_by=Operation"),
                    ("operation/table", "view=Operator&group_by=Operation"),
                    ("operation/table", "view=Operator&group_by=OperationAndInputShape"),
                )
            ]
    assert told["with"] == told["without"]
    names = {row["name"] for row in told["with"][2]["data"]}
    assert {"aten::mul", "aten::addmm", "aten::_to_copy"} <= names


@needs_tensorboard
def test_a_port_in_use_is_refused_in_one_line(dtlint: Run, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = dtlint("profile", ".", "--tensorboard", "--port", str(port))
    assert done.code == 2
    assert done.err.endswith(f" profile: port {port} is in use; give another with --port\n")


def test_a_plugin_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dtlint.cli import main, profile

    monkeypatch.setattr(profile, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as end:
        main(["profile", str(tmp_path), "--tensorboard"])
    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(
        " profile: tensorboard is not installed here; install it with: pip install 'dtlint[tensorboard]'\n"
    )
