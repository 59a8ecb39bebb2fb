"""Which files are found below what was named."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dtlint.config import Configuration
from dtlint.source.discover import UnfitPath, discover, exclusion
from dtlint.source.patterns import PatternError


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(*names: str, text: str = "") -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


def found(*paths: str, force_exclude: bool = False) -> list[str]:
    configuration = Configuration(force_exclude=force_exclude)
    return [path.as_posix() for path in discover(paths or ["."], configuration.settings_for)]


def test_python_stubs_and_notebooks_are_found_sorted() -> None:
    files("b.py", "a.pyi", "sub/n.ipynb", "sub/a.py", "README.md", "data.json", "script")
    assert found() == ["a.pyi", "b.py", "sub/a.py", "sub/n.ipynb"]


def test_each_file_is_found_once() -> None:
    files("a.py", "sub/b.py")
    assert len(found("a.py", ".", "./a.py", "sub", str(Path("a.py").absolute()))) == 2


def test_directories_without_ones_own_code_are_left_out() -> None:
    files("a.py", "build/b.py", ".venv/c.py", "x/site-packages/d.py", "x/__pycache__/e.py", ".git/hook.py")
    files("env/pyvenv.cfg", "env/f.py", "envs/g.py")
    assert found() == ["a.py", "envs/g.py"]


def test_what_is_named_is_checked_wherever_it_lies() -> None:
    files(".gitignore", text=".venv\n*.gen.py\nscratch/\n")
    files(
        ".venv/lib/site-packages/timm/a.py",
        ".venv/lib/site-packages/timm/build/b.py",
        "x.gen.py",
        "scratch/c.py",
        "odd",
    )
    files(".git/HEAD")
    assert found(".venv/lib/site-packages/timm") == [".venv/lib/site-packages/timm/a.py"]
    assert found("x.gen.py") == ["x.gen.py"]
    assert found("scratch") == ["scratch/c.py"]
    assert found("odd") == ["odd"]
    assert found() == []


def test_force_exclude_excludes_what_is_named() -> None:
    files("dtlint.toml", text='extend-exclude = ["legacy/", "*_pb2.py"]\n')
    files("legacy/a.py", "x_pb2.py", "build/b.py", "c.py")
    named = ["legacy/a.py", "x_pb2.py", "build/b.py", "c.py"]
    assert found(*named) == sorted(named)
    assert found(*named, force_exclude=True) == ["c.py"]
    assert found() == ["c.py"]


def test_exclude_replaces_the_usual_directories_and_is_relative_to_its_file() -> None:
    files("dtlint.toml", text='exclude = ["/old"]\n')
    files("old/a.py", "sub/old/b.py", "build/c.py")
    assert found() == ["build/c.py", "sub/old/b.py"]
    assert found("sub") == ["sub/old/b.py"]


def test_a_nearer_configuration_excludes_below_itself() -> None:
    files("dtlint.toml", "sub/a.py", "a.py")
    files("sub/dtlint.toml", text='extend-exclude = ["a.py"]\n')
    assert found() == ["a.py"]


def test_nested_ignore_files_override_outer_ones() -> None:
    files(".git/HEAD", "a.py", "keep/a.py", "keep/b.py", "keep/deep/b.py")
    files(".gitignore", text="a.py\n")
    files("keep/.gitignore", text="# back in\n!a.py\n/b.py\n")
    assert found() == ["keep/a.py", "keep/deep/b.py"]
    assert found("keep/deep") == ["keep/deep/b.py"]
    assert found("keep") == ["keep/a.py", "keep/deep/b.py"]


def test_ignore_files_above_count_up_to_the_repository() -> None:
    files(".gitignore", text="*.py\n")
    files("repo/.git/HEAD", "repo/src/a.py", "repo/src/b.py")
    files("repo/.gitignore", text="/src/b.py\n")
    assert found("repo/src") == ["repo/src/a.py"]
    assert found("repo") == ["repo/src/a.py"]
    files("repo/.git/info/exclude", text="a.py\n")
    assert found("repo") == found("repo/src") == []


def test_links_are_followed_to_files_and_not_to_directories() -> None:
    files("pkg/a.py")
    Path("pkg/loop").symlink_to("..", target_is_directory=True)
    files("../outside.py")
    Path("pkg/b.py").symlink_to("../../outside.py")
    Path("pkg/gone.py").symlink_to("nowhere.py")
    assert found() == ["pkg/a.py", "pkg/b.py"]


def test_a_file_is_found_once_whatever_links_lead_to_it() -> None:
    files("src/b.py")
    Path("src/a.py").symlink_to("b.py")
    Path("here").symlink_to("src", target_is_directory=True)
    assert found() == found("src", "here") == ["src/b.py"]
    assert found("here") == ["here/b.py"]
    assert found("src/a.py") == found("src/a.py", ".") == found(".", "src/a.py") == ["src/a.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_by_name_and_left_out_below_a_directory() -> None:
    files("a.py")
    os.mkfifo("b.py")
    assert found() == ["a.py"]
    with pytest.raises(UnfitPath, match=r"b\.py is no regular file"):
        discover(["b.py"], Configuration().settings_for)


@pytest.mark.parametrize(
    ("path", "by"),
    [
        ("a.py", None),
        ("a.gen.py", "`extend-exclude`"),
        ("old/a.py", "`exclude`"),
        ("scratch/a.py", "`.gitignore`"),
        ("build/a.py", None),
    ],
)
def test_what_excludes_a_file_is_known(path: str, by: str | None) -> None:
    files(".git/HEAD", path)
    files(".gitignore", text="scratch\n")
    files("dtlint.toml", text='exclude = ["old"]\nextend-exclude = ["*.gen.py"]\n')
    assert exclusion(Path(path), Configuration().settings_for(Path(path))) == by


def test_the_built_in_exclusions_are_known_too() -> None:
    files("build/a.py")
    assert exclusion(Path("build/a.py"), Configuration().settings_for(Path())) == (
        "the built-in `exclude`, for it lies in build"
    )


def test_a_malformed_line_of_gitignore_matches_nothing_as_for_git() -> None:
    files(".gitignore", text="build\\\n!\nold/\n")
    files("a.py", "old/b.py")
    assert found() == ["a.py"]


@pytest.mark.parametrize("setting", ["exclude", "extend-exclude"])
def test_a_malformed_pattern_of_settings_is_refused(setting: str) -> None:
    files("a.py")
    files("dtlint.toml", text=f"{setting} = ['docs/', 'build\\']\n")
    with pytest.raises(PatternError, match=rf"dtlint\.toml: .*{setting} has 'build\\\\', which is no pattern"):
        found()


def test_a_directory_may_be_named_like_a_file() -> None:
    files("x.py/a.py")
    assert found() == found("x.py") == ["x.py/a.py"]


def test_a_path_that_does_not_exist_is_refused_by_name() -> None:
    files("a.py")
    Path("gone.py").symlink_to("nowhere.py")
    for missing in ("b.py", "gone.py"):
        with pytest.raises(UnfitPath, match=missing):
            discover(["a.py", missing], Configuration().settings_for)


def test_an_empty_path_is_not_the_current_directory() -> None:
    files("a.py")
    with pytest.raises(UnfitPath, match="is empty"):
        found("")


def test_force_exclude_leaves_out_what_git_ignores() -> None:
    files(".git/HEAD")
    files(".gitignore", text="ignored/\n*.gen.py\n")
    files("ignored/x.py", "a.gen.py", "c.py")
    named = ["ignored/x.py", "a.gen.py", "c.py"]
    assert found(*named) == sorted(named)
    assert found(*named, force_exclude=True) == ["c.py"]


def test_a_directory_that_cannot_be_read_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    files("a.py", "d/b.py")
    forbid(monkeypatch, "d")
    assert found() == ["a.py", "d"]


def forbid(monkeypatch: pytest.MonkeyPatch, directory: str) -> None:
    """Let a directory refuse to be listed, as it would refuse another user."""
    listing = os.scandir

    def scandir(path: str) -> Iterator[os.DirEntry[str]]:
        if os.path.basename(path) == directory:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listing(path)

    monkeypatch.setattr(os, "scandir", scandir)
