"""Which files a run reads: those named, and those below the directories named that no ignore rule leaves out.

Exclusions apply below what was named: whoever names a file or a directory inside `build/` means it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dtlint.source.patterns import of_git, of_settings
from dtlint.source.settings_file import is_settings, may_hold_precision

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["EXCLUDED", "UnfitPath", "discover", "exclusion"]

SUFFIXES = (".py", ".pyi", ".ipynb")

EXCLUDED = frozenset({
    ".bzr", ".direnv", ".dtlint_cache", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache",
    ".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv", ".vscode",
    "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist", "node_modules", "site-packages", "venv",
})  # fmt: skip
"""Directories that hold no code of one's own: Ruff's list, and the caches. One with a pyvenv.cfg is such, too."""


class UnfitPath(ValueError):
    """A path was named that does not exist, or is no file that could be read to its end."""


class Exclusions(Protocol):
    """The part of the settings that decides about whole files."""

    @property
    def exclude(self) -> tuple[str, ...] | None:
        """Patterns; None for the directories in EXCLUDED."""

    @property
    def extend_exclude(self) -> tuple[str, ...]:
        """More patterns."""

    @property
    def force_exclude(self) -> bool:
        """Do they, and the ignore files of git, hold for files given by name, too?"""

    @property
    def origin(self) -> str:
        """Where they were written, for messages."""

    @property
    def root(self) -> Path:
        """What patterns are relative to."""


SettingsFor = Callable[[Path], Exclusions]


@dataclass(frozen=True)
class _Ignore:
    """The patterns of one ignore file, or of one list of settings."""

    root: str
    spec: GitIgnoreSpec

    def judge(self, path: str) -> bool | None:
        """Is the path ignored (True), taken back in by `!pattern` (False), or not spoken of (None)?

        `path` is absolute; that of a directory ends with a slash.
        """
        below = os.path.join(self.root, "")
        if not path.startswith(below):
            return None
        return self.spec.check_file(path[len(below) :].replace(os.sep, "/")).include


def discover(paths: Iterable[str | Path], settings_for: SettingsFor) -> list[Path]:
    """The files to check, sorted; and the directories that cannot be read, so that they can be reported.

    A file is given once, whatever links lead to it: as it was named, or else where it lies.

    Raises:
        UnfitPath: one of the paths does not exist, or is a pipe or a device; nothing was read then.
        PatternError: one of the patterns in the settings is none.
    """
    given = list(paths)
    named = [Path(path) for path in given]
    if "" in given:  # a Path takes it for the current directory, which --fix would then change
        raise UnfitPath("one of the paths is empty; name a file or a directory, or `.` for the current one")
    for path in named:
        if not path.exists():
            raise UnfitPath(f"{path} does not exist; name a file or a directory that does")
        if not path.is_dir() and not path.is_file():
            raise UnfitPath(f"{path} is no regular file; name a file or a directory, or `-` for standard input")
    finder = _Finder(settings_for)
    reached = sorted((file for path in named for file in finder.below(path)), key=lambda file: file.by)
    found: dict[str, Path] = {}
    for file in reached:
        found.setdefault(file.real, file.path)
    return sorted(found.values())


def exclusion(path: Path, settings: Exclusions) -> str | None:
    """What excludes this very path: a setting, or an ignore file of its repository. None: nothing does."""
    return _Finder(lambda _: settings).forced_out(path, settings)


class _By(IntEnum):
    """How a file was reached; the first of these decides how it is shown."""

    NAME = 0
    WALK = 1
    LINK = 2


class _Reached(NamedTuple):
    path: Path
    real: str
    """Where it lies, whatever links lead there."""
    by: _By


class _Finder:
    """Walks with strings: over thousands of entries Path objects cost ten times as much."""

    def __init__(self, settings_for: SettingsFor) -> None:
        self._settings_for = settings_for

    def below(self, path: Path) -> Iterator[_Reached]:
        settings = self._settings_for(path)
        if settings.force_exclude and self.forced_out(path, settings) is not None:
            return
        if not path.is_dir():
            yield _Reached(path, os.path.realpath(path), _By.NAME)
            return
        absolute = os.path.join(os.path.abspath(path), "")
        above = [ignore for ignore in self._above(absolute) if ignore.judge(absolute) is not True]
        yield from self._walk(str(path), os.path.realpath(path), above)

    def _walk(self, directory: str, real: str, ignores: list[_Ignore]) -> Iterator[_Reached]:
        absolute = os.path.abspath(directory)
        try:
            entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):  # it has vanished meanwhile
            return
        except OSError:
            yield _Reached(Path(directory), real, _By.WALK)
            return
        settings = self._settings_for(Path(absolute))
        names = {entry.name for entry in entries}
        here = [*ignores, *self._in(absolute, names)]
        excluded = self._excluded(settings)
        for entry in entries:
            folder = entry.is_dir(follow_symlinks=False)
            if not folder and not (_is_wanted(entry) and _is_file(entry)):
                continue
            if folder and settings.exclude is None and _never_ones_own(entry):
                continue
            place = os.path.join(absolute, entry.name) + ("/" if folder else "")
            if _ignored(place, here) or (excluded is not None and excluded.judge(place)):
                continue
            within = os.path.join(real, entry.name)
            if folder:
                yield from self._walk(os.path.join(directory, entry.name), within, here)
            elif entry.is_symlink():
                yield _Reached(Path(directory, entry.name), os.path.realpath(within), _By.LINK)
            else:
                yield _Reached(Path(directory, entry.name), within, _By.WALK)

    def forced_out(self, path: Path, settings: Exclusions) -> str | None:
        """What excludes the path, as a person knows it; None where nothing does."""
        absolute = os.path.abspath(path) + ("/" if path.is_dir() else "")
        excluded = self._excluded(settings)
        if excluded is not None and excluded.judge(absolute):
            further = _Ignore(excluded.root, of_settings(settings.extend_exclude, _setting(settings))).judge(absolute)
            return "`extend-exclude`" if further else "`exclude`"
        if self._forced_out_by_git(absolute):
            return "`.gitignore`"
        below = Path(os.path.relpath(path, settings.root)).parts
        usual = next((part for part in below if part in EXCLUDED), None) if settings.exclude is None else None
        return f"the built-in `exclude`, for it lies in {usual}" if usual else None

    def _forced_out_by_git(self, absolute: str) -> bool:
        """Does git ignore the path, or a directory that it lies in?"""
        ignores = self._above(absolute)
        above = [os.path.join(parent, "") for parent in reversed(Path(absolute).parents)]
        return bool(ignores) and any(_ignored(path, ignores) for path in (*above, absolute))

    def _excluded(self, settings: Exclusions) -> _Ignore | None:
        patterns = (settings.exclude or ()) + settings.extend_exclude
        return _Ignore(str(settings.root), of_settings(patterns, _setting(settings))) if patterns else None

    def _above(self, directory: str) -> list[_Ignore]:
        """The ignore files that git reads for a directory, from its repository's root down to the one above it."""
        found: list[_Ignore] = []
        if os.path.exists(os.path.join(directory, ".git")):
            return []
        for parent in Path(directory).parents:
            found[:0] = self._in(str(parent), {".gitignore"})
            if (parent / ".git").exists():
                return [*self._in_git(parent), *found]
        return []

    def _in(self, directory: str, names: set[str]) -> list[_Ignore]:
        found = self._in_git(Path(directory)) if ".git" in names else []
        if ".gitignore" in names:
            found += self._read(Path(directory, ".gitignore"), directory)
        return found

    def _in_git(self, root: Path) -> list[_Ignore]:
        return self._read(root / ".git" / "info" / "exclude", str(root))

    def _read(self, file: Path, root: str) -> list[_Ignore]:
        try:
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        patterns = tuple(line for line in lines if line.strip() and not line.startswith("#"))
        return [_Ignore(root, of_git(patterns))] if patterns else []


def _setting(settings: Exclusions) -> str:
    return f"{settings.origin}: {'extend-exclude' if settings.exclude is None else 'exclude or extend-exclude'}"


def _never_ones_own(entry: os.DirEntry[str]) -> bool:
    return entry.name in EXCLUDED or os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))


def _is_wanted(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(SUFFIXES) or (is_settings(entry.name) and may_hold_precision(entry.path))


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that may not be followed: reading it will say so
        return True


def _ignored(path: str, ignores: list[_Ignore]) -> bool:
    """The innermost ignore file that speaks of a path decides."""
    for ignore in reversed(ignores):
        verdict = ignore.judge(path)
        if verdict is not None:
            return verdict
    return False
