"""Writes a fixed file, unless someone else has written it since it was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.atomic import write_whole

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ChangedMeanwhile", "replace_file"]


class ChangedMeanwhile(OSError):
    """Someone else has written the file since it was read."""


def replace_file(path: Path, old: bytes, new: bytes) -> None:
    """Replace the content of a file; its permissions, its owner where we may, and links to it stay.

    Raises:
        ChangedMeanwhile: the file no longer holds `old`; it is left as it is.
        OSError: it cannot be written; it is left as it is.
    """
    target = path.resolve()
    if target.read_bytes() != old:
        raise ChangedMeanwhile("it has changed since it was read; run again")
    write_whole(target, new)
