"""The disk as a reading asks it: every question is remembered, and a change of any answer is seen."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dtlint.infer.interproc.disk import Disk

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "part.py").write_text("x = 1\n")
    (tmp_path / "top.py").write_text("y = 1\n")
    return tmp_path


def questioned(folder: Path) -> Disk:
    disk = Disk()
    disk.is_file(folder / "top.py")
    disk.is_file(folder / "missing.py")
    disk.is_folder(folder / "package")
    disk.is_folder(folder / "nowhere")
    disk.names(folder, "*.py")
    disk.names(folder, "*/*.py")
    disk.read(folder / "top.py")
    return disk


def test_it_answers_as_pathlib_does(folder: Path) -> None:
    (folder / ".hidden.py").write_text("")
    (folder / "package" / "folder.py").mkdir()
    disk = Disk()
    assert disk.is_file(folder / "top.py") and not disk.is_file(folder / "package")
    assert disk.is_folder(folder / "package") and not disk.is_folder(folder / "top.py")
    for pattern in ("*.py", "*/*.py", "top.*", "*.so"):
        found = sorted(str(path.relative_to(folder)) for path in folder.glob(pattern))
        assert disk.names(folder, pattern) == [name.replace(os.sep, "/") for name in found]
    assert disk.names(folder / "nowhere", "*") == disk.names(folder / "top.py", "*") == []
    assert disk.read(folder / "top.py") == b"y = 1\n"
    for unreadable in ("missing.py", "package"):
        with pytest.raises(OSError):
            disk.read(folder / unreadable)


def test_one_question_has_one_answer(folder: Path) -> None:
    disk = questioned(folder)
    (folder / "top.py").write_text("y = 2\n")
    (folder / "missing.py").write_text("")
    assert disk.read(folder / "top.py") == b"y = 1\n"
    assert not disk.is_file(folder / "missing.py")
    assert disk.names(folder, "*.py") == ["top.py"]


def test_of_a_file_that_is_asked_for_a_word_only_the_answer_is_kept(folder: Path) -> None:
    disk = Disk()
    assert disk.holds(folder / "top.py", b"y =") and not disk.holds(folder / "top.py", b"torch")
    with pytest.raises(OSError):
        disk.holds(folder / "missing.py", b"torch")
    answers = disk.answers()
    assert set(answers["contents"]) == {str(folder / "top.py"), str(folder / "missing.py")}
    assert Disk().gives(answers)
    (folder / "top.py").write_text("import torch\n")
    assert not disk.holds(folder / "top.py", b"torch")  # one question has one answer
    assert not Disk().gives(answers)


def test_a_file_that_changes_between_two_questions_has_no_answer_that_holds(folder: Path) -> None:
    disk = Disk()
    disk.holds(folder / "top.py", b"torch")
    (folder / "top.py").write_text("import torch\n")
    assert disk.read(folder / "top.py") == b"import torch\n"
    assert not Disk().gives(disk.answers())
    (folder / "top.py").write_text("y = 1\n")
    assert not Disk().gives(disk.answers())


def test_the_answers_survive_json_and_are_given_again(folder: Path) -> None:
    answers = json.loads(json.dumps(questioned(folder).answers()))
    assert Disk().gives(answers)
    (folder / "unasked.txt").write_text("nobody asked for it")
    (folder / "package" / "part.py").write_text("what is in it was not asked\n")
    assert Disk().gives(answers)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "top.py").write_text("y = 2\n"),
        lambda folder: (folder / "top.py").unlink(),
        lambda folder: (folder / "missing.py").write_text(""),
        lambda folder: (folder / "nowhere").mkdir(),
        lambda folder: (folder / "package").rename(folder / "other"),
        lambda folder: (folder / "package" / "another.py").write_text(""),
    ],
    ids=["another content", "gone", "a new file", "a new folder", "a folder gone", "another name"],
)
def test_another_answer_is_seen(folder: Path, change: Callable[[Path], object]) -> None:
    answers = questioned(folder).answers()
    change(folder)
    assert not Disk().gives(answers)


@pytest.mark.parametrize("kind", ["files", "folders", "names", "contents"])
def test_every_kind_of_question_counts(folder: Path, kind: str) -> None:
    """Above, one change may show in several answers; here each kind is alone."""
    answers = questioned(folder).answers()
    alone = {other: known if other == kind else {} for other, known in answers.items()}
    assert Disk().gives(alone)
    (folder / "top.py").unlink()
    (folder / "package" / "part.py").unlink()
    (folder / "package").rmdir()
    assert not Disk().gives(alone)


def test_what_cannot_be_read_is_an_answer_too(folder: Path) -> None:
    disk = Disk()
    with pytest.raises(OSError):
        disk.read(folder / "missing.py")
    assert Disk().gives(disk.answers())
    (folder / "missing.py").write_text("")
    assert not Disk().gives(disk.answers())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(OSError):
        Disk().read(tmp_path / "pipe.py")


ASKING = {"is_file", "is_dir", "exists", "stat", "read_bytes", "read_text", "glob", "rglob", "iterdir", "open"}
"""What asks the disk, as a method of paths or as a function."""
TELLING = {"os", "glob", "shutil", "importlib", "time", "datetime", "random", "platform", "locale", "subprocess"}
"""Modules that tell of the machine and the moment."""


def asked_past_it(tree: ast.AST) -> list[str]:
    """What in a module asks the disk itself, or what else may be different another time."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            owner, _, name = called.rpartition(".")
            if (name in ASKING and not owner.endswith("disk")) or called == "Source.read":
                found.append(called)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] in TELLING]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in TELLING:
            found.append(node.module or "")
    return found


def test_nothing_of_inference_asks_past_it() -> None:
    """What is not asked there is not remembered, and what a program is read as could change unseen."""
    files = [file for file in (ROOT / "dtlint" / "infer").rglob("*.py") if file.name != "disk.py"]
    assert files
    past = {str(file.relative_to(ROOT)): asked_past_it(ast.parse(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: found for name, found in past.items() if found} == {}
    assert asked_past_it(ast.parse("import os\npath.is_file()\nself.disk.is_file(path)\nopen(path)")) == [
        *("os", "path.is_file", "open")
    ]
