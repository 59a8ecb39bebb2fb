"""Files by their URIs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dtlint.server.buffers import on_windows, path_of, uri_of


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c%3A/my%20work/model.py", "c:/my work/model.py"),
        ("file:///C:/code/model.py", "C:/code/model.py"),
        ("file://localhost/C:/code/model.py", "C:/code/model.py"),
        ("file://server/share/model.py", "//server/share/model.py"),
    ],
)
def test_a_file_on_windows(uri: str, path: str) -> None:
    parts = urlsplit(uri)
    assert on_windows(parts.netloc, parts.path) == path


def test_a_file_is_found_by_its_uri(tmp_path: Path) -> None:
    for name in ("model.py", "my model.py", "100%.py", "größe.py"):
        assert path_of(uri_of(tmp_path / name)) == tmp_path / name
    assert path_of("untitled:Untitled-1") is None
