"""Files that a command writes: refused before it does anything, where they are what it reads, or cannot be written."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "Output",
    "made_if_directory",
    "outputs_of",
    "refuse_overwriting",
    "refuse_twice",
    "shown",
    "writable",
    "write_file",
]

SLASHES = tuple(filter(None, (os.sep, os.altsep)))


class Output(NamedTuple):
    """A report in a file of its own, beside the main one."""

    format: str
    file: Path


def outputs_of(formats: Sequence[str]) -> Callable[..., tuple[Output, ...]]:
    """What reads an option that may be repeated, each time as FORMAT:FILE.

    A callback for click, which raises click.BadParameter where there is no such format, or no file.
    """

    def parse(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[Output, ...]:
        return tuple(_output(text, formats) for text in value)

    return parse


def _output(text: str, formats: Sequence[str]) -> Output:
    format, colon, file = text.partition(":")
    if format not in formats:
        shown = format if colon else text
        raise click.BadParameter(f"{shown!r} is no format; write it as sarif:FILE, with one of {', '.join(formats)}")
    if file in ("", "-"):
        raise click.BadParameter(f"{text!r} names no file; write {format}:FILE, or --output-format {format}")
    return Output(format, Path(file))


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


def refuse_twice(files: Iterable[Path | None]) -> None:
    """Each report needs a file of its own.

    Raises:
        click.UsageError: two are the same.
    """
    taken: list[Path] = []
    for file in filter(None, files):
        if any(_same(file, other) for other in taken):
            raise click.UsageError(f"two reports cannot go into {file}; give each a file of its own")
        taken.append(file)


def writable(file: Path | None) -> Path | None:
    """The file by its absolute path, since a program may change the directory.

    Raises:
        click.UsageError: it could not be written, as far as one can know without writing it.
    """
    if file is None:
        return None
    folder = file.parent
    if not folder.is_dir():
        raise click.UsageError(f"cannot write {file}: there is no directory {folder}")
    from tempfile import TemporaryFile

    try:
        kind = _kind(file)
        if kind == "directory":
            raise click.UsageError(f"cannot write {file}: it is a directory; name a file in it")
        if kind and not os.access(file, os.W_OK):
            raise click.UsageError(f"cannot write {file}: it may not be written; name another file")
        if kind != "other":  # a pipe, or /dev/stdout
            TemporaryFile(dir=file.resolve().parent).close()
    except OSError as error:
        raise click.UsageError(f"cannot write {file}: {error.strerror or error}; name another file") from None
    return file.absolute()


def shown(file: Path, here: Path) -> str:
    """A file that was written, as it is reached from the directory `here`."""
    return str(file.relative_to(here)) if file.is_relative_to(here) else str(file)


def write_file(option: str, file: Path, text: str) -> None:
    """Write what an option asks for into a file, wholly or not at all.

    Raises:
        click.UsageError: it cannot be written.
    """
    from dtlint.atomic import write_text

    try:
        write_text(file, text)
    except OSError as error:
        raise click.UsageError(f"{option} {file} cannot be written: {error.strerror or error}") from None


def _kind(file: Path) -> str:
    """`file`, `directory`, `other`, or "" where there is nothing.

    Raises:
        OSError: there can be nothing of this name.
    """
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return ""
    return "directory" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def _same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # one of them does not exist yet
        return os.path.realpath(one) == os.path.realpath(other)
