"""The command line's shell: help, version, lazy commands, and what happens when something goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dtlint
from dtlint.cli import COMMANDS, main


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def command_that(raises: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a `rule` command in place that raises."""

    @click.command("rule")
    def command() -> None:
        raise raises

    monkeypatch.setattr("dtlint.cli.rule.command", command)


def test_version() -> None:
    result = CliRunner().invoke(main, ["--version"])
    assert (result.exit_code, result.output) == (0, f"dtlint {dtlint.__version__}\n")


def test_the_file_of_a_report_has_the_same_names_in_all_commands() -> None:
    context, names = click.Context(main), {"--output-file", "--report-file"}
    found = {}
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        found[name] = {option for parameter in command.params for option in parameter.opts} & names
    assert {name for name, options in found.items() if options} >= {"check", "trace", "report", "diff", "compare"}
    assert all(options in (set(), names) for options in found.values()), found


def test_help_lists_the_commands_and_examples() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for name, line in COMMANDS.items():
        assert f"  {name}" in result.output
        assert line in result.output
    assert "dtlint check --fix src/ train.ipynb" in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_exists_and_explains_itself(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Examples:" in result.output


def test_help_imports_no_command() -> None:
    result = python(
        "-c",
        "import sys; from dtlint.cli import main; main(['--help'], standalone_mode=False);"
        "print(*(name for name in sys.modules if name.startswith('dtlint.')))",
    )
    assert result.stdout.splitlines()[-1] == "dtlint.cli"


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(main, ["chek"])
    assert (result.exit_code, result.output) == (2, "dtlint: there is no command 'chek'; did you mean 'check'?\n")


def test_a_command_like_no_other_is_answered_with_all() -> None:
    result = CliRunner().invoke(main, ["zzz"])
    assert result.output == f"dtlint: there is no command 'zzz'; use one of {', '.join(COMMANDS)}\n"


@pytest.mark.parametrize("arguments", [["--foo"], ["rule", "--foo"], ["rule", "--output-format", "xml"]])
def test_wrong_usage_is_one_line_and_exit_code_two(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert len(result.output.splitlines()) == 1


def test_an_unexpected_exception_is_one_line_and_exit_code_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DTLINT_DEBUG", raising=False)
    command_that(ZeroDivisionError("division\nby zero"), monkeypatch)
    result = CliRunner().invoke(main, ["rule"])
    assert result.exit_code == 2
    assert result.output == (
        "dtlint: internal error: ZeroDivisionError: division by zero; please report it, with the command and the file."
        " Run again with DTLINT_DEBUG=1 for the traceback\n"
    )


def test_debug_adds_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTLINT_DEBUG", "1")
    command_that(ZeroDivisionError("division by zero"), monkeypatch)
    result = CliRunner().invoke(main, ["rule"])
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.output


def test_ctrl_c_ends_as_shells_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    command_that(KeyboardInterrupt(), monkeypatch)
    assert CliRunner().invoke(main, ["rule"]).exit_code == 130


@pytest.mark.parametrize("code", [0, 1, 2, 7])
def test_exit_codes_of_commands_pass_through(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    command_that(SystemExit(code), monkeypatch)
    assert CliRunner().invoke(main, ["rule"]).exit_code == code


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break differently there")
@pytest.mark.parametrize("ending", ["", "; sys.exit(1)", "; click.get_current_context().exit(1)"])
def test_a_reader_that_went_away_is_no_error(ending: str) -> None:
    code = (
        "import sys, click, dtlint.cli, dtlint.cli.rule as rule\n"
        f"def talk(): print('much'){ending}\n"
        "rule.command = click.Command('rule', callback=talk); dtlint.cli.main(['rule'])"
    )
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_output_survives_an_encoding_that_lacks_a_character() -> None:
    code = (
        "import sys, click, dtlint.cli, dtlint.cli.rule as rule;"
        "rule.command = click.Command('rule', callback=lambda: print('\\u6f22 \\udcff'));"
        "dtlint.cli.main(['rule'])"
    )
    done = python("-c", code, PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, "\\u6f22 \\udcff\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    done = python("-m", "dtlint", _DTLINT_COMPLETE=f"{shell}_source")
    assert "_DTLINT_COMPLETE" in done.stdout


def test_completion_offers_the_commands() -> None:
    done = python("-m", "dtlint", _DTLINT_COMPLETE="bash_complete", COMP_WORDS="dtlint r", COMP_CWORD="1")
    assert done.stdout.split() == ["plain,report", "plain,rule"]


@pytest.mark.parametrize("name", ["check", "trace", "report", "infer"])
def test_completion_offers_files(name: str) -> None:
    done = python("-m", "dtlint", _DTLINT_COMPLETE="bash_complete", COMP_WORDS=f"dtlint {name} sr", COMP_CWORD="2")
    assert done.stdout.split() == ["file,sr"]


def test_the_public_api_is_lazy_and_whole() -> None:
    listed = python("-c", "import sys, dtlint; print(*(name for name in sys.modules if name.startswith('dtlint')))")
    assert listed.stdout.split() == ["dtlint"]
    for name in dtlint.__all__:
        if name == "Monitor" and find_spec("torch") is None:  # all others need no torch
            with pytest.raises(ImportError, match="torch is not installed here"):
                getattr(dtlint, name)
        else:
            assert getattr(dtlint, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = dtlint.nothing  # type: ignore[attr-defined]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_named() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dtlint", "rule", "DT101"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("dtlint: what dtlint prints cannot be written: No space left on device; make room")
