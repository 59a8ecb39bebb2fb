"""The disk as one reading asks it: whether files and folders are there, which names a folder has, what a file holds.

Each question is asked once, so that the reading sees one state of each file, and is remembered with its answer. What a
program is read as follows from those answers alone: while the disk still gives them, it would be read the same.
"""

from __future__ import annotations

import os
from fnmatch import filter as matching
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["Disk", "digest_of"]

_Answer = TypeVar("_Answer")
_NOTHING: Mapping[str, bytes] = MappingProxyType({})


class Disk:
    """Answers questions, and remembers what it has answered.

    Args:
        unsaved: what files are to hold that an editor has open, by path: it goes before what lies there.
    """

    def __init__(self, unsaved: Mapping[str, bytes] = _NOTHING) -> None:
        self._unsaved = unsaved
        self._files: dict[str, bool] = {}
        self._folders: dict[str, bool] = {}
        self._names: dict[str, dict[str, list[str]]] = {}
        self._contents: dict[str, bytes | OSError] = {}
        """Of the files that were read as a whole. Many more are only asked for a word."""
        self._words: dict[str, dict[bytes, bool]] = {}
        self._listed: dict[str, list[str]] = {}
        self._digests: dict[str, str | None] = {}

    def anew(self) -> Disk:
        """The same, asked nothing yet."""
        return Disk(self._unsaved)

    def is_file(self, path: Path | str) -> bool:
        """Is there a regular file, or a link to one?"""
        return _asked(self._files, str(path), self._is_file)

    def is_folder(self, path: Path | str) -> bool:
        """Is there a folder, or a link to one?"""
        return _asked(self._folders, str(path), os.path.isdir)

    def names(self, folder: Path | str, pattern: str) -> list[str]:
        """What in a folder matches a pattern like `*.py` or `*/*.py`, in order; nothing where there is no folder."""
        known = self._names.setdefault(str(folder), {})
        return _asked(known, pattern, lambda pattern: list(self._matching(str(folder), pattern)))

    def read(self, path: Path | str) -> bytes:
        """What a file holds.

        Raises:
            OSError: it cannot be read.
        """
        held = _asked(self._contents, str(path), self._content)
        if isinstance(held, OSError):
            raise held
        return held

    def holds(self, path: Path | str, word: bytes) -> bool:
        """Does a file hold a word? What it holds besides is not kept.

        Raises:
            OSError: it cannot be read.
        """
        known = self._words.setdefault(str(path), {})
        if word not in known:
            held = self._contents.get(str(path)) or self._content(str(path))
            if isinstance(held, OSError):
                raise held
            known[word] = word in held
        return known[word]

    def digest(self, path: Path | str) -> str | None:
        """A hash of what a file holds; None where it cannot be read."""
        if str(path) not in self._digests:
            _asked(self._contents, str(path), self._content)
        return self._digests[str(path)]

    def answers(self) -> dict[str, Any]:
        """Every question that was asked, with its answer or a hash of it, as JSON has it."""
        return {
            "files": dict(self._files),
            "folders": dict(self._folders),
            "names": {folder: dict(known) for folder, known in self._names.items()},
            "contents": dict(self._digests),
        }

    def gives(self, answers: Mapping[str, Any]) -> bool:
        """Does it give those answers to those questions, now?"""
        return (
            all(self.is_file(path) == there for path, there in answers["files"].items())
            and all(self.is_folder(path) == there for path, there in answers["folders"].items())
            and all(
                self.names(folder, pattern) == names
                for folder, known in answers["names"].items()
                for pattern, names in known.items()
            )
            and all(self.digest(path) == digest for path, digest in answers["contents"].items())
        )

    def _is_file(self, path: str) -> bool:
        return path in self._unsaved or os.path.isfile(path)

    def _matching(self, folder: str, pattern: str) -> Iterator[str]:
        first, _, rest = pattern.partition("/")
        listed = _asked(self._listed, folder, _listing)
        for name in matching(listed, first):
            if not rest:
                yield name
            else:
                yield from (f"{name}/{below}" for below in self._matching(os.path.join(folder, name), rest))

    def _content(self, path: str) -> bytes | OSError:
        held = self._unsaved[path] if path in self._unsaved else _content(path)
        digest = None if isinstance(held, OSError) else digest_of(held)
        if self._digests.setdefault(path, digest) != digest:
            self._digests[path] = _CHANGED
        return held


def digest_of(data: bytes) -> str:
    """A hash of what a file holds."""
    return blake2b(data, digest_size=16).hexdigest()


_CHANGED = "changed"
"""The digest of a file that was another one when it was read again: none that is read later has that."""


def _asked(known: dict[str, _Answer], question: str, ask: Callable[[str], _Answer]) -> _Answer:
    if question not in known:
        known[question] = ask(question)
    return known[question]


def _listing(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (OSError, ValueError):
        return []


def _content(path: str) -> bytes | OSError:
    if not os.path.isfile(path):  # to open a pipe would wait for somebody to write to it
        return OSError(f"{path} is no regular file")
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError as error:
        return error
