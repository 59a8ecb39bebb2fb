"""SARIF 2.1.0: the structure that its readers rely on, section numbers of the OASIS standard beside each."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dtlint import Rule, __version__
from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
from dtlint.report import write


class Discarded(Rule):
    """A cast whose result is thrown away.

    ## What it does
    Finds casts.

    ## Why it matters
    Nothing happens.
    """

    code, name, severity = "DT104", "cast-result-discarded", Severity.ERROR


FOUND = Diagnostic(
    code="DT104",
    name="cast-result-discarded",
    severity=Severity.WARNING,
    message="the result is thrown away",
    location=Location("a.py", Span(2, 4, 2, 12)),
    lines=((2, "    x.half()"),),
)


def run(*diagnostics: Diagnostic, rules: Mapping[str, type[Rule]] | None = None) -> Any:
    stream = io.StringIO()
    write(diagnostics, "sarif", stream, {"DT104": Discarded} if rules is None else rules)
    log = json.loads(stream.getvalue())
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (only,) = log["runs"]
    return only


def test_a_clean_run_has_an_empty_list_of_results() -> None:
    """3.14.23: no `results` would mean that nothing was looked at."""
    clean = run()
    assert clean["results"] == []
    assert clean["tool"]["driver"] == {"name": "dtlint", "version": __version__, "rules": []}


def test_a_result_names_its_rule_by_id_and_index() -> None:
    """3.27.5 to 3.27.7."""
    other = replace(FOUND, code="DT101", name="model-half")
    both = run(FOUND, other)
    ids = [rule["id"] for rule in both["tool"]["driver"]["rules"]]
    assert ids == ["DT101", "DT104"]
    assert [(ids[result["ruleIndex"]], result["ruleId"]) for result in both["results"]] == [
        ("DT104",) * 2,
        ("DT101",) * 2,
    ]


def test_a_rule_brings_its_documentation() -> None:
    """3.49: descriptors; `help.markdown` is what code scanning shows."""
    (rule,) = run(FOUND)["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("DT104", "cast-result-discarded")
    assert rule["shortDescription"] == {"text": "A cast whose result is thrown away."}
    assert rule["fullDescription"] == {"text": "Finds casts."}
    assert "## Why it matters" in rule["help"]["markdown"]
    assert rule["help"]["text"]
    assert rule["defaultConfiguration"] == {"level": "error", "enabled": True}


def test_a_rule_that_is_not_at_hand_is_still_described() -> None:
    assert run(FOUND, rules={})["tool"]["driver"]["rules"] == [{"id": "DT104", "name": "cast-result-discarded"}]


@pytest.mark.parametrize(
    ("severity", "level"), [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")]
)
def test_levels(severity: Severity, level: str) -> None:
    """3.27.10."""
    assert run(replace(FOUND, severity=severity))["results"][0]["level"] == level


def test_regions_count_code_points_from_one_and_end_exclusively() -> None:
    """3.30, 3.14.17."""
    only = run(FOUND)
    assert only["columnKind"] == "unicodeCodePoints"
    region = only["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 13}


@pytest.mark.parametrize(
    ("path", "artifact"),
    [
        ("src/a.py", {"uri": "src/a.py", "uriBaseId": "SRCROOT"}),
        ("src/../a b#1%.py", {"uri": "a%20b%231%25.py", "uriBaseId": "SRCROOT"}),
        ("été.py", {"uri": "%C3%A9t%C3%A9.py", "uriBaseId": "SRCROOT"}),
        ("/elsewhere/a b.py", {"uri": "file:///elsewhere/a%20b.py"}),
        ("-", {"uri": "-"}),
    ],
)
def test_files_are_named_by_escaped_uris_relative_to_the_working_directory(
    path: str, artifact: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.4.3, 3.4.4."""
    monkeypatch.chdir(tmp_path)
    only = run(replace(FOUND, location=FOUND.location._replace(path=path)))
    assert only["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == artifact
    assert "SRCROOT" in only["originalUriBaseIds"]


def test_a_file_below_the_working_directory_is_relative_even_if_named_absolutely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    only = run(replace(FOUND, location=FOUND.location._replace(path=str(tmp_path / "a.py"))))
    assert only["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a.py"


def test_fingerprints_follow_the_text_and_tell_repeats_apart() -> None:
    """3.27.17: the same finding keeps its fingerprint when lines are added above it."""

    def prints(*diagnostics: Diagnostic) -> list[str]:
        return [result["partialFingerprints"]["dtlint/v1"] for result in run(*diagnostics)["results"]]

    moved = replace(FOUND, location=Location("a.py", Span(9, 0, 9, 8)), lines=((9, "x.half()"),))
    changed = replace(FOUND, lines=((2, "    y.half()"),))
    assert prints(FOUND) == prints(moved)
    assert prints(FOUND) != prints(changed)
    assert len(set(prints(FOUND, moved))) == 2


def test_fixes() -> None:
    """3.55 to 3.57: an insertion has an empty region, a deletion no content."""
    fix = Fix("Assign it", (Edit(Span(2, 4, 2, 4), "x = "), Edit(Span(2, 5, 2, 6), "")), Applicability.UNSAFE)
    (found,) = run(replace(FOUND, fix=fix))["results"][0]["fixes"]
    assert found["description"] == {"text": "Assign it (unsafe)"}
    assert found["artifactChanges"] == [
        {
            "artifactLocation": {"uri": "a.py", "uriBaseId": "SRCROOT"},
            "replacements": [
                {
                    "deletedRegion": {"startLine": 2, "startColumn": 5, "endLine": 2, "endColumn": 5},
                    "insertedContent": {"text": "x = "},
                },
                {"deletedRegion": {"startLine": 2, "startColumn": 6, "endLine": 2, "endColumn": 7}},
            ],
        }
    ]


def test_notes_are_related_locations() -> None:
    """3.27.22."""
    noted = replace(FOUND, notes=(Note(Location("b.py", Span(1, 0, 1, 3)), "cast here"),))
    (related,) = run(noted)["results"][0]["relatedLocations"]
    assert related["id"] == 1
    assert related["message"] == {"text": "cast here"}
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "b.py"


def test_a_witness_is_a_code_flow_that_ends_at_the_place() -> None:
    """3.36."""
    steps = (
        Note(Location("a.py", Span(1, 0, 1, 3)), "`x` is given in float16", 1),
        Note(Location("a.py", Span(1, 4, 1, 7)), "called here", 2),
    )
    (result,) = run(replace(FOUND, notes=steps))["results"]
    assert "relatedLocations" not in result
    (flow,) = result["codeFlows"]
    (thread,) = flow["threadFlows"]
    places = [one["location"] for one in thread["locations"]]
    assert [one["message"]["text"] for one in places] == ["`x` is given in float16", "called here", FOUND.message]
    assert places[-1]["physicalLocation"] == result["locations"][0]["physicalLocation"]


def test_a_notebook_is_located_by_the_line_of_its_file_and_has_no_fixes() -> None:
    fix = Fix("Assign it", (Edit(Span(2, 4, 2, 4), "x = "),), Applicability.SAFE)
    found = replace(FOUND, location=Location("n.ipynb", Span(2, 4, 2, 12), cell=3, file_line=41), fix=fix)
    (result,) = run(found)["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 41}
    assert result["properties"] == {"cell": 3, "rowInCell": 2}
    assert "fixes" not in result
