"""What a document format calls a file: its absolute name, or the one below the directory in which dtlint runs."""

from __future__ import annotations

import ntpath
import posixpath
import re
from pathlib import Path, PurePath, PureWindowsPath
from urllib.parse import quote

__all__ = ["STDIN", "absolute", "relative", "uri"]

STDIN = "-"
"""The name of what was read from standard input; it is no file, so it stays as it is."""

DRIVE = re.compile(r"[A-Za-z]:[\\/]")
"""How an absolute name begins on Windows, where a trace may have been recorded that is read elsewhere."""


def here() -> PurePath:
    """The directory in which dtlint runs."""
    return Path.cwd()


def absolute(path: str) -> str:
    """The absolute name of a file, without `..` and without following links: links are what the user named."""
    return path if path == STDIN or _of_windows(path) else str(_full(path))


def relative(path: str) -> str:
    """The name below the directory of the run, with slashes on every system; absolute where the file lies elsewhere."""
    if path == STDIN:
        return path
    if _of_windows(path):
        return path.replace("\\", "/")
    below = _below(path)
    return (below or _full(path)).as_posix()


def uri(path: str) -> tuple[str, bool]:
    """The name as a URI, and whether it is relative to the directory of the run."""
    if path == STDIN:
        return path, False
    if _of_windows(path):
        return PureWindowsPath(path).as_uri(), False
    below = _below(path)
    return (
        (quote(below.as_posix(), errors="surrogateescape"), True)
        if below is not None
        else (_full(path).as_uri(), False)
    )


def _of_windows(path: str) -> bool:
    """Is it absolute on Windows, and read on another system?"""
    return DRIVE.match(path) is not None and not isinstance(here(), PureWindowsPath)


def _full(path: str) -> PurePath:
    base = here()
    normal = ntpath.normpath if isinstance(base, PureWindowsPath) else posixpath.normpath
    return type(base)(normal(str(base / path)))


def _below(path: str) -> PurePath | None:
    try:
        return _full(path).relative_to(here())
    except ValueError:
        return None
