"""A baseline: what it knows again, what is new, and what is stale."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dtlint.cli import main

BAD = "import torch\n\nx = torch.zeros(3)\nx.type(torch.float16, inplace=True)\n"
"""One finding of DT102."""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src").mkdir()
    Path("src/a.py").write_text(BAD)


def check(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["check", "--output-format", "concise", *arguments], input=stdin)


def known(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["check", "--baseline", "known.json", "--write-baseline", *arguments])


def test_what_it_holds_is_not_reported_again() -> None:
    written = known()
    assert (written.exit_code, written.stderr) == (0, "Wrote 1 problem to known.json.\n")
    result = check("--baseline", "known.json")
    assert (result.exit_code, result.stdout) == (0, "All checks passed!\n")
    assert "Left out 1 problem" in result.stderr
    assert json.loads(Path("known.json").read_text())["findings"] == [
        {"path": "src/a.py", "code": "DT102", "text": "x.type(torch.float16, inplace=True)", "count": 1}
    ]


def test_a_finding_is_known_again_on_another_line_and_with_other_white_space() -> None:
    known()
    Path("src/a.py").write_text("# more\n\n" + BAD.replace("float16, inplace", "float16,  inplace"))
    assert check("--baseline", "known.json").exit_code == 0


def test_a_second_one_like_it_is_new() -> None:
    known()
    Path("src/a.py").write_text(BAD + "x.type(torch.float16, inplace=True)\n")
    result = check("--baseline", "known.json")
    assert result.exit_code == 1
    assert result.stdout.count("DT102") == 1


def test_the_same_line_in_another_file_is_new() -> None:
    known()
    Path("src/b.py").write_text(BAD)
    assert "src/b.py:4" in check("--baseline", "known.json").stdout


def test_stale_entries_are_told() -> None:
    known()
    Path("src/a.py").write_text("import torch\n")
    result = check("--baseline", "known.json")
    assert result.exit_code == 0
    assert "  src/a.py: DT102 x.type(torch.float16, inplace=True)\n" in result.stderr


@pytest.mark.parametrize("arguments", [("--ignore", "DT102"), ("other",)])
def test_what_was_not_looked_for_is_not_stale(arguments: tuple[str, ...]) -> None:
    known()
    Path("src/a.py").write_text("import torch\n")
    Path("other").mkdir()
    assert "src/a.py" not in check("--baseline", "known.json", *arguments).stderr


def test_entries_of_a_file_that_is_gone_are_stale() -> None:
    known()
    Path("src/a.py").unlink()
    assert "src/a.py: DT102" in check("--baseline", "known.json").stderr


def test_paths_are_relative_to_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known()
    monkeypatch.chdir(tmp_path / "src")
    assert check("--baseline", "../known.json").exit_code == 0


def test_the_configuration_may_name_it() -> None:
    Path("dtlint.toml").write_text('baseline = "known.json"\n')
    assert CliRunner().invoke(main, ["check", "--write-baseline"]).exit_code == 0
    assert check().exit_code == 0
    assert check("src").exit_code == 0


def test_the_configuration_of_a_project_names_it_from_wherever_it_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("dtlint.toml").write_text('baseline = "known.json"\n')
    assert CliRunner().invoke(main, ["check", "--write-baseline"]).exit_code == 0
    elsewhere = tmp_path.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    monkeypatch.chdir(elsewhere)
    assert check(str(tmp_path)).exit_code == 0
    assert check("--stdin-filename", str(tmp_path / "src/a.py"), "-", stdin=BAD).exit_code == 0


def test_each_file_obeys_the_baseline_of_its_own_settings() -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(name, "dtlint.toml").write_text('baseline = "known.json"\n')
        Path(name, "a.py").write_text(BAD)
    assert CliRunner().invoke(main, ["check", "one", "two", "--write-baseline"]).exit_code == 0
    assert check("one", "two").exit_code == 0
    Path("two/known.json").write_text('{"version": 1, "findings": []}')
    result = check("one", "two", "src", "--output-format", "concise")
    assert [line.partition(":")[0] for line in result.stdout.splitlines() if ".py:" in line] == ["src/a.py", "two/a.py"]
    Path("one/a.py").write_text("")
    assert "one/a.py: DT102" in check(".").stderr


def test_a_finding_that_no_baseline_would_keep_is_refused() -> None:
    Path("one").mkdir()
    Path("one/dtlint.toml").write_text('baseline = "known.json"\n')
    result = CliRunner().invoke(main, ["check", "one", "src", "--write-baseline"])
    assert result.exit_code == 2
    assert "the settings of src/a.py name no baseline" in result.stderr
    assert not Path("one/known.json").exists()


def test_standard_input_has_it_too() -> None:
    known()
    assert check("--baseline", "known.json", "--stdin-filename", "src/a.py", "-", stdin=BAD).exit_code == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "known.json cannot be read: No such file or directory; --write-baseline makes it"),
        ("[", "known.json is not JSON"),
        ('{"findings": [1]}', "known.json holds something else"),
        ('{"findings": [{"path": "", "code": "", "text": "", "count": Infinity}]}', "known.json holds something else"),
        ('{"version": 9, "findings": []}', "known.json was written by a newer dtlint"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(content: str | None, said: str) -> None:
    if content is not None:
        Path("known.json").write_text(content)
    result = check("--baseline", "known.json")
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize("other", ["--fix", "--diff", "--add-noqa", "--statistics"])
def test_writing_it_goes_with_nothing_that_changes_or_reports(other: str) -> None:
    result = known(other)
    assert result.exit_code == 2
    assert not Path("known.json").exists()


def test_it_does_not_overwrite_a_source_file() -> None:
    result = CliRunner().invoke(main, ["check", "--baseline", "src/a.py", "--write-baseline"])
    assert result.exit_code == 2
    assert Path("src/a.py").read_text() == BAD
