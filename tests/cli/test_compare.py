"""`dtlint compare` on the command line: formats, exit codes, and one line for what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

torch = pytest.importorskip("torch")

from dtlint.cli import main  # noqa: E402
from dtlint.trace.export import record_of  # noqa: E402
from dtlint.trace.mode import Tracer  # noqa: E402
from dtlint.trace.options import Options  # noqa: E402
from dtlint.trace.store import save  # noqa: E402


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three records: a, b that is rounded, and c that is wrong."""
    monkeypatch.chdir(tmp_path)
    for name, dtype, factor in (("a", "float32", 1.0), ("b", "bfloat16", 1.0), ("c", "bfloat16", 1.5)):
        tracer = Tracer(Options(sketch=True))
        with tracer:
            x = torch.linspace(0.1, 1, 50).to(getattr(torch, dtype))
            y = (x @ x) * factor
            (y + 1).item()
        save(record_of(tracer, ["test"], 0), tmp_path / f"{name}.json")
    tracer = Tracer()
    with tracer:
        torch.ones(2) * 2
    save(record_of(tracer, ["test"], 0), tmp_path / "bare.json")
    return tmp_path


def compared(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["compare", *arguments])


def test_honest_rounding_passes(records: Path) -> None:
    result = compared("a.json", "b.json")
    assert result.exit_code == 0
    assert "Beyond rounding: nothing" in result.stdout


def test_what_is_beyond_rounding_fails(records: Path) -> None:
    result = compared("a.json", "c.json")
    assert result.exit_code == 1
    assert "(x @ x) * factor" in result.stdout
    assert "1.5 times as large" in result.stdout
    assert compared("a.json", "c.json", "--fail-on", "").exit_code == 0
    assert compared("a.json", "b.json", "--fail-on", "difference").exit_code == 1
    assert compared("a.json", "a.json", "--fail-on", "difference,unmatched,beyond").exit_code == 0


def test_json_has_it_all(records: Path) -> None:
    result = compared("a.json", "c.json", "--output-format", "json", "--report-file", "out.json")
    assert result.stdout == ""
    made = json.loads((records / "out.json").read_text())
    assert made["first"] == {"record": "a.json", "precision": "float32"}
    [finding] = made["findings"]
    assert (finding["op"], finding["step"], finding["dtypes"]) == ("mul", 1, ["float32", "bfloat16"])
    assert finding["expression"] == "(x @ x) * factor"
    assert finding["difference"] == pytest.approx(1 / 3, rel=0.5)


def test_a_page_is_written_beside_the_screen(records: Path) -> None:
    result = compared("a.json", "c.json", "--html", "out.html")
    assert result.exit_code == 1
    assert "Beyond rounding, in the order" in result.stdout
    page = (records / "out.html").read_text()
    assert page.startswith("<!doctype html>") and "<title>a.json and c.json, dtlint compare</title>" in page
    assert '"y = (x @ x) * factor"' not in page and "(x @ x) * factor" in page, "with its line of source, in pieces"
    assert compared("a.json", "c.json", "--html", "again.html", "-q").stdout == ""
    assert (records / "again.html").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a.json", "bare.json"), "bare.json has no sketches; trace again with: dtlint trace --sketch"),
        (("a.json", "none.json"), "cannot read none.json: No such file or directory"),
        (("a.json", "."), ". holds records of several runs: two records, a.json and b.json; keep those of one run"),
        (("a.json", "b.json", "--fail-on", "bad"), "--fail-on bad is not known; use beyond, unmatched, difference"),
        (("a.json", "b.json", "--report-file", "b.json"), "--report-file b.json would overwrite a record"),
        (("a.json", "b.json", "--html", "a.json"), "--html a.json would overwrite a record"),
        (("a.json", "b.json", "--html", "x", "--report-file", "x"), "two reports cannot go into x"),
        (("a.json", "bare.json", "--html", "new.html"), "bare.json has no sketches"),
        (("a.json", "b.json", "--report-file", "no/x"), "cannot write no/x: there is no directory no"),
    ],
)
def test_bad_input_is_one_line(records: Path, arguments: tuple[str, ...], told: str) -> None:
    before = (records / "b.json").read_bytes()
    result = compared(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert (records / "b.json").read_bytes() == before
    assert not (records / "new.html").exists()


def test_a_sketch_needs_a_file(records: Path) -> None:
    (records / "program.py").write_text("print(1)")
    result = CliRunner().invoke(main, ["trace", "--sketch", "program.py"])
    assert result.exit_code == 2
    assert "name a file for the record with --output" in result.stderr
