"""`dtlint check` as its user meets it: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dtlint.check import file as check_file
from dtlint.cli import main
from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Severity, Span

BAD = "x = 1  # noqa: DT802\n"
"""One finding of DT801, with a safe fix."""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def check(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["check", *arguments], input=stdin)


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def find(monkeypatch: pytest.MonkeyPatch, *found: tuple[Severity, Applicability]) -> None:
    """Let every file have these findings."""
    diagnostics = [
        Diagnostic(
            "DT801",
            "unused-suppression",
            severity,
            "something",
            Location("a.py", Span(1, 0, 1, 1)),
            fix=Fix("mend", (Edit(Span(1, 0, 1, 0), ""),), applicability),
        )
        for severity, applicability in found
    ]
    monkeypatch.setattr(check_file, "check_source", lambda *_: check_file.Checked(list(diagnostics)))


def test_what_only_an_older_torch_does_is_told_where_the_code_may_meet_one() -> None:
    write("a.py", "import torch\n\nhalf = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16\n")
    assert "DT507" in check("a.py").stdout
    assert "DT507" in check("--target-torch", "2.4", "a.py").stdout
    assert check("--target-torch", "2.6", "a.py").exit_code == 0


def test_a_file_that_is_excluded_though_it_is_named_is_told() -> None:
    write("dtlint.toml", 'extend-exclude = ["gen*.py"]\nforce-exclude = true\n')
    for number in range(5):
        write(f"gen{number}.py", BAD)
    result = check("gen1.py")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "gen1.py is excluded by `extend-exclude`; force-exclude holds that for files given by name, too.\n"
    )
    assert len(check(*(f"gen{number}.py" for number in range(5))).stderr.splitlines()) == 4
    assert "No Python files" in check("gen1.py", ".").stderr
    write("a.py", BAD)
    assert check("gen1.py", "a.py").stderr == ""


def test_a_difference_tells_of_fixes_that_are_held_back() -> None:
    write("a.py", "import torch\n\nx = torch.zeros(3)\nx.half()\n")
    result = check("--diff")
    assert result.exit_code == 0
    assert result.stderr == "No file would change.\n1 hidden fix can be enabled with --unsafe-fixes.\n"
    assert check("--diff", "--unsafe-fixes").stderr == "Would fix 1 problem in 1 file.\n"


def test_a_difference_tells_of_files_that_cannot_be_read() -> None:
    write("a.py", "x = (\n")
    result = check("--diff")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "a.py:1:5: DT802 The file does not parse: '(' was never closed\nNo file would change.\n"


def test_a_clean_file_passes() -> None:
    write("a.py", "import torch\n")
    result = check()
    assert (result.exit_code, result.stdout, result.stderr) == (0, "All checks passed!\n", "")
    assert check("--quiet").output == ""


def test_a_finding_fails() -> None:
    write("pkg/a.py", BAD)
    result = check()
    assert result.exit_code == 1
    assert "DT801" in result.stdout and "pkg/a.py:1:16" in result.stdout
    assert result.stdout.endswith("Found 1 problem (1 warning).\n[*] 1 fixable with --fix.\n")
    assert "Found" not in check("--quiet").output
    assert check("--exit-zero").exit_code == 0


def test_the_summary_counts_by_severity_and_hides_no_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", "x\n")
    find(
        monkeypatch,
        (Severity.ERROR, Applicability.SAFE),
        (Severity.WARNING, Applicability.UNSAFE),
        (Severity.WARNING, Applicability.DISPLAY),
        (Severity.INFO, Applicability.SAFE),
    )
    assert check("--no-cache").stdout.endswith(
        "Found 4 problems (1 error, 2 warnings, 1 note).\n"
        "[*] 2 fixable with --fix.\n1 hidden fix can be enabled with --unsafe-fixes.\n"
    )
    assert check("--no-cache", "--unsafe-fixes").stdout.endswith("[*] 3 fixable with --fix --unsafe-fixes.\n")


def test_information_alone_does_not_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", "x\n")
    find(monkeypatch, (Severity.INFO, Applicability.NONE))
    result = check()
    assert result.exit_code == 0 and "Found 1 problem (1 note)." in result.stdout


def test_fix_mends_and_reports_what_remains() -> None:
    path = write("a.py", BAD)
    write("b.py", "x = (\n")
    result = check("--fix")
    assert path.read_text() == "x = 1\n"
    assert result.exit_code == 1
    assert "Fixed 1 problem.\nFound 1 problem (1 error).\n" in result.stdout and "DT801" not in result.stdout
    result = check("--fix", "a.py")
    assert (result.exit_code, result.stdout) == (0, "All checks passed!\n")


def test_diff_changes_nothing_and_says_so_by_its_exit_code() -> None:
    path = write("a.py", BAD)
    result = check("--diff")
    assert result.exit_code == 1
    assert result.stdout == "--- a.py\n+++ a.py\n@@ -1 +1 @@\n-x = 1  # noqa: DT802\n+x = 1\n"
    assert result.stderr == "Would fix 1 problem in 1 file.\n"
    assert path.read_text() == BAD
    path.write_text("x = 1\n")
    assert check("--diff").exit_code == 0


def test_statistics_are_a_table_and_nothing_else() -> None:
    write("a.py", BAD * 2)
    write("b.py", "x = (\n")
    result = check("--statistics")
    assert (result.exit_code, result.stdout) == (1, "DT801  2  unused-suppression\nDT802  1  unreadable-file\n")
    assert json.loads(check("--statistics", "--output-format", "json").stdout) == [
        {"code": "DT801", "name": "unused-suppression", "count": 2},
        {"code": "DT802", "name": "unreadable-file", "count": 1},
    ]


def test_a_machine_format_holds_only_the_report() -> None:
    write("a.py", BAD)
    assert [found["code"] for found in json.loads(check("--output-format", "json").stdout)] == ["DT801"]
    assert json.loads(check("--output-format", "json", "--ignore", "DT801").stdout) == []


def test_the_report_goes_to_a_file() -> None:
    write("a.py", BAD)
    result = check("--output-format", "concise", "--output-file", "report.txt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert Path("report.txt").read_text().startswith("a.py:1:16: DT801 [*] ")
    assert ": File name too long; name another file" in check("--output-file", "x" * 300).output


def test_selection_from_the_command_line_and_from_a_file() -> None:
    write("a.py", BAD)
    assert check("--ignore", "DT8").exit_code == 0
    assert check("--select", "DT802").exit_code == 0
    assert check("--select", "dt801").exit_code == check("--select", "all").exit_code == 1
    assert check("--select", "DT802,unused-suppression").exit_code == 1
    write("dtlint.toml", 'ignore = ["unused-suppression"]\n')
    assert check().exit_code == 0
    assert check("--extend-select", "DT801").exit_code == 1
    assert check("--isolated").exit_code == 1
    write("other.toml", "[per-file-ignores]\n'a.py' = ['DT801']\n")
    assert check("--config", "other.toml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py"], "nowhere.py does not exist"),
        (["a.py", "no/where"], "no/where does not exist"),
        (
            ["--extend-select", "DT1", "--config", "p.toml"],
            "p.toml: extend-exclude has 'build\\\\', which is no pattern",
        ),
        (["--select", "DT8O1"], "dtlint check: --select has 'DT8O1', which names no rule; did you mean 'DT801'?"),
        (["--target-torch", "new"], "no torch release"),
        (["--output-format", "yaml"], "yaml"),
        (["-", "a.py"], "standard input"),
        (["--stdin-filename", "b.py"], "needs `-`"),
        (["--isolated", "--config", "a.py"], "--isolated"),
        (["--add-noqa", "--fix"], "--add-noqa"),
        (["--add-ignore", "--diff"], "--add-ignore"),
        (["--add-ignore", "--add-noqa"], "choose one"),
        (["--select", ""], "no rule is named"),
        (["--statistics", "--output-format", "sarif"], "as text or as json"),
        (["--diff", "--output-format", "json"], "--output-format"),
        (["--diff", "--statistics"], "--statistics"),
        (["--add-noqa", "--output-file", "x.txt"], "--output-file"),
        (["--fix", "--output-file", "no/out.txt"], "cannot write no/out.txt: there is no directory no"),
        (["--output-file", "a.py"], "--output-file a.py would overwrite a file that is to be checked"),
        (["--output-file", "link.txt"], "would overwrite a file that is to be checked"),
        (["--config", "c.toml", "--output-file", "c.toml"], "would overwrite the configuration"),
        (["-", "--stdin-filename", "a.py", "--output-file", "./a.py"], "would overwrite"),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: list[str], words: str) -> None:
    write("a.py", BAD)
    write("c.toml", "")
    write("p.toml", "extend-exclude = ['build\\']\n")
    Path("link.txt").symlink_to("a.py")
    result = check(*arguments)
    assert result.exit_code == 2 and words in result.stderr and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert Path("a.py").read_text() == BAD


def test_wrong_settings_are_refused_before_anything_runs() -> None:
    path = write("a.py", BAD)
    write("sub/pyproject.toml", "[tool.dtlint]\nslect = []\n")
    write("sub/b.py", BAD)
    result = check("--fix")
    assert result.exit_code == 2 and "sub/pyproject.toml: there is no setting 'slect'" in result.stderr
    assert path.read_text() == BAD


def test_an_internal_error_is_told_and_the_rest_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", BAD)
    write("b.py", BAD)
    before = check_file.check_source

    def crash(source, *others):  # type: ignore[no-untyped-def]
        if source.path == "a.py":
            raise TypeError("mistake")
        return before(source, *others)

    monkeypatch.setattr(check_file, "check_source", crash)
    result = check("--no-cache")
    assert result.exit_code == 2
    assert "a.py: internal error: TypeError: mistake" in result.stderr and "b.py:1:16" in result.stdout


def test_standard_input() -> None:
    result = check("-", stdin=BAD)
    assert result.exit_code == 1 and "-:1:16" in result.stdout
    result = check("-", "--stdin-filename", "src/a.py", "--output-format", "concise", stdin="x = (\n")
    assert result.exit_code == 1 and result.stdout.startswith("src/a.py:1:5: DT802")
    assert check("-", stdin="").stdout == "All checks passed!\n"
    assert "0xff" in check("-", stdin=b"\xff").stdout


def test_standard_input_fixed_goes_to_standard_output() -> None:
    result = check("-", "--fix", stdin=BAD + "y = 2\r\n")
    assert (result.exit_code, result.stdout_bytes) == (0, b"x = 1\ny = 2\r\n")
    assert result.stderr == "Fixed 1 problem.\n"
    result = check("-", "--fix", stdin="x = (\n")
    assert (result.exit_code, result.stdout) == (1, "x = (\n") and "DT802" in result.stderr
    result = check("-", "--diff", "--stdin-filename", "a.py", stdin=BAD)
    assert result.exit_code == 1 and result.stdout.startswith("--- a.py\n")


def test_standard_input_has_the_settings_of_its_name() -> None:
    write("src/dtlint.toml", 'extend-exclude = ["gen.py"]\n[per-file-ignores]\n"a.py" = ["DT801"]\n')
    assert check("-", stdin=BAD).exit_code == 1
    assert check("-", "--stdin-filename", "src/a.py", stdin=BAD).exit_code == 0
    assert check("-", "--stdin-filename", "src/gen.py", "--force-exclude", "--fix", stdin=BAD).stdout == BAD


def test_a_notebook_is_fixed_in_its_cell() -> None:
    document = {"cells": [{"cell_type": "code", "source": ["%cd x\n", BAD, "y"]}], "metadata": {}, "nbformat": 4}
    path = write("n.ipynb", json.dumps(document, indent=1) + "\n")
    before = path.read_text()
    assert "n.ipynb:cell 1:2:16" in check("--output-format", "concise").stdout
    assert check("--fix").exit_code == 0
    assert path.read_text() == before.replace("  # noqa: DT802", "")


def test_add_noqa_silences_what_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a.py", "model = 1  # dtlint\n")
    found = Diagnostic("DT101", "model-half", Severity.WARNING, "half", Location("a.py", Span(1, 0, 1, 5)), noqa_line=1)
    monkeypatch.setattr(check_file, "check_source", lambda *_: check_file.Checked([found]))
    result = check("--add-noqa")
    assert (result.exit_code, result.stderr) == (0, "Added 1 suppression.\n")
    assert path.read_text() == "model = 1  # dtlint  # noqa: DT101\n"


def test_add_ignore_does_so_by_comments_of_our_own() -> None:
    bad = "import torch\n\nx = torch.zeros(3)\nx.type(torch.float16, inplace=True)"
    path = write("a.py", f"# dtlint: file-ignore[DT103]\n{bad}  # noqa: E501\n{bad}  # dtlint: ignore[DT104]\n")
    result = check("--add-ignore", "--ignore", "DT801")
    assert (result.exit_code, result.stderr) == (0, "Added 2 suppressions.\n")
    assert path.read_text() == (
        f"# dtlint: file-ignore[DT103]\n{bad}  # noqa: E501  # dtlint: ignore[DT102]\n{bad}  # dtlint: ignore[DT104, DT102]\n"
    )
    assert check("--ignore", "DT801").exit_code == 0


def test_nothing_to_check_is_said() -> None:
    result = check()
    assert result.exit_code == 0 and "No Python files" in result.stderr
    assert "All checks passed" not in result.output


def test_the_cache_lies_beside_the_configuration() -> None:
    write("dtlint.toml", "")
    write("sub/a.py", "x = 1\n")
    os.chdir("sub")
    check()
    assert Path("../.dtlint_cache").is_dir() and not Path(".dtlint_cache").exists()


def test_a_clean_file_loads_nothing_heavy() -> None:
    write("a.py", "import torch\n\nx = torch.ones(3)\n")
    code = (
        "import sys; from dtlint.cli import main\n"
        "try: main(['check', 'a.py'])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(*sorted({'torch', 'libcst', 'rich', 'pathspec', 'concurrent.futures'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("All checks passed!\n\n", "")


HALF = "import torch\n\n\ndef solved(x: torch.Tensor) -> torch.Tensor:\n    return torch.linalg.inv(x) + 1e-9\n"
LEAVING = "import torch\n\n\ndef shifted(x: torch.Tensor) -> torch.Tensor:\n    return x * torch.ones(3).cos()\n"
HINT = "2 problems if inputs and weights are float16: `dtlint check --assume half library.py`"


def test_the_last_line_says_how_much_would_break_under_half() -> None:
    Path("library.py").write_text(HALF)
    Path("other.py").write_text("print('no tensors')\n")
    for _ in range(2):  # the second time from the cache
        result = check("library.py", "other.py")
        assert result.stdout.splitlines()[-2:] == [
            "All checks passed!",
            HINT.replace("library.py", "library.py other.py"),
        ]
        assert result.exit_code == 0
    assert "if inputs and weights" not in check("--quiet", "library.py").stdout
    assert "if inputs and weights" not in check("--assume", "bfloat16", "library.py").stdout
    assert "if inputs and weights" not in check("--output-format", "json", "library.py").stdout
    assert "if inputs and weights" not in check("other.py").stdout


def test_of_many_files_a_few_are_looked_at_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.check.run.GLANCES", 2)
    for name in "abcd":
        Path(f"{name}.py").write_text(HALF)
    assert check(".").stdout.splitlines()[-1] == HINT.replace("2 problems", "At least 4 problems").replace(
        "library.py", "."
    )


def test_what_earlier_runs_have_kept_does_not_change_the_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.check.run.GLANCES", 2)
    for name in "abcd":
        Path(f"{name}.py").write_text(HALF)
    check("--quiet", ".")  # looks at none
    check("b.py", "d.py")  # at others
    assert "At least 4 problems" in check(".").stdout.splitlines()[-1]
    check("--output-format", "json", ".")
    assert "At least 4 problems" in check(".").stdout.splitlines()[-1]


def test_the_command_of_the_hint_finds_as_much_more_as_the_hint_says() -> None:
    """Ordinary findings, a call that leads to a place in another file, a silenced one, and a path with a space."""
    folder = Path("my src")
    folder.mkdir()
    (folder / "library.py").write_text(
        HALF + "\n\ndef silenced(x: torch.Tensor):\n    return torch.linalg.inv(x)  # noqa\n"
    )
    (folder / "leaving.py").write_text(LEAVING)
    (folder / "calls.py").write_text(
        "import torch\nfrom library import solved\n\n\ndef both(x: torch.Tensor):\n    return solved(x)\n"
    )
    (folder / "old.py").write_text(BAD)
    first = check("my src", "--ignore", "DT403")
    found = re.search(r"^Found (\d+) problem", first.stdout, re.MULTILINE)
    hint = re.search(r"^(\d+) more problems? if .*: `dtlint (check .*)`$", first.stdout, re.MULTILINE)
    assert found and hint and hint[2] == "check --assume half --ignore DT403 'my src'"
    second = check(*shlex.split(hint[2])[1:]).stdout
    assert f"Found {int(found[1]) + int(hint[1])} problems" in second
    assert f", {hint[1]} of them under half." in second
    assert not set(re.findall(r"^warning.*$", first.stdout, re.MULTILINE)) - set(second.splitlines())


def test_a_project_that_says_what_it_supports_needs_no_hint() -> None:
    Path("pyproject.toml").write_text('[tool.dtlint]\nsupports = ["double"]\n')
    Path("library.py").write_text(HALF)
    assert "would break" not in check("library.py").stdout


def test_several_reports_at_once() -> None:
    write("a.py", BAD)
    formats = ["json:a.json", "gitlab:b.json", "sarif:c.sarif", "junit:d.xml", "pylint:é e.txt", "rdjson:f.json"]
    result = check("--output-format", "concise", *(word for each in formats for word in ("--report", each)))
    assert result.exit_code == 1
    assert "a.py:1:16: DT801" in result.stdout
    assert json.loads(Path("a.json").read_text())[0]["code"] == "DT801"
    assert json.loads(Path("b.json").read_text())[0]["location"]["path"] == "a.py"
    assert json.loads(Path("c.sarif").read_text())["version"] == "2.1.0"
    assert Path("d.xml").read_text().startswith("<?xml")
    assert Path("é e.txt").read_text().startswith("a.py:1: [DT801(")
    assert json.loads(Path("f.json").read_text())["source"] == {"name": "dtlint"}


def test_a_report_replaces_a_file_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", BAD)
    write("kept.json", "before")
    Path("kept.json").chmod(0o600)
    Path("link.json").symlink_to("kept.json")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full)
        result = check("--report", "json:link.json")
    assert (result.exit_code, Path("kept.json").read_text()) == (2, "before")
    assert "--report link.json cannot be written: No space left on device" in result.output.replace(
        f"{Path.cwd()}/", ""
    )
    assert sorted(path.name for path in Path().glob("*json")) == ["kept.json", "link.json"]
    check("--report", "json:link.json")
    assert Path("link.json").is_symlink()
    assert json.loads(Path("kept.json").read_text())
    assert Path("kept.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--report", "out.html"], "'out.html' is no format; write it as sarif:FILE"),
        (["--report", "yaml:x"], "'yaml' is no format"),
        (["--report", "json:"], "'json:' names no file"),
        (["--report", "json:-"], "--output-format json"),
        (["--report", "json:none/x.json"], "cannot write none/x.json: there is no directory none"),
        (["--report", "json:folder"], "cannot write folder: it is a directory; name a file in it"),
        (["--report", "json:a.py"], "--report a.py would overwrite a file that is to be checked"),
        (["--report", "json:x", "--report", "sarif:./x"], "two reports cannot go into"),
        (["--output-file", "x", "--report", "sarif:./x"], "two reports cannot go into"),
        (["--diff", "--report", "json:x"], "--diff writes no report, so it cannot go with --report"),
    ],
)
def test_reports_that_cannot_be_are_refused_before_anything_is_checked(arguments: list[str], message: str) -> None:
    write("a.py", BAD)
    Path("folder").mkdir()
    result = check(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("a.py", BAD)

    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    result = check("--report", "json:x.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot write x.json: Read-only file system; name another file" in result.stderr


def test_a_notebook_of_a_strange_name_is_found_at_the_line_of_its_file() -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# é"]},
        {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": ["y = 1\n", BAD]},
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    write("daten für/größe 1.ipynb", text)
    raw = next(number for number, line in enumerate(text.splitlines(), 1) if "noqa" in line)
    check("--report", "gitlab:g.json", "--report", "sarif:s.sarif", "--report", "github:h.txt")
    (issue,) = json.loads(Path("g.json").read_text())
    assert issue["location"] == {"path": "daten für/größe 1.ipynb", "lines": {"begin": raw}}
    (result,) = json.loads(Path("s.sarif").read_text())["runs"][0]["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "daten%20f%C3%BCr/gr%C3%B6%C3%9Fe%201.ipynb"
    assert physical["region"] == {"startLine": raw}
    assert f"daten für/größe 1.ipynb,line={raw}::" in Path("h.txt").read_text()
