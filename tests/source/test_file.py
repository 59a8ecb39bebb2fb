"""Bytes to text to bytes, and places in one to places in the other."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dtlint.diagnostic import Span
from dtlint.source.file import Kind, Source, UnreadableSource


def source(data: bytes | str, name: str = "a.py") -> Source:
    return Source.from_bytes(data if isinstance(data, bytes) else data.encode(), name)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.py", Kind.MODULE),
        ("b/a.pyi", Kind.STUB),
        ("script", Kind.MODULE),
        ("-", Kind.MODULE),
        ("a.pyw", Kind.MODULE),
    ],
)
def test_the_suffix_says_the_kind(name: str, kind: Kind) -> None:
    assert source("x = 1\n", name).kind is kind


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x = 1",
        b"x = 1\r\ny = 2\rz = 3\n",
        b"\xef\xbb\xbfx = 1\r\n",
        "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
        b"\x0cx = 1\n",
        "x = '\u2028 ü'\n".encode(),
    ],
)
def test_what_is_not_changed_is_written_as_it_was(data: bytes) -> None:
    read = source(data)
    assert read.encode() == data
    changed = read.replaced(read.text + "pass\n")
    assert changed.replaced(read.text).encode() == data
    assert changed.encode().startswith(data)


def test_a_cookie_decides_the_encoding() -> None:
    read = source("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    assert "é" in read.text
    assert read.replaced(read.text.replace("é", "è")).encode().endswith("'è'\n".encode("latin-1"))
    with pytest.raises(ValueError):
        read.replaced(read.text.replace("é", "本"))


@pytest.mark.parametrize(
    ("data", "word", "place"),
    [
        (b"x = 1\ny = '\xe9'\n", "0xe9", (2, 5)),
        (b"x = 1\n\0y", "null byte", (2, 0)),
        ("x = 1".encode("utf-16"), "UTF-16", (1, 0)),
        (b"\xef\xbb\xbfx = '\xff'", "0xff", (1, 5)),
        (b"# coding: klingon\n", "klingon", (1, 0)),
        (b"\xef\xbb\xbf# coding: latin-1\n", "byte order mark", (1, 0)),
        (b"# coding\n\xe9\n", "0xe9", (2, 0)),
    ],
)
def test_bytes_that_are_no_python_text_say_why_and_where(data: bytes, word: str, place: tuple[int, int]) -> None:
    with pytest.raises(UnreadableSource, match=word) as caught:
        source(data)
    assert (caught.value.line, caught.value.column) == place


def test_lines_end_only_where_python_ends_them() -> None:
    read = source("a = 1\x0c\nb = '\u2028\x85'\r\nc = 3\rd = 4")
    assert read.lines == ("a = 1\x0c", "b = '\u2028\x85'", "c = 3", "d = 4")
    assert len(ast.parse(read.text).body) == 4
    assert source("").lines == ()
    assert source("\n").lines == ("",)


def test_columns_count_characters() -> None:
    read = source("x = '日本'; y = z\n")
    assign = ast.parse(read.text).body[1]
    span = read.span(assign)
    assert span == Span(1, 10, 1, 15)
    assert read.text[read.offset(1, span.column) : read.offset(1, span.end_column)] == "y = z"
    assert read.location(span).path == "a.py"


@pytest.mark.parametrize("text", ["a\nbc\n", "a\r\nbc\r\nd", "a\rb"])
def test_offset_and_place_undo_each_other(text: str) -> None:
    read = source(text)
    for offset in (0, 2 if text[1] == "\n" else 0, text.index("b"), len(text)):
        assert read.offset(*read.place(offset)) == offset
    assert read.offset(99, 0) == len(text)


def test_the_dominant_line_ending() -> None:
    assert source("a\r\nb\r\nc\n").newline == "\r\n"
    assert source("a\nb\n").newline == "\n"
    assert source("a\rb\r").newline == "\r"
    assert source("").newline == "\n"


def test_a_frame_shows_the_lines_around() -> None:
    read = source("".join(f"line{n}\n" for n in range(1, 31)))
    assert [n for n, _ in read.frame(Span(5, 0, 6, 1))] == [3, 4, 5, 6, 7, 8]
    assert read.frame(Span(1, 0, 1, 1), context=0) == ((1, "line1"),)
    assert [n for n, _ in read.frame(Span(2, 0, 29, 1), context=1)] == [1, 2, 3, 28, 29, 30]
    assert [n for n, _ in read.frame(Span(1, 0, 1, 1), Span(10, 0, 10, 1), context=1)] == [1, 2, 9, 10, 11]


def test_a_path_below_the_working_directory_is_shown_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "pkg" / "a.py"
    below.parent.mkdir()
    below.write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    assert Source.read(below).path == "pkg/a.py"
    assert Source.read("pkg/a.py").path == "pkg/a.py"
    monkeypatch.chdir(below.parent)
    assert Source.read(below).path == "a.py"
    assert Source.read("../pkg/a.py", "b.pyi").kind is Kind.STUB
