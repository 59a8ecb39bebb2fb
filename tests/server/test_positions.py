"""Places as editors count them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtlint.diagnostic import Diagnostic, Location, Severity, Span
from dtlint.server.diagnostics import carried
from dtlint.server.positions import ENCODINGS, Text, changed

TEXTS = st.text(alphabet=st.sampled_from("aé𝒳\n\r\t ("), max_size=40)


@given(TEXTS, st.sampled_from(sorted(ENCODINGS)), st.integers(0, 40))
def test_a_place_and_back(text: str, encoding: str, offset: int) -> None:
    index = Text(text, encoding)
    offset = min(offset, len(text))
    if text[offset - 1 : offset + 1] == "\r\n":
        offset -= 1  # between the two is no place
    assert index.offset(index.position_of(offset)) == offset


def test_columns_are_units_of_utf_16() -> None:
    text = Text("x = '𝒳'; y\n", "utf-16")
    assert text.position(1, 9) == {"line": 0, "character": 10}
    assert text.place({"line": 0, "character": 10}) == (1, 9)
    assert text.place({"line": 0, "character": 999}) == (1, 10)
    assert text.offset({"line": 99, "character": 0}) == len(text.text)


def test_changes_are_applied_one_after_the_other() -> None:
    def at(line: int, start: int, end: int, text: str) -> dict[str, object]:
        where = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        return {"range": where, "text": text}

    assert changed("ab\ncd", [at(0, 1, 2, "X\n"), at(1, 0, 0, "Y")], "utf-16") == "aX\nY\ncd"
    assert changed("ab", [{"text": "new"}], "utf-16") == "new"


def finding(line: int) -> Diagnostic:
    return Diagnostic("DT101", "x", Severity.ERROR, "m", Location("a.py", Span(line, 0, line, 3)))


def test_findings_move_with_their_lines_and_go_with_edited_ones() -> None:
    before = "one\ntwo\nthree\nfour\n"
    found = [finding(1), finding(2), finding(4)]
    moved = carried(found, before, "one\ntwo!\nnew\nthree\nfour\n")
    assert [one.location.span.line for one in moved] == [1, 5]
    assert [one.location.span.line for one in carried(found, before, before)] == [1, 2, 4]
