"""Files that a command writes: refused before it does anything, where they are what it reads, or have no place to be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["made_if_directory", "refuse_overwriting", "writable"]

SLASHES = tuple(filter(None, (os.sep, os.altsep)))


def made_if_directory(context: click.Context, parameter: click.Parameter, value: str | None) -> Path | None:
    """The path that an option names. One that ends in a slash is a directory, and made if there is none.

    Several processes may do so at once.

    Raises:
        click.UsageError: it cannot be made.
    """
    if value is None:
        return None
    if value.endswith(SLASHES):
        try:
            os.makedirs(value, exist_ok=True)
        except OSError as error:
            raise click.UsageError(f"cannot make the directory {value}: {error.strerror}") from None
    return Path(value)


def refuse_overwriting(option: str, file: Path | None, others: Iterable[Path], what: str) -> None:
    """Say no before anything is lost.

    Args:
        option: the option that names `file`.
        others: what `file` must not be, by whatever path or link.
        what: what those are, as the answer says it.

    Raises:
        click.UsageError: `file` is one of the others.
    """
    if file is None:
        return
    for other in others:
        if _same(file, other):
            raise click.UsageError(f"{option} {file} would overwrite {what}; name another file")


def writable(file: Path | None) -> Path | None:
    """The file by its absolute path, since a program may change the directory; refused where there is no directory."""
    if file is not None and not file.parent.is_dir():
        raise click.UsageError(f"cannot write {file}: there is no directory {file.parent}")
    return file and file.absolute()


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist yet
        return os.path.realpath(one) == os.path.realpath(other)
