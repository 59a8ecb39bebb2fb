"""Reads files for the rules of a run: what several of them import is parsed once."""

from __future__ import annotations

import gc
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.file_reading import FileReading, Independent
    from dtlint.source.declared_packages import Releases
    from dtlint.source.file import Source

__all__ = ["PROJECT_FILES", "Reader", "import_root", "project_folder", "roots_of"]


class Reader:
    """Gives the facts of files, one after the other.

    Args:
        expected: the files that are going to be read, as far as it is known.
        disk: what files are asked of; None: the disk as it is when the first file is read.
        for_people: is what each expression is kept, too, for `claims` to tell?
    """

    def __init__(self, expected: Iterable[Path] = (), disk: Disk | None = None, *, for_people: bool = False) -> None:
        self._expected = frozenset(path.absolute() for path in expected)
        self._readings: dict[tuple[Path, ...], FileReading] = {}
        self._read: set[Path | None] = set()
        """The files that were read since the reading began: another time it begins anew, for bodies are run once."""
        self._judged = 0
        """Their bytes."""
        self.disk = disk
        """What files are asked of, as soon as one was read."""
        self._for_people = for_people
        self.rests_on: dict[str, str | None] = {}
        """The other files that what was told last rests on, each with a hash of what it holds."""
        self.declared: tuple[tuple[str, Releases], ...] = ()
        """The releases of frameworks that the project of the next file declares."""

    def tree(self, path: Path | None) -> ast.Module | None:
        """The syntax of a file that was parsed already, for one that imports it."""
        if path is None or not self._readings:
            return None
        path = path.absolute()
        reading = self._readings.get(roots_of(path))
        return None if reading is None else reading.tree(path)

    def facts(
        self, tree: ast.Module, path: Path | None, displayed: Collection[ast.stmt] = (), size: int = 0
    ) -> ModuleFacts:
        """What is known of a file.

        Args:
            tree: its syntax: the nodes that the facts speak of.
            path: where it is, or is to be; None for text that comes from nowhere.
            displayed: statements whose values are shown, as at the end of a notebook's cell.
            size: the length of its text.

        What cannot be followed to its end is left out, and the facts say so.
        """
        from dtlint.check.settings import finder
        from dtlint.infer.interproc.disk import Disk
        from dtlint.infer.interproc.file_reading import FileReading

        path = None if path is None else path.absolute()
        roots = () if path is None else roots_of(path)
        reading = self._readings.get(roots)
        if path in self._read:
            reading = None
            self._begin_anew(tree)
            self._read.clear()
        self._read.add(path)
        held = sum(one.bytes_read for one in self._readings.values())
        if held > _MOST_BYTES and self._judged > _LEAST_JUDGED:
            self._begin_anew(tree)
            self._judged = 0
            reading = None
            gc.collect()  # the rest of what was read leads back to itself, too
        self._judged += size
        if reading is None:
            self.disk = self.disk or Disk()
            reading = self._readings[roots] = FileReading(roots, self._expected, self.disk, for_people=self._for_people)
        facts, rests_on = reading.facts(path, tree, size)
        if facts.broken_off is not None:
            del self._readings[roots]
        assert self.disk is not None
        self.rests_on = {other: self.disk.digest(other) for other in sorted(map(str, rests_on))}
        facts.around.displayed = frozenset(displayed)
        facts.declared, facts.settings_file = self.declared, finder(path, self.disk, self._rest_on)
        return facts

    def _begin_anew(self, kept: ast.Module) -> None:
        """Let go of what was read, but for one module's syntax."""
        if not self._for_people:  # an editor may ask for more of what was read last
            for one in self._readings.values():
                one.release(kept)
        self._readings.clear()

    def source(self, path: Path) -> Source:
        """Another file as it was read, to show a place in it.

        Raises:
            UnreadableSource, OSError: it cannot be read.
        """
        from dtlint.source.file import Source, shown_path

        if self.disk is None:
            return Source.read(path, shown_path(path))
        return Source.from_bytes(self.disk.read(path), shown_path(path), path)

    def reading(self, path: Path | None) -> FileReading | None:
        """What reads a file, if it has begun; for those who ask for more than facts."""
        return self._readings.get(() if path is None else roots_of(path.absolute()))

    def prepare(self, path: Path, modules: Independent) -> None:
        """Read beforehand what a file will ask for in other modules, and not the file itself."""
        from dtlint.infer.interproc.disk import Disk
        from dtlint.infer.interproc.file_reading import FileReading

        roots = roots_of(path.absolute())
        self.disk = self.disk or Disk()
        if roots not in self._readings:
            self._readings[roots] = FileReading(roots, self._expected, self.disk, for_people=self._for_people)
        self._readings[roots].prepare(modules)

    def _rest_on(self, path: Path) -> None:
        if self.disk is not None:
            self.rests_on[str(path)] = self.disk.digest(path)

    def assumed(
        self, facts: ModuleFacts, assumption: Assumption, only: Collection[ast.AST] | None = None
    ) -> ModuleFacts | None:
        """What is known of the file that was read last, under an assumption; None where it could not be read to its end.

        Args:
            facts: what is known of it without one.
            only: the functions that are asked for; None: all.
        """
        path: Path | None = facts.module.path
        reading = self._readings.get(() if path is None else roots_of(path))
        if reading is None or facts.broken_off is not None:
            return None
        found = reading.assumed(facts, assumption, only)
        found.declared, found.settings_file = facts.declared, facts.settings_file
        return found


_MOST_BYTES = 8_000_000
"""Of source that is held as syntax, which takes some sixty times as much: then reading begins anew."""
_LEAST_JUDGED = 500_000
"""Bytes of the files that are judged between two beginnings. Some projects import all of themselves for any file."""


def roots_of(path: Path) -> tuple[Path, ...]:
    """The folders from which a file's absolute imports are found: that around its own package, and the project's."""
    return _roots_in(path.parent)


@cache
def _roots_in(folder: Path) -> tuple[Path, ...]:
    roots = [_outside_of_packages(folder)]
    project = project_folder(folder)
    if project is not None:
        roots += [one for one in (project, project / "src") if one not in roots and one.is_dir()]
    return tuple(roots)


def project_folder(folder: Path) -> Path | None:
    """The topmost folder of the project that a folder belongs to; None where nothing shows which that is."""
    return next(
        (above for above in (folder, *folder.parents) if any((above / name).exists() for name in PROJECT_FILES)), None
    )


PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What stands in the topmost folder of a project."""


def import_root(path: Path) -> Path:
    """The folder around a file's outermost package."""
    return _outside_of_packages(path.parent)


@cache
def _outside_of_packages(folder: Path) -> Path:
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder
