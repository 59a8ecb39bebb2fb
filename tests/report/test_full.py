"""The format for people, as it prints."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
from dtlint.report import write
from dtlint.report.legible import legible, width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


def diagnostic(source: str, span: Span, *notes: tuple[Span, str]) -> Diagnostic:
    return Diagnostic(
        code="DT104",
        name="cast-result-discarded",
        severity=Severity.WARNING,
        message="the result is thrown away",
        location=Location("a.py", span),
        notes=tuple(Note(Location("a.py", place), text) for place, text in notes),
        lines=tuple(enumerate(source.split("\n"), 1)),
    )


def full(diagnostic: Diagnostic, stream: io.StringIO | None = None) -> str:
    stream = io.StringIO() if stream is None else stream
    write([diagnostic], "full", stream, {})
    return stream.getvalue()


def frame(diagnostic: Diagnostic) -> str:
    """The frame alone: what stands between the arrow line and the empty line."""
    return "".join(line + "\n" for line in full(diagnostic).splitlines()[2:-1])


def test_the_whole_of_it() -> None:
    found = replace(
        diagnostic("def f(x):\n    x.half()\n    return x", Span(2, 4, 2, 12)),
        help="assign it",
        fix=Fix("Assign the result", (Edit(Span(2, 4, 2, 4), "x = "),), Applicability.SAFE),
    )
    assert full(found) == dedent("""\
        warning[DT104] cast-result-discarded: [*] the result is thrown away
         --> a.py:2:5
          |
        1 | def f(x):
        2 |     x.half()
          |     ^^^^^^^^
        3 |     return x
          |
        help: assign it
        fix: Assign the result (safe, applied by --fix)

        """)


def test_help_that_the_fix_repeats_is_left_out() -> None:
    found = replace(diagnostic("x", Span(1, 0, 1, 1)), help="Do it", fix=Fix("Do it", (), Applicability.SAFE))
    assert full(found).count("Do it") == 1


@pytest.mark.parametrize(
    ("applicability", "line"),
    [
        (Applicability.UNSAFE, "fix: Do it (unsafe, applied by --fix --unsafe-fixes)"),
        (Applicability.DISPLAY, "fix: Do it (only shown, never applied)"),
    ],
)
def test_only_a_safe_fix_is_starred(applicability: Applicability, line: str) -> None:
    found = replace(diagnostic("x", Span(1, 0, 1, 1)), fix=Fix("Do it", (), applicability))
    text = full(found)
    assert line in text.splitlines()
    assert "[*]" not in text


def test_tabs_wide_and_combining_characters_keep_the_caret_in_place() -> None:
    assert frame(diagnostic('\tx = "漢é"; y.half()', Span(1, 11, 1, 19))) == (
        "  |\n"
        '1 |     x = "漢é"; y.half()\n'
        "  |                ^^^^^^^^\n"
        "  |\n"
    )  # fmt: skip
    assert width("漢e\u0301") == 3


@given(st.text(st.characters(exclude_characters="\r\n"), max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_the_underline_lies_below_its_text_whatever_the_text(text: str, one: int, other: int) -> None:
    start, stop = sorted((min(one, len(text)), min(other, len(text))))
    lines = [line for line in frame(diagnostic(text, Span(1, start, 1, stop))).split("\n") if line.endswith("^")]
    (underline,) = [line for line in lines if line.startswith("  | ")]
    assert underline.index("^") == len("1 | ") + width(legible(text[:start]))
    assert underline.count("^") == max(1, width(legible(text[start:stop])))


@given(
    st.lists(st.text(max_size=300), min_size=1, max_size=6), st.tuples(*[st.integers(0, 400)] * 4), st.integers(1, 9)
)
def test_no_span_however_wrong_breaks_the_frame(source: list[str], span: tuple[int, int, int, int], first: int) -> None:
    found = replace(diagnostic("", Span(*span)), lines=tuple(enumerate(source, first)))
    assert full(found).endswith("\n\n")


def test_control_characters_show_and_do_not_act() -> None:
    assert legible("a\x1b[31m\x00\x7f\u202e\u00a0\tb") == "a␛[31m␀␡\ufffd␣    b"


def test_notes_in_the_frame_are_labelled_and_others_get_their_own_line() -> None:
    found = diagnostic("a = x.half()\n\na + y", Span(3, 0, 3, 5), (Span(1, 4, 1, 12), "cast to float16 here"))
    found = replace(found, notes=(*found.notes, Note(Location("b.py", Span(7, 2, 7, 3)), "and here")))
    assert frame(found) == dedent("""\
          |
        1 | a = x.half()
          |     -------- cast to float16 here
        2 |
        3 | a + y
          | ^^^^^
          |
         ::: b.py:7:3: and here
        """)


def test_a_span_of_several_lines_that_begins_its_line() -> None:
    assert frame(diagnostic("f(\n    a,\n)\nb", Span(1, 0, 3, 1))) == dedent("""\
          |
        1 | / f(
        2 | |     a,
        3 | | )
          | |_^
        4 |   b
          |
        """)


def test_a_span_of_several_lines_that_begins_within_one() -> None:
    assert frame(diagnostic("x = f(\n    a)", Span(1, 4, 2, 6), (Span(2, 4, 2, 5), "this"))) == dedent("""\
          |
        1 |   x = f(
          |  _____^
        2 | |     a)
          | |______^
          |       - this
          |
        """)


def test_missing_lines_show_as_a_gap_and_numbers_align() -> None:
    found = replace(diagnostic("", Span(10, 0, 10, 1)), lines=((1, "import a"), (9, ""), (10, "b")))
    assert frame(found) == dedent("""\
           |
         1 | import a
        ...
         9 |
        10 | b
           | ^
           |
        """)


def test_an_empty_span_gets_one_caret_and_blank_edges_are_left_out() -> None:
    assert frame(diagnostic("\nx\n", Span(2, 1, 2, 1))) == "  |\n2 | x\n  |  ^\n  |\n"


def test_without_lines_there_is_only_the_arrow() -> None:
    found = replace(diagnostic("", Span(4, 0, 4, 0)), lines=())
    assert full(found).splitlines()[1:] == [" --> a.py:4:1", ""]


def test_a_long_line_is_cut_around_the_span() -> None:
    text = "a" * 500 + "x.half()" + "b" * 500
    _, source, carets, _ = frame(diagnostic(text, Span(1, 500, 1, 508))).splitlines()
    assert len(source) < 300
    start = carets.index("^")
    assert source[start : start + carets.count("^")] == "x.half()"
    assert source.startswith("1 | …")
    assert source.endswith("b…")


def test_the_cell_of_a_notebook_is_named() -> None:
    found = replace(diagnostic("x", Span(1, 0, 1, 1)), location=Location("n.ipynb", Span(1, 0, 1, 1), 2, 20))
    assert " --> n.ipynb:cell 2:1:1" in full(found)


RED = "\x1b["


def test_colour_only_on_a_terminal() -> None:
    found = diagnostic("x", Span(1, 0, 1, 1))
    assert RED not in full(found)
    assert RED in full(found, Terminal())


@pytest.mark.parametrize(
    ("environment", "stream", "coloured"),
    [
        ({"NO_COLOR": "1"}, Terminal, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, Terminal, False),
        ({"NO_COLOR": ""}, Terminal, True),
        ({"TERM": "dumb"}, Terminal, False),
        ({"FORCE_COLOR": "1"}, io.StringIO, True),
        ({"FORCE_COLOR": "0"}, io.StringIO, False),
    ],
)
def test_the_environment_decides_on_colour(
    environment: dict[str, str], stream: type[io.StringIO], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert (RED in full(diagnostic("x", Span(1, 0, 1, 1)), stream())) is coloured


def test_colour_changes_nothing_but_the_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    import re

    found = diagnostic("x = [a][0]" + "  # [bold] :smile: " + "y" * 200, Span(1, 4, 1, 10))
    monkeypatch.setenv("COLUMNS", "40")
    assert re.sub(r"\x1b\[[0-9;]*m", "", full(found, Terminal())) == full(found)


def test_plain_text_needs_no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert full(diagnostic("x", Span(1, 0, 1, 1)))
