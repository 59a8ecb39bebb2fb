"""Document formats as their readers take them: by a published schema, or by a library that reads them.

The findings lie in a plain file, one of a name with spaces and non-ASCII letters, a notebook, and standard input.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import PureWindowsPath
from typing import Any

import pytest

from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
from dtlint.report import filename, write

PLAIN = Diagnostic(
    code="DT104",
    name="cast-result-discarded",
    severity=Severity.ERROR,
    message="the result of `x.half()` is thrown away",
    location=Location("src/a.py", Span(2, 4, 2, 12)),
    help="assign it",
    notes=(Note(Location("src/b.py", Span(1, 0, 1, 3)), "cast here"),),
    fix=Fix("Assign the result", (Edit(Span(2, 4, 2, 4), "x = "),), Applicability.SAFE),
    lines=((1, "def f(x):"), (2, "    x.half()"), (3, "    return x")),
)
FAR = replace(
    PLAIN,
    severity=Severity.WARNING,
    location=Location("daten für/größe 1.py", Span(1, 13, 1, 21)),
    lines=((1, "é = '𐐂'; s = x.half()"),),
    notes=(),
    fix=None,
)
NOTEBOOK = Diagnostic(
    "DT101", "model-half", Severity.INFO, "m", Location("n b.ipynb", Span(2, 0, 2, 5), cell=3, file_line=31)
)
STDIN = replace(PLAIN, location=Location("-", Span(1, 0, 1, 1)), notes=(), fix=None)
ALL = (PLAIN, FAR, NOTEBOOK, STDIN)


def written(format: str, *diagnostics: Diagnostic) -> str:
    stream = io.StringIO()
    write(diagnostics, format, stream, {})
    return stream.getvalue()


def test_sarif_is_read_by_its_object_model() -> None:
    sarif = pytest.importorskip("sarif_pydantic", reason="the extra `test` is not installed")
    (run,) = sarif.Sarif.model_validate_json(written("sarif", *ALL)).runs
    regions = [result.locations[0].physical_location for result in run.results]
    assert [place.artifact_location.uri for place in regions] == [
        "src/a.py",
        "daten%20f%C3%BCr/gr%C3%B6%C3%9Fe%201.py",
        "n%20b.ipynb",
        "-",
    ]
    assert [place.region.start_line for place in regions] == [2, 1, 31, 1]
    broken = json.loads(written("sarif", PLAIN))
    broken["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(ValueError, match="level"):
        sarif.Sarif.model_validate(broken)


def test_junit_is_read_by_junitparser() -> None:
    junitparser = pytest.importorskip("junitparser", reason="the extra `test` is not installed")
    suites = junitparser.JUnitXml.fromstring(written("junit", *ALL).encode())
    assert (suites.tests, suites.failures) == (4, 3)
    assert [suite.name for suite in suites] == ["src/a.py", "daten für/größe 1.py", "n b.ipynb", "-"]
    (plain,), _, (notebook,), _ = suites
    assert (plain.is_failure, notebook.is_passed) == (True, True)
    assert plain.result[0].message == "the result of `x.half()` is thrown away"
    assert "    x.half()\n  |     ^^^^^^^^" in plain.result[0].text
    assert notebook._elem.get("line") == "31"
    assert "cell 3, line 2" in notebook.name


def test_junit_of_nothing_is_one_case_that_passed() -> None:
    junitparser = pytest.importorskip("junitparser", reason="the extra `test` is not installed")
    (suite,) = junitparser.JUnitXml.fromstring(written("junit").encode())
    (case,) = suite
    assert case.is_passed


POSITION = {
    "type": "object",
    "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
    "required": ["line"],
    "additionalProperties": False,
}
RANGE = {
    "type": "object",
    "properties": {"start": POSITION, "end": POSITION},
    "required": ["start"],
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "range": RANGE},
    "required": ["path", "range"],
    "additionalProperties": False,
}
RDJSON = {
    "type": "object",
    "properties": {
        "source": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "message": {"type": "string"},
                    "location": LOCATION,
                    "severity": {"enum": ["ERROR", "WARNING", "INFO"]},
                    "code": {"type": "object", "properties": {"value": {"type": "string"}, "url": {"type": "string"}}},
                    "suggestions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"range": RANGE, "text": {"type": "string"}},
                            "required": ["range", "text"],
                            "additionalProperties": False,
                        },
                    },
                    "relatedLocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"message": {"type": "string"}, "location": LOCATION},
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["message", "location"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["diagnostics"],
    "additionalProperties": False,
}
"""The part of reviewdog's proto/rdf/reviewdog.proto that is written here."""

GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "check_name": {"type": "string"},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "properties": {"path": {"type": "string", "pattern": r"^(?!\./|/)[^\\]*$"}},
                "required": ["path"],
                "oneOf": [
                    {
                        "properties": {"lines": {"type": "object", "required": ["begin"]}},
                        "required": ["lines"],
                    },
                    {
                        "properties": {"positions": {"properties": {"begin": POSITION, "end": POSITION}}},
                        "required": ["positions"],
                    },
                ],
            },
        },
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "additionalProperties": False,
    },
}
"""Fields that docs.gitlab.com/ci/testing/code_quality asks for."""


def valid(document: str, schema: dict[str, Any]) -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="the extra `test` is not installed")
    found = json.loads(document)
    jsonschema.Draft202012Validator(schema).validate(found)
    return found


def test_rdjson_keeps_reviewdogs_schema_and_counts_bytes() -> None:
    plain, far, notebook, _ = valid(written("rdjson", *ALL), RDJSON)["diagnostics"]
    assert plain["location"]["range"] == {"start": {"line": 2, "column": 5}, "end": {"line": 2, "column": 13}}
    assert plain["suggestions"] == [
        {"range": {"start": {"line": 2, "column": 5}, "end": {"line": 2, "column": 5}}, "text": "x = "}
    ]
    assert plain["relatedLocations"][0]["location"] == {
        "path": "src/b.py",
        "range": {"start": {"line": 1}, "end": {"line": 1}},
    }, "the text of that line is not at hand, so its bytes are not known"
    assert far["location"]["range"]["start"]["column"] == len("é = '𐐂'; s = ".encode()) + 1
    assert notebook["location"] == {"path": "n b.ipynb", "range": {"start": {"line": 31}}}


def test_rdjson_suggests_no_part_of_a_fix() -> None:
    two = Fix("Both", (Edit(Span(2, 4, 2, 4), "a"), Edit(Span(3, 0, 3, 0), "b")), Applicability.SAFE)
    far = Fix("Import it", (Edit(Span(90, 0, 90, 0), "a"),), Applicability.SAFE)
    for fix in (two, far):
        (found,) = json.loads(written("rdjson", replace(PLAIN, fix=fix)))["diagnostics"]
        assert "suggestions" not in found


def test_gitlab_has_the_fields_of_code_quality_and_each_fingerprint_once() -> None:
    found = valid(written("gitlab", *ALL, PLAIN), GITLAB)
    assert len({one["fingerprint"] for one in found}) == 5
    assert [one["location"]["path"] for one in found[:3]] == ["src/a.py", "daten für/größe 1.py", "n b.ipynb"]
    assert found[0]["location"]["positions"]["begin"] == {"line": 2, "column": 5}
    assert found[2]["location"]["lines"] == {"begin": 31}
    moved = replace(PLAIN, location=Location("src/a.py", Span(9, 4, 9, 12)), lines=((9, "    x.half()"),))
    assert json.loads(written("gitlab", moved))[0]["fingerprint"] == found[0]["fingerprint"]


def test_pylint_names_the_line_of_a_notebooks_file() -> None:
    assert written("pylint", FAR, NOTEBOOK).splitlines() == [
        "daten für/größe 1.py:1: [DT104(cast-result-discarded)] the result of `x.half()` is thrown away",
        "n b.ipynb:31: [DT101(model-half)] m",
    ]


@pytest.mark.parametrize(
    ("path", "relative", "uri", "github"),
    [
        ("src\\a b.py", "src/a b.py", "src/a%20b.py", r"D%3A\work\src\a b.py"),
        ("D:\\work\\x\\..\\a.py", "a.py", "a.py", r"D%3A\work\a.py"),
        ("E:\\lib\\é.py", "E:/lib/é.py", "file:///E:/lib/%C3%A9.py", r"E%3A\lib\é.py"),
    ],
)
def test_on_windows_names_have_slashes_where_readers_want_them(
    path: str, relative: str, uri: str, github: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filename, "here", lambda: PureWindowsPath("D:\\work"))
    found = replace(PLAIN, location=PLAIN.location._replace(path=path), notes=(), fix=None)
    assert json.loads(written("gitlab", found))[0]["location"]["path"] == relative
    assert json.loads(written("rdjson", found))["diagnostics"][0]["location"]["path"] == relative
    assert written("pylint", found).startswith(f"{relative}:2: ")
    (result,) = json.loads(written("sarif", found))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert f",file={github},line=2," in written("github", found)


def test_a_trace_of_windows_is_told_elsewhere_by_its_drive() -> None:
    found = replace(PLAIN, location=PLAIN.location._replace(path="C:\\train\\a.py"), notes=(), fix=None)
    assert json.loads(written("gitlab", found))[0]["location"]["path"] == "C:/train/a.py"
    (result,) = json.loads(written("sarif", found))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///C:/train/a.py"}


def test_a_notebook_of_windows_is_named_by_the_line_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filename, "here", lambda: PureWindowsPath("D:\\work"))
    found = replace(NOTEBOOK, location=NOTEBOOK.location._replace(path="src\\n b.ipynb"))
    assert json.loads(written("gitlab", found))[0]["location"]["path"] == "src/n b.ipynb"
    assert written("pylint", found).startswith("src/n b.ipynb:31: ")
    (result,) = json.loads(written("sarif", found))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "src/n%20b.ipynb"
    assert ",file=D%3A\\work\\src\\n b.ipynb,line=31::" in written("github", found)
