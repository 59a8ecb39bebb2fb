"""What every format makes of the same diagnostics."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
from dtlint.report import FORMATS, write

DISCARDED = Diagnostic(
    code="DT104",
    name="cast-result-discarded",
    severity=Severity.ERROR,
    message="the result of `x.half()` is thrown away",
    location=Location("src/a b.py", Span(2, 4, 2, 12)),
    help="assign it: `x = x.half()`",
    fix=Fix("Assign the result", (Edit(Span(2, 4, 2, 4), "x = "),), Applicability.SAFE),
    lines=((1, "def f(x):"), (2, "    x.half()"), (3, "    return x")),
    noqa_line=2,
)
IN_NOTEBOOK = Diagnostic(
    code="DT101",
    name="model-half",
    severity=Severity.WARNING,
    message="a: 100%, b",
    location=Location("n.ipynb", Span(2, 0, 2, 5), cell=3, file_line=31),
)


def written(format: str, *diagnostics: Diagnostic) -> str:
    stream = io.StringIO()
    write(diagnostics, format, stream, {})
    return stream.getvalue()


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no output format 'xml'; use one of full, concise, json, github, gitlab"):
        written("xml")


@pytest.mark.parametrize("format", ["full", "concise", "github", "pylint"])
def test_line_formats_say_nothing_where_there_is_nothing(format: str) -> None:
    assert written(format) == ""


def test_every_format_survives_a_path_and_a_message_from_strangers() -> None:
    hostile = Diagnostic(
        "DT101", "x", Severity.INFO, "\x1b[2J\r\n::error::", Location("a\x1b\udcff\n.py", Span(1, 0, 1, 1))
    )
    for format in FORMATS:
        text = written(format, hostile)
        assert "\x1b" not in text
        assert "\r" not in text
        assert not any(line.startswith("::error") for line in text.splitlines()), format


def test_concise() -> None:
    assert written("concise", DISCARDED, IN_NOTEBOOK).splitlines() == [
        "src/a b.py:2:5: DT104 [*] the result of `x.half()` is thrown away",
        "n.ipynb:cell 3:2:1: DT101 a: 100%, b",
    ]


@pytest.mark.parametrize("format", ["concise", "pylint", "gitlab"])
def test_formats_of_one_line_say_where_a_call_leads(format: str) -> None:
    there = Note(Location("my model.py", Span(13, 15, 13, 40)), "-1e+09 is beyond float16: this raises")
    call = Diagnostic(
        "DT402",
        "constant-overflow",
        Severity.WARNING,
        "This call leads to where -1e+09 is beyond float16: this raises",
        Location("train.py", Span(9, 12, 9, 20)),
        notes=(Note(Location("train.py", Span(8, 9, 8, 20)), "autocast computes in float16 from here on"), there),
    )
    assert "beyond float16: this raises (my model.py:13:16)" in written(format, call)
    assert "my model" not in written(format, replace(call, message=there.message))


def test_github_escapes_and_points_into_the_notebook_file() -> None:
    first, second = written("github", DISCARDED, IN_NOTEBOOK).splitlines()
    here = Path.cwd().resolve()
    assert first == (
        f"::error title=dtlint (DT104),file={here}/src/a b.py,line=2,col=5,endColumn=13,endLine=2"
        "::src/a b.py:2:5: DT104 the result of `x.half()` is thrown away%0A  help: assign it: `x = x.half()`"
    )
    assert (
        second == f"::warning title=dtlint (DT101),file={here}/n.ipynb,line=31::n.ipynb:cell 3:2:1: DT101 a: 100%25, b"
    )


def test_github_escapes_properties() -> None:
    odd = Diagnostic("DT101", "x", Severity.INFO, "m", Location("/a,b:c%.py", Span(1, 0, 2, 0)))
    assert written("github", odd) == (
        "::notice title=dtlint (DT101),file=/a%2Cb%3Ac%25.py,line=1,endLine=2::/a,b:c%25.py:1:1: DT101 m\n"
    )


def test_json_has_ruffs_shape() -> None:
    first, second = json.loads(written("json", DISCARDED, IN_NOTEBOOK))
    assert first == {
        "cell": None,
        "code": "DT104",
        "name": "cast-result-discarded",
        "severity": "error",
        "message": "the result of `x.half()` is thrown away",
        "help": "assign it: `x = x.half()`",
        "filename": str(Path.cwd().resolve() / "src" / "a b.py"),
        "location": {"row": 2, "column": 5},
        "end_location": {"row": 2, "column": 13},
        "fix": {
            "applicability": "safe",
            "message": "Assign the result",
            "edits": [
                {"content": "x = ", "location": {"row": 2, "column": 5}, "end_location": {"row": 2, "column": 5}}
            ],
        },
        "noqa_row": 2,
        "notes": [],
        "url": None,
    }
    assert (second["cell"], second["location"], second["fix"]) == (3, {"row": 2, "column": 1}, None)


def test_json_says_which_notes_are_steps_of_a_witness() -> None:
    place = Location("-", Span(1, 2, 1, 4))
    noted = Diagnostic(
        "DT301", "x", Severity.INFO, "m", Location("-", Span(3, 0, 3, 1)),
        notes=(Note(place, "from here"), Note(place, "`x` is given in float16", 1)),
    )  # fmt: skip
    (found,) = json.loads(written("json", noted))
    assert [note.get("step") for note in found["notes"]] == [None, 1]


def test_json_notes_and_standard_input() -> None:
    noted = Diagnostic(
        "DT301", "x", Severity.INFO, "m", Location("-", Span(3, 0, 3, 1)),
        notes=(Note(Location("-", Span(1, 2, 1, 4)), "cast to float16 here"),),
    )  # fmt: skip
    (found,) = json.loads(written("json", noted))
    assert found["filename"] == "-"
    assert found["notes"] == [
        {
            "message": "cast to float16 here",
            "filename": "-",
            "cell": None,
            "location": {"row": 1, "column": 3},
            "end_location": {"row": 1, "column": 5},
        }
    ]


def test_json_of_nothing_is_an_empty_array() -> None:
    assert json.loads(written("json")) == []
