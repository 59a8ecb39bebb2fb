"""A real notebook, in a folder with spaces and non-ASCII letters, through every format that names a place in a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from shutil import copy
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from dtlint.cli import main

NOTEBOOK = Path(__file__).resolve().parents[2] / "fixtures" / "notebook" / "finetune.ipynb"
NAME = "größe 1/fein é.ipynb"
FORMATS = ("gitlab", "sarif", "rdjson", "junit", "pylint", "github", "json", "concise")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The report of the notebook in each format."""
    folder = tmp_path_factory.mktemp("projekt")
    (folder / NAME).parent.mkdir()
    copy(NOTEBOOK, folder / NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        wanted = [argument for format in FORMATS for argument in ("--report", f"{format}:{format}.out")]
        done = CliRunner().invoke(main, ["check", "--isolated", "--no-cache", *wanted, "größe 1"])
    assert done.exit_code == 1, done.output
    return {format: (folder / f"{format}.out").read_text(encoding="utf-8") for format in FORMATS}


@pytest.fixture
def line() -> int:
    """The line of the notebook's file with the cast that is wrong."""
    lines = NOTEBOOK.read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, text in enumerate(lines, 1) if "error: DT103" in text)
    return found


def test_formats_of_lines_name_the_line_of_the_file(reports: dict[str, str], line: int) -> None:
    (quality,) = json.loads(reports["gitlab"])
    assert quality["location"]["path"] == NAME
    assert quality["location"]["lines"]["begin"] == line
    (review,) = json.loads(reports["rdjson"])["diagnostics"]
    assert review["location"] == {"path": NAME, "range": {"start": {"line": line}}}
    assert reports["pylint"].startswith(f"{NAME}:{line}: [DT103(")
    (case,) = ElementTree.fromstring(reports["junit"]).iter("testcase")
    assert (case.get("file"), case.get("line")) == (NAME, str(line))


def test_sarif_encodes_the_name(reports: dict[str, str], line: int) -> None:
    ((result,),) = (run["results"] for run in json.loads(reports["sarif"])["runs"])
    place = result["locations"][0]["physicalLocation"]
    assert re.fullmatch(r"[\w/%.\-]+", place["artifactLocation"]["uri"], re.ASCII)
    assert unquote(place["artifactLocation"]["uri"]) == NAME
    assert place["region"] == {"startLine": line}


def test_github_gets_the_file_and_the_cell(reports: dict[str, str], line: int) -> None:
    command, message = reports["github"].split("::")[1:]
    assert re.search(rf",file=[^,]*/{NAME},line={line}$", command)
    assert message.startswith(f"{NAME}:cell 3:4:5: DT103 ")


def test_people_and_programs_get_the_cell(reports: dict[str, str]) -> None:
    assert reports["concise"].startswith(f"{NAME}:cell 3:4:5: DT103 ")
    assert '"cell": 3' in reports["json"]
