"""Writes a fixed file so that at every moment either the old or the new content is there, whole."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
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
    from tempfile import mkstemp

    target = path.resolve()
    if target.read_bytes() != old:
        raise ChangedMeanwhile("it has changed since it was read; run again")
    handle, name = mkstemp(prefix=f".{target.name}.", suffix=".dtlint", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(new)
        shutil.copymode(target, temporary)
        with suppress(OSError, AttributeError):  # only root may give files away, and Windows has no owners
            status = target.stat()
            os.chown(temporary, status.st_uid, status.st_gid)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
