"""The reading process, as the server talks to it."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dtlint.server.options import Options
from dtlint.server.processes import Overtaken, _Beforehand, _cold, receive, send
from dtlint.server.tasks import Checked, Inferred, Reading, Task, WholeProject

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        assert [type(one) for one in answers] == [Checked, Inferred, WholeProject]
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


STEADY = "import torch\n" + "".join(f"\n\ndef f{n}(x):\n    return x.float() + {n}\n" for n in range(100))
EDITED = "import torch\n\n\ndef features(count):\n    return torch.ones(count, 8)\n"
WRONG = EDITED.replace("8)", "8, dtype=torch.float64)")
BETWEEN = "from edited import features\n\nBATCH = features(4)\n"
PROGRAM = """\
import torch
from between import BATCH
from steady import f1

score = torch.nn.Linear(8, 1, dtype=torch.float32)
print(score(f1(BATCH) + BATCH))
"""


def of_program(folder: Path, revision: int, edited: str, text: str = PROGRAM) -> Task:
    """The task of a program, where the module that it rests on is open, too."""
    open = (folder / "train.py", folder / "edited.py")
    unsaved = {str(open[1]): edited.encode()}
    return Task("train.py", revision, open[0], "train.py", text.encode(), unsaved, Options(), open=open)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for name, text in {"steady": STEADY, "edited": EDITED, "between": BETWEEN, "train": PROGRAM}.items():
        (tmp_path / f"{name}.py").write_text(text)
    limit = sys.getrecursionlimit()
    yield tmp_path
    sys.setrecursionlimit(limit)  # what reads beforehand sets both, for its own process
    gc.unfreeze()


def test_what_rests_on_no_open_file_holds_while_another_one_is_edited(folder: Path) -> None:
    before, after = of_program(folder, 1, EDITED), of_program(folder, 2, WRONG)
    assert before.path is not None
    cold = _cold(before)
    assert Reading(before, cold).checked().diagnostics == ()
    read = cold.reading(before.path)
    assert read is not None
    steady, modules = read.independent({*before.open}), read.independent({before.path})
    assert {*steady.by_body, *steady.by_functions} == {"steady"}
    assert {*modules.by_body, *modules.by_functions} == {"steady", "edited", "between"}
    hub = _Beforehand(before, steady)
    assert hub.holds(after)
    hub.read(before, modules)
    assert hub.holds(before) and not hub.holds(after)
    [found] = Reading(after, _Beforehand(before, steady).begin(after)).checked().diagnostics
    assert (found.code, found.location.span.line) == ("DT302", 6)


def test_a_file_that_is_opened_as_it_lies_on_the_disk_changes_nothing(folder: Path) -> None:
    task = of_program(folder, 1, EDITED)
    closed = Task(task.key, 1, task.path, task.shown, task.data, {}, task.options)
    reader = _cold(closed)
    Reading(closed, reader).checked()
    read = reader.reading(closed.path)
    assert read is not None and closed.path is not None
    assert _Beforehand(closed, read.independent({closed.path})).holds(task)


def test_edits_of_a_file_and_of_one_that_it_imports_are_told_of_one_after_the_other(folder: Path) -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}; from dtlint.server.processes import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    ) as done:
        assert done.stdin is not None and done.stdout is not None
        for revision, (edited, more) in enumerate(
            [(EDITED, ""), (EDITED, "#"), (WRONG, "#"), (WRONG, "##"), (EDITED, "##"), (EDITED, "###"), (WRONG, "###")]
        ):
            send(done.stdin, of_program(folder, revision, edited, PROGRAM + more))  # type: ignore[arg-type]
            while not isinstance(answer := receive(done.stdout), Checked) or answer.revision < revision:  # type: ignore[arg-type]
                assert answer is not None
            assert [one.code for one in answer.diagnostics] == ["DT302"] * (edited == WRONG)
        done.stdin.close()
