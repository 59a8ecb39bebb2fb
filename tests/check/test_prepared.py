"""A file that is read after what it imports has been read: the same is found as from the beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtlint.catalogue import catalogue
from dtlint.check.file import check_source
from dtlint.check.reader import Reader
from dtlint.config import Configuration
from dtlint.infer.interproc.disk import Disk
from dtlint.source.file import Source

PROJECTS = Path(__file__).resolve().parents[2] / "fixtures" / "projects"
FILES = sorted(path for path in PROJECTS.rglob("*.py") if "import" in path.read_text(encoding="utf-8"))[::4]


def found(path: Path, reader: Reader) -> list[tuple[str, object, str]]:
    settings = Configuration(isolated=True).settings_for(path)
    checked = check_source(Source.read(path), settings.enabled(catalogue()), settings, (), reader)
    assert checked.crashes == []
    return [(one.code, one.location.span, one.message) for one in checked.diagnostics]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECTS)))
def test_the_same_is_found(path: Path) -> None:
    cold = Reader([path], for_people=True)
    expected = found(path, cold)
    reading = cold.reading(path)
    if reading is None:
        return  # no rule has asked for it
    prepared = Reader([path], for_people=True)
    prepared.prepare(path, reading.independent({path}))
    again = prepared.reading(path)
    assert again is not None
    if again.holds(path):
        return  # what it imports leads back to it, and is of no use then
    assert found(path, prepared) == expected
    assert {str(node.lineno) for node in again.told.values} == {str(node.lineno) for node in reading.told.values}


def test_what_is_unsaved_goes_before_the_disk(tmp_path: Path) -> None:
    file, new = tmp_path / "a.py", tmp_path / "b.py"
    file.write_bytes(b"old")
    disk = Disk({str(file): b"new", str(new): b"there"})
    assert (disk.read(file), disk.read(new), disk.is_file(new)) == (b"new", b"there", True)
    assert disk.digest(file) != Disk().digest(file)
    assert not Disk().gives(disk.answers())
    assert Disk({str(file): b"new", str(new): b"there"}).gives(disk.answers())
