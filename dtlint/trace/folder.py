"""The records in a directory: one of each rank of one distributed run. What else is there is passed over, and said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

from dtlint.trace.merge import merge
from dtlint.trace.store import RecordError, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dtlint.trace.record import TraceRecord

__all__ = ["Folder", "load_folder", "load_record"]


@dataclass(slots=True)
class Folder:
    """The records of one run."""

    path: Path
    records: dict[int, TraceRecord] = field(default_factory=dict)
    """By rank."""
    files: dict[int, Path] = field(default_factory=dict)
    """By rank, where each was."""
    passed: list[str] = field(default_factory=list)
    """What was passed over, and why, in one line each."""

    @property
    def world(self) -> int:
        """How many ranks the run had."""
        return max(record.world for record in self.records.values())

    def notes(self) -> Iterator[str]:
        """What a person should know of it, one line each."""
        yield from (f"passed over: {what}" for what in self.passed)
        missing = self.world - len(self.records)
        if missing > 0:
            yield f"{missing} of {self.world} ranks left no record in {self.path}"


def load_folder(directory: Path) -> Folder:
    """Read all records in a directory, in the order of their ranks.

    Raises:
        RecordError: no record is there, or those of several runs are.
    """
    found: list[tuple[TraceRecord, Path]] = []
    folder = Folder(directory)
    for path in sorted(directory.glob("*.json")):
        try:
            record = load(path)
        except RecordError as error:
            folder.passed.append(str(error))
            continue
        if record.ranks:
            folder.passed.append(f"{path} holds several ranks already")
            continue
        found.append((record, path))
    if not found:
        why = f" ({folder.passed[0]})" if folder.passed else ""
        raise RecordError(f"there is no trace record in {directory}{why}")
    for record, path in sorted(found, key=lambda each: each[0].rank):
        other = _other_run(record, found[0][0])
        if other:
            raise _several_runs(directory, f"{found[0][1].name} is {other[1]}, and {path.name} {other[0]}")
        if record.rank in folder.records:
            named = sorted((folder.files[record.rank].name, path.name))
            of = f" of rank {record.rank}" if record.world > 1 else ""
            raise _several_runs(directory, f"two records{of}, {' and '.join(named)}")
        folder.records[record.rank], folder.files[record.rank] = record, path
    return folder


def load_record(path: Path, say: Callable[[str], None]) -> TraceRecord:
    """The record in a file, or those of all ranks in a directory, merged; what should be known of that goes to `say`.

    Raises:
        RecordError: there is none that can be read, or those of several runs are.
    """
    if not path.is_dir():
        return load(path)
    folder = load_folder(path)
    for note in folder.notes():
        say(note)
    return merge(list(folder.records.values()))


def _several_runs(directory: Path, why: str) -> RecordError:
    return RecordError(
        f"{directory} holds records of several runs: {why}; keep those of one run in a directory, or give one file"
    )


def _other_run(one: TraceRecord, other: TraceRecord) -> tuple[str, str] | None:
    """By what two records are known not to be of one run: what the first is, and the second."""
    for mine, its in zip(_traits(one), _traits(other), strict=True):
        if mine != its and mine and its:
            return mine, its
    return None


def _traits(record: TraceRecord) -> Iterator[str]:
    """What is the same on all ranks of a run; "" where it is not known."""
    yield f"of {PurePath(record.argv[0]).name}" if record.argv else ""
    yield f"of a run of {record.world} rank{'s' * (record.world != 1)}"
    yield f"of a run under torch {record.torch}" if record.torch else ""
    yield f"written by dtlint {record.dtlint}"
