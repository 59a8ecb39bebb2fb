"""What `dtlint infer` keeps of a reading: found again while nothing has changed, and never when something has.

Every test of what changes asks three times: what a reading tells before, what is told after, and what a reading without
the cache tells then, which must be the same and not what it was before.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dtlint.cli import infer as module
from dtlint.cli import main
from dtlint.infer.claims.account import Account

PROGRAM = """\
import torch
from helper import made

x = made()
y = x * 2
try:
    import extra
    z = torch.ones(2).half()
except ImportError:
    z = torch.ones(2)
print(z)
"""
HALF = "import torch\n\ndef made():\n    return torch.ones(2, dtype=torch.float16)\n"
DOUBLE = HALF.replace("float16", "float64")

OUTPUTS = [
    ("program.py",),
    ("program.py", "--output-format", "json"),
    ("--at", "program.py:5:5"),
    ("--at", "program.py:5:1", "--output-format", "json"),
    ("program.py", "--at", "helper.py:4:12"),
]


SYS_PATH = module._installed
"""The folders that imports are really looked for in."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with a module beside it, and a folder for packages that imports are looked for in."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "program.py").write_text(PROGRAM)
    (folder / "helper.py").write_text(HALF)
    packages = tmp_path / "packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "__init__.py").write_text("")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(module, "_installed", lambda: [packages])
    return folder


@pytest.fixture
def no_reading(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on what is told must be known."""
    return lambda: monkeypatch.setattr(module, "_read", lambda *_: pytest.fail("the program was read again"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["infer", *arguments])


def told(*arguments: str) -> str:
    result = run(*(arguments or ("program.py",)))
    assert result.exit_code == 0, result.output
    return result.output


def read(*arguments: str) -> str:
    """What a reading tells now."""
    return told(*(arguments or ("program.py",)), "--no-cache")


def entries(folder: Path = Path()) -> list[Path]:
    found = (folder / ".dtlint_cache" / "infer").glob("??/*")
    return sorted(found, key=lambda path: path.stat().st_mtime_ns)


# -- found again -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_what_is_known_is_told_byte_for_byte(arguments: tuple[str, ...], no_reading: Callable[[], None]) -> None:
    fresh = read(*arguments)
    assert told(*arguments) == fresh
    no_reading()
    assert told(*arguments) == fresh


@pytest.mark.parametrize("more", [(), ("--output-format", "json")], ids=["text", "json"])
def test_signatures_are_told_byte_for_byte(
    more: tuple[str, ...], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import torch\nfrom torch import Tensor\nfrom helper import half\ndef f(x: Tensor):\n    return x.pow(2) + 1e-8\n"
    (project / "library.py").write_text(code)
    fresh = read("--signatures", "library.py", *more)
    assert told("--signatures", "library.py", *more) == fresh
    with monkeypatch.context() as patch:
        patch.setattr(module, "_read_signatures", lambda *_: pytest.fail("the file was read again"))
        assert told("--signatures", "library.py", *more) == fresh
    (project / "library.py").write_text(code.replace("1e-8", "1e-3"))
    changed = told("--signatures", "library.py", *more)
    assert changed != fresh
    assert changed == read("--signatures", "library.py", *more)


def test_one_reading_is_enough_for_every_output_and_every_place(no_reading: Callable[[], None]) -> None:
    fresh = [read(*arguments) for arguments in OUTPUTS]
    told()
    no_reading()
    assert [told(*arguments) for arguments in OUTPUTS] == fresh
    assert "is known to be a tensor" in run("--at", "program.py:1:1").output


def test_colours_are_no_part_of_what_is_kept(monkeypatch: pytest.MonkeyPatch, no_reading: Callable[[], None]) -> None:
    told()
    monkeypatch.setenv("FORCE_COLOR", "1")
    fresh = read()
    no_reading()
    assert told() == fresh
    assert "\x1b[" in fresh


def test_a_notebook_is_told_by_cell(no_reading: Callable[[], None]) -> None:
    cells = ["%%time\nimport torch\nx = torch.ones(2)\n", "!ls\ny = x.half()"]
    document = {"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}, "nbformat": 4}
    Path("n.ipynb").write_text(json.dumps(document))
    outputs = [("n.ipynb",), ("n.ipynb", "--output-format", "json"), ("--at", "n.ipynb:cell 2:2:1")]
    fresh = [read(*arguments) for arguments in outputs]
    told(*outputs[0])
    no_reading()
    assert [told(*arguments) for arguments in outputs] == fresh
    assert "n.ipynb:cell 2:2:5: " in fresh[2]


def test_paths_come_out_as_they_would_from_where_one_is(
    project: Path, monkeypatch: pytest.MonkeyPatch, no_reading: Callable[[], None]
) -> None:
    (project / "dtlint.toml").write_text("")  # so that both folders have one cache
    (project / "below").mkdir()
    below = [
        ("../program.py",),
        (str(project / "program.py"), "--output-format", "json"),
        ("--at", "../program.py:5:5"),
    ]
    above = [("program.py",), ("program.py", "--output-format", "json"), ("--at", f"{project}/program.py:5:5")]
    monkeypatch.chdir("below")
    fresh_below = [read(*arguments) for arguments in below]
    monkeypatch.chdir(project)
    fresh_above = [read(*arguments) for arguments in above]
    told()
    no_reading()
    assert [told(*arguments) for arguments in above] == fresh_above
    monkeypatch.chdir("below")
    assert [told(*arguments) for arguments in below] == fresh_below
    assert "program.py:5:5" in fresh_above[2] and fresh_above[2] != fresh_below[2]


# -- stale -------------------------------------------------------------------------------------------------------------


def _changed_unseen(project: Path) -> None:
    """Another content of the same size, at the same time."""
    helper = project / "helper.py"
    status = helper.stat()
    helper.write_text(DOUBLE)
    os.utime(helper, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (helper.stat().st_size, helper.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


def _shadowed(project: Path) -> None:
    (project / "helper").mkdir()
    (project / "helper" / "__init__.py").write_text(DOUBLE)


def _linked_elsewhere(project: Path) -> None:
    (project / "other.txt").write_text(DOUBLE)
    (project / "helper.py").unlink()
    (project / "helper.py").symlink_to("other.txt")


def _installed(project: Path) -> None:
    (project.parent / "packages" / "extra.py").write_text("")


def _installed_compiled(project: Path) -> None:
    (project.parent / "packages" / "extra.cpython-311-x86_64-linux-gnu.so").write_text("")


def _installed_for_editing(project: Path) -> None:
    (project.parent / "packages" / "__editable___extra_finder.py").write_text("MAPPING = {'extra': '/somewhere'}\n")


def _torch_gone(project: Path) -> None:
    """Then dtlint looks at an environment of its own, and what is not there may be where the program runs."""
    (project.parent / "packages" / "torch" / "__init__.py").unlink()
    (project.parent / "packages" / "torch").rmdir()


@pytest.mark.parametrize(
    "change",
    [
        _changed_unseen,
        lambda project: (project / "helper.py").unlink(),
        _shadowed,
        _linked_elsewhere,
        lambda project: (project / "helper.py").write_text("def made(:\n"),
        lambda project: (project / "extra.py").write_text(""),
        _installed,
        _installed_compiled,
        _installed_for_editing,
        _torch_gone,
    ],
    ids=[
        *("a followed file with its size and time kept", "a followed file gone", "a package that shadows a module"),
        *("a link to another file", "a followed file that no longer parses", "a module that was missing"),
        *("a package installed", "one that is compiled", "one for editing", "torch gone"),
    ],
)
def test_what_has_changed_is_read_again(change: Callable[[Path], None], project: Path) -> None:
    before = told()
    assert told() == before
    change(project)
    after = told()
    assert after == read() != before
    assert told() == after


def test_a_module_that_appears_in_an_earlier_folder_counts(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = project.parent / "first", project.parent / "second"
    for folder in (first, second):
        folder.mkdir()
    (project / "helper.py").rename(second / "helper.py")
    monkeypatch.setattr(module, "_installed", lambda: [first, second])
    before = told()
    (first / "helper.py").write_text(DOUBLE)
    assert told() == read() != before


def test_other_folders_to_import_from_are_another_reading(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("half", HALF), ("double", DOUBLE)):
        (project.parent / name).mkdir()
        (project.parent / name / "helper.py").write_text(text)
    (project / "helper.py").unlink()
    half, double, usual = str(project.parent / "half"), str(project.parent / "double"), sys.path
    monkeypatch.setattr(module, "_installed", SYS_PATH)
    seen = []
    for folders in ([half, double], [double, half], [half], []):
        monkeypatch.setattr(sys, "path", [*folders, *usual])
        assert told() == read()
        seen.append(told())
    assert seen[0] == seen[2]
    assert len(set(seen)) == 3


def test_a_folder_told_from_here_is_another_one_elsewhere(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "dtlint.toml").write_text("")  # so that both folders have one cache
    (project / "helper.py").unlink()
    monkeypatch.setattr(module, "_installed", lambda: [Path("lib")])
    outputs = []
    for name, text in (("a", HALF), ("b", DOUBLE)):
        (project / name / "lib").mkdir(parents=True)
        (project / name / "lib" / "helper.py").write_text(text)
        monkeypatch.chdir(project / name)
        outputs.append(told("../program.py"))
        assert outputs[-1] == read("../program.py")
    assert outputs[0] != outputs[1]


def test_a_program_that_changes_and_changes_back(project: Path, no_reading: Callable[[], None]) -> None:
    before = told()
    (project / "program.py").write_text(PROGRAM.replace("x * 2", "x.int()"))
    assert told() == read() != before
    (project / "program.py").write_text(PROGRAM)
    no_reading()
    assert told() == before


def test_another_program_of_the_same_text_is_another(project: Path) -> None:
    (project / "other").mkdir()
    (project / "other" / "program.py").write_text(PROGRAM)
    (project / "other" / "helper.py").write_text(DOUBLE)
    (project / "copy.py").write_text(PROGRAM)
    before = told("program.py", "--output-format", "json")
    for other in ("other/program.py", "copy.py"):
        assert told(other, "--output-format", "json") == read(other, "--output-format", "json") != before


@pytest.mark.parametrize("what", ["dtlint.cache.__version__", "dtlint.cache.sys.version", "dtlint.__path__"])
def test_another_dtlint_or_another_python_reads_again(
    what: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told()
    monkeypatch.setattr(what, [str(project)] if what.endswith("path__") else "another")
    told()
    assert len(entries()) == 2


def test_a_module_that_python_has_built_in_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = told()
    monkeypatch.setattr(sys, "builtin_module_names", (*sys.builtin_module_names, "extra"))
    assert told() == read() != before


def test_a_file_that_changes_after_it_was_read_is_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry speaks of what it was when it was read."""
    usual = module._read

    def read_and_change(*arguments: object) -> tuple[Account, bool]:
        result = usual(*arguments)  # type: ignore[arg-type]
        (project / "helper.py").write_text(DOUBLE)
        return result

    monkeypatch.setattr(module, "_read", read_and_change)
    before = told()
    monkeypatch.setattr(module, "_read", usual)
    assert told() == read() != before


def test_a_run_that_keeps_what_has_changed_meanwhile_does_no_harm(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run has read the new file, and kept what it told, before this one keeps what the old one told."""
    usual = module._read

    def read_slowly(*arguments: object) -> tuple[Account, bool]:
        result = usual(*arguments)  # type: ignore[arg-type]
        (project / "helper.py").write_text(DOUBLE)
        monkeypatch.setattr(module, "_read", usual)
        assert told() == read()
        return result

    monkeypatch.setattr(module, "_read", read_slowly)
    before = told()
    assert told() == read() != before


# -- what is not kept --------------------------------------------------------------------------------------------------


def test_a_reading_that_was_broken_off_says_so_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.infer.interproc.engine.BUDGET", -1)
    said = [run("program.py").stderr for _ in range(2)]
    assert said[0] == said[1]
    assert "takes too long" in said[0]
    assert len(entries()) == 1


def test_a_reading_that_failed_says_so_again(project: Path) -> None:
    (project / "program.py").write_text("def f(:\n")
    said = [run("program.py").output for _ in range(2)]
    assert said[0] == said[1]
    assert "does not parse" in said[0]
    assert entries() == []


def test_what_memory_was_short_for_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint.infer.interproc import project as modules

    usual = modules.parsed

    def starving(source: str | bytes) -> ast.Module:
        if isinstance(source, bytes):  # an imported module
            raise MemoryError
        return usual(source)

    monkeypatch.setattr(modules, "parsed", starving)
    poor = told()
    assert entries() == []
    monkeypatch.setattr(modules, "parsed", usual)
    assert told() == read() != poor


def test_without_the_cache_nothing_is_kept_and_nothing_used(project: Path) -> None:
    fresh = told("program.py", "--no-cache")
    told("--at", "program.py:5:5", "--no-cache")
    assert not (project / ".dtlint_cache").exists()
    told()
    (entry,) = entries()
    _tell_lies(entry)
    assert told() != fresh
    assert told("program.py", "--no-cache") == fresh


def _tell_lies(entry: Path) -> None:
    """Another dtype in an entry that is good: what comes from it shows that it was used."""
    known = zlib.decompress(entry.read_bytes())
    assert b"float16" in known
    entry.write_bytes(zlib.compress(known.replace(b"float16", b"float01")))


# -- the folder --------------------------------------------------------------------------------------------------------


def _packed(value: object) -> bytes:
    return zlib.compress(json.dumps(value).encode())


NOTHING_ASKED = {"files": {}, "folders": {}, "names": {}, "contents": {}}


@pytest.mark.parametrize(
    "content",
    [
        *(
            b"",
            b"\x00",
            b"{}",
            zlib.compress(b""),
            zlib.compress(b"{"),
            zlib.compress(b"\xff"),
            zlib.compress(b"[" * 99_999),
        ),
        *(_packed(None), _packed([]), _packed({}), _packed({"answers": [], "told": {}})),
        _packed({"answers": {**NOTHING_ASKED, "names": []}, "told": {}}),
        _packed({"answers": NOTHING_ASKED, "told": {}}),
        _packed({"answers": NOTHING_ASKED, "told": []}),
        _packed({"answers": NOTHING_ASKED, "told": {"paths": [1], "dtypes": []}}),
    ],
)
def test_a_broken_entry_is_done_without_and_mended(content: bytes, no_reading: Callable[[], None]) -> None:
    before = told()
    (entry,) = entries()
    whole = entry.read_bytes()
    entry.write_bytes(content)
    assert told() == before
    assert entry.read_bytes() == whole
    no_reading()
    assert told() == before


def test_half_an_entry_is_none() -> None:
    before = told()
    (entry,) = entries()
    whole = entry.read_bytes()
    for length in (1, len(whole) // 2, len(whole) - 1):
        entry.write_bytes(whole[:length])
        assert told() == before
        assert entry.read_bytes() == whole


def test_an_entry_that_cannot_be_read_is_done_without() -> None:
    before = told()
    (entry,) = entries()
    entry.unlink()
    entry.mkdir()
    assert told() == before


def test_a_cache_that_cannot_be_written_is_done_without(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    for method in ("mkdir", "write_bytes", "write_text", "touch", "replace", "unlink"):
        monkeypatch.setattr(Path, method, refused)
    results = [run("program.py") for _ in range(2)]
    assert [(result.exit_code, result.stderr) for result in results] == [(0, ""), (0, "")]
    assert results[0].stdout == results[1].stdout == read()
    assert not (project / ".dtlint_cache").exists()


def test_a_cache_that_may_only_be_read_is_read(
    project: Path, monkeypatch: pytest.MonkeyPatch, no_reading: Callable[[], None]
) -> None:
    before = told()
    (entry,) = entries()
    os.utime(entry, (0, 0))  # so old that a run would make it young again

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "utime", refused)
    no_reading()
    assert told() == before


def test_a_file_in_the_way_is_left_alone(project: Path) -> None:
    (project / ".dtlint_cache").write_text("in the way")
    assert told() == told() == read()
    assert (project / ".dtlint_cache").read_text() == "in the way"


def test_a_configuration_that_cannot_be_read_is_no_matter(project: Path) -> None:
    (project / "dtlint.toml").write_text("no = such = thing")
    assert told() == told() == read()


def test_it_lies_beside_the_configuration(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "dtlint.toml").write_text("")
    (project / "below").mkdir()
    monkeypatch.chdir("below")
    told("../program.py")
    assert len(entries(project)) == 1
    assert list(Path().iterdir()) == []


def test_clean_deletes_it(project: Path) -> None:
    told()
    assert entries()
    CliRunner().invoke(main, ["clean"])
    assert sorted(path.name for path in project.iterdir()) == ["helper.py", "program.py"]


def test_what_is_too_much_is_deleted_the_oldest_first(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told()
    (oldest,) = entries()
    os.utime(oldest, (oldest.stat().st_mtime - 60,) * 2)
    monkeypatch.setattr("dtlint.infer.claims.kept.MOST_BYTES", oldest.stat().st_size * 3 // 2)
    (project / "program.py").write_text(PROGRAM.replace("* 2", "* 3"))
    told()
    (entry,) = entries()
    assert entry != oldest


def test_two_runs_at_once_tell_the_same(project: Path) -> None:
    command = [sys.executable, "-m", "dtlint", "infer", "program.py"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [run.communicate() for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0] == outputs[1]
    assert outputs[0][1] == ""
    (entry,) = entries()
    assert entry.parent.parent.name == "infer"
    assert list(entry.parent.iterdir()) == [entry], "no half-written one is left"
    _tell_lies(entry)
    third = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert third.stdout == outputs[0][0].replace("float16", "float01"), "what they have kept is used"
