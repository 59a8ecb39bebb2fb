"""The folder in which results of earlier runs are kept, for all of a project's runs.

A cache that cannot be read or written is done without, silently: it is there to save time, and for nothing else.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from dtlint import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DIRECTORY", "Shelf", "beside", "identity", "is_cache"]

DIRECTORY = ".dtlint_cache"
DAY = 24 * 60 * 60.0
LIFETIME = 30 * DAY
"""An entry that nobody asked for in this long is deleted."""

README = {
    ".gitignore": "# Made by dtlint.\n*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Made by dtlint; may be deleted at any time.\n",
}
"""So that neither git nor a backup (bford.info/cachedir) takes the cache for something of worth."""


class Shelf:
    """Entries of one kind, each under a hash as its name. Several runs may share them.

    Args:
        parent: the folder that the cache lies in.
        name: the shelf's folder in the cache; empty for the cache's own.
        most: entries; more are not kept, the oldest go first.
        most_bytes: of all entries together.
        rest: seconds from one pruning to the next.
    """

    def __init__(
        self, parent: Path, name: str = "", *, most: int, most_bytes: float = float("inf"), rest: float = DAY
    ) -> None:
        self.cache = parent / DIRECTORY
        self.folder = self.cache / name
        self.most, self.most_bytes, self.rest = most, most_bytes, rest

    def get(self, key: str) -> bytes | None:
        """The entry of that name, if there is one. It is young again by that."""
        path = self._path(key)
        try:
            found = path.read_bytes()
            if time.time() - path.stat().st_mtime > DAY:
                with suppress(OSError):
                    os.utime(path)
        except OSError:
            return None
        return found

    def put(self, key: str, entry: bytes) -> None:
        """Keep an entry: at every moment there is all of it, or nothing."""
        path = self._path(key)
        temporary = path.with_suffix(f".{os.urandom(8).hex()}")  # runs in two containers may be of one number
        with suppress(OSError):
            self._prepare()
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(entry)
            temporary.replace(path)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key[2:]

    def _prepare(self) -> None:
        if not self.cache.is_dir():
            self.cache.mkdir(parents=True, exist_ok=True)
            for name, text in README.items():
                (self.cache / name).write_text(text, encoding="utf-8")

    def prune(self) -> None:
        """Delete what is old and what is too much, unless that was done a moment ago; after a run that has added something."""
        stamp = self.folder / "pruned"
        with suppress(OSError):
            if stamp.exists() and time.time() - stamp.stat().st_mtime < self.rest:
                return
            stamp.touch()
            old, held = time.time() - LIFETIME, 0
            for number, (used, size, path) in enumerate(sorted(self._entries(), reverse=True)):
                if used < old or number >= self.most or held + size > self.most_bytes:
                    path.unlink(missing_ok=True)
                else:
                    held += size

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        for folder in self.folder.iterdir():
            if len(folder.name) == 2 and folder.is_dir():
                for path in folder.iterdir():
                    with suppress(FileNotFoundError):  # another run prunes as well
                        status = path.stat()
                        yield status.st_mtime, status.st_size, path


def beside(root: Path) -> Path:
    """Where the cache lies: beside the configuration, so that every run in a project shares it."""
    here = Path.cwd()
    return root if here.is_relative_to(root) else here


def is_cache(directory: Path) -> bool:
    """Is it a cache that dtlint has made? Nothing else may be deleted for one."""
    try:
        return (directory / "CACHEDIR.TAG").read_text(encoding="utf-8") == README["CACHEDIR.TAG"]
    except (OSError, ValueError):
        return False


def identity(packages: Iterable[str] = ()) -> str:
    """What changes when dtlint does, or Python, or one of these packages, which have a part in the results."""
    return f"{__version__}\0{sys.version}\0{_fingerprint(packages)}"


def _fingerprint(packages: Iterable[str]) -> str:
    """Size and time of every file of dtlint and of other packages."""
    import dtlint

    specs = [find_spec(package) for package in packages]
    folders = {folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()}
    folders.update(dtlint.__path__)
    digest = blake2b(digest_size=20)
    for folder in sorted(folders):
        for name, size, time_ns in sorted(_files(folder)):
            digest.update(f"{name}\0{size}\0{time_ns}\0".encode(errors="surrogatepass"))
    return digest.hexdigest()


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        else:
            status = entry.stat()
            yield entry.path, status.st_size, status.st_mtime_ns
