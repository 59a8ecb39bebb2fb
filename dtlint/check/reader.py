"""Reads files for the rules of a run: what several of them import is parsed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from pathlib import Path

    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.trees import Trees

__all__ = ["Reader", "import_root", "roots_of"]


class Reader:
    """Gives the facts of files, one after the other."""

    def __init__(self) -> None:
        self._shared: tuple[Disk, Trees] | None = None

    def facts(self, tree: ast.Module, path: Path | None) -> ModuleFacts:
        """What is known of a file.

        Args:
            tree: its syntax: the nodes that the facts speak of.
            path: where it is, or is to be; None for text that comes from nowhere.

        Raises:
            TooLong, RecursionError: it cannot be followed to its end.
        """
        from dtlint.infer.interproc.disk import Disk
        from dtlint.infer.interproc.file_reading import read_file
        from dtlint.infer.interproc.trees import Trees

        self._shared = self._shared or (Disk(), Trees())
        path = None if path is None else path.absolute()
        return read_file(path, tree, [] if path is None else roots_of(path), *self._shared)


def roots_of(path: Path) -> list[Path]:
    """The folders from which a file's absolute imports are found: that around its own package, and the project's."""
    roots = [import_root(path)]
    for folder in path.parents:
        if any((folder / name).exists() for name in _PROJECT_FILES):
            roots += [one for one in (folder, folder / "src") if one not in roots and one.is_dir()]
            break
    return roots


_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def import_root(path: Path) -> Path:
    """The folder around a file's outermost package."""
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder
