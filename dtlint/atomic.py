"""Writes a file so that at every moment either the old or the new content is there, whole."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

__all__ = ["write_text", "write_whole"]

DEVICES = "/dev/"
"""Where a file may be a way to one that another process holds open, as /dev/stdout: to be written to, not replaced."""


def write_text(path: Path, text: str) -> None:
    """As `write_whole`, in UTF-8. What UTF-8 lacks, as the bytes of a path that are no text, is written as an escape.

    Raises:
        OSError: it cannot be written; it is left as it is.
    """
    write_whole(path, text.encode(errors="backslashreplace"))


def write_whole(path: Path, content: bytes) -> None:
    """Make or replace a file; its permissions, its owner where we may, and links to it stay.

    What is no regular file, such as a pipe, is written to.

    Raises:
        OSError: it cannot be written; it is left as it is.
    """
    from tempfile import mkstemp

    there = _status(path)
    if there is not None and (not stat.S_ISREG(there.st_mode) or str(path).startswith(DEVICES)):
        path.write_bytes(content)
        return
    target = path.resolve()
    handle, name = mkstemp(prefix=".", suffix=".dtlint", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        if there is None:
            temporary.chmod(0o666 & ~_mask())
        else:
            shutil.copymode(target, temporary)
            with suppress(OSError, AttributeError):  # only root may give files away, and Windows has no owners
                os.chown(temporary, there.st_uid, there.st_gid)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
