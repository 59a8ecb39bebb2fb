"""The reading process, as the server talks to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dtlint.server.options import Options
from dtlint.server.processes import Overtaken, receive, send
from dtlint.server.tasks import Checked, Task, Told, WholeProject

TEXT = "import torch\n\nx = torch.ones(3).half()\nx = x.half().float()\nprint(x)\n"


def task(revision: int, text: str, folder: Path) -> Task:
    return Task("a.py", revision, folder / "a.py", "a.py", text.encode(), {}, Options())


@pytest.mark.parametrize("forks", [True, False], ids=["forking", "without forking, as on Windows"])
def test_each_task_is_answered_and_the_newest_counts(tmp_path: Path, forks: bool) -> None:
    without = "" if forks else "import os; del os.fork; "
    code = f"import sys; sys.path[:] = {sys.path!r}; {without}from dtlint.server.processes import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path
    ) as done:
        assert done.stdin is not None and done.stdout is not None
        send(done.stdin, task(1, TEXT, tmp_path))  # type: ignore[arg-type]
        answers = [receive(done.stdout) for _ in range(3)]  # type: ignore[arg-type]
        assert [type(one) for one in answers] == [Checked, Told, WholeProject]
        assert {one.revision for one in answers} == {1}
        assert answers[1].tables is not None
        for revision in range(2, 9):
            send(done.stdin, task(revision, TEXT + f"y = {revision}\n", tmp_path))  # type: ignore[arg-type]
        while not isinstance(answer := receive(done.stdout), WholeProject) or answer.revision < 8:  # type: ignore[arg-type]
            assert answer is not None
        send(done.stdin, Overtaken("a.py"))  # type: ignore[arg-type]
        done.stdin.close()
        assert receive(done.stdout) is None  # type: ignore[arg-type]
    assert done.returncode == 0
