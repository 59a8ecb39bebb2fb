"""`dtlint rule`, against a catalogue of its own."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner, Result

from dtlint import Applicability, Rule, Severity
from dtlint.cli import main


class ModelHalf(Rule):
    """Whole model cast to float16.

    ## What it does
    Finds `model.half()`.
    """

    code, name = "DT101", "model-half"


class Chatty(Rule):
    """Says much.

    ## What it does
    Talks.
    """

    code, name, severity, fix = "DT390", "chatty", Severity.INFO, Applicability.SAFE
    default, since = False, (2, 4)


@pytest.fixture(autouse=True)
def _catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.rule.discover", lambda: {"DT101": ModelHalf, "DT390": Chatty})


def rule(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["rule", *arguments])


def test_the_list() -> None:
    assert rule().output.splitlines() == [
        "CODE   NAME        SEVERITY  FIX   WHAT IT FINDS",
        "DT101  model-half  warning   -     Whole model cast to float16.",
        "DT390  chatty      info      safe  (opt-in) Says much.",
    ]


def test_a_prefix_lists_its_rules() -> None:
    assert [line.split()[0] for line in rule("dt1").output.splitlines()] == ["CODE", "DT101"]
    assert [known["code"] for known in json.loads(rule("DT3", "--output-format", "json").output)] == ["DT390"]


@pytest.mark.parametrize("spelling", ["DT101", "dt101", "model-half"])
def test_one_rule_by_code_or_name_in_markdown(spelling: str) -> None:
    result = rule(spelling)
    assert result.exit_code == 0
    assert result.output == (
        "# DT101 model-half\n\n*severity warning · fix: none · on by default*\n\n"
        "Whole model cast to float16.\n\n## What it does\n\nFinds `model.half()`.\n"
    )


def test_json() -> None:
    listed = json.loads(rule("--output-format", "json").output)
    assert [entry["code"] for entry in listed] == ["DT101", "DT390"]
    one = json.loads(rule("DT390", "--output-format", "json").output)
    assert one == listed[1]
    assert one == {
        "code": "DT390",
        "name": "chatty",
        "summary": "Says much.",
        "severity": "info",
        "fix": "safe",
        "default": False,
        "since": "2.4",
        "documentation": "Says much.\n\n## What it does\n\nTalks.\n",
    }


@pytest.mark.parametrize(
    ("wanted", "advice"),
    [
        ("DT110", "did you mean 'DT101'?"),
        ("modle-half", "did you mean 'model-half'?"),
        ("half", "did you mean 'model-half'?"),
        ("zzz", "`dtlint rule` lists all of them"),
    ],
)
def test_an_unknown_rule_is_answered_with_the_nearest(wanted: str, advice: str) -> None:
    result = rule(wanted)
    assert (result.exit_code, result.output) == (2, f"dtlint rule: there is no rule {wanted!r}; {advice}\n")


def test_a_terminal_gets_it_rendered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from dtlint.cli.rule import _show

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _show("# Title\n\n*so*\n")
    assert "Title" in capsys.readouterr().out


def test_completion_offers_codes_and_names() -> None:
    from dtlint.cli.rule import _complete, command

    (param,) = (param for param in command.params if param.name == "rule")
    offered = [item.value for item in _complete(command.make_context("rule", []), param, "")]
    assert offered == ["DT101", "model-half", "DT390", "chatty"]


def test_a_new_rule_begins_complete() -> None:
    result = CliRunner().invoke(main, ["rule", "dt399", "--new", "one-more"])
    assert result.exit_code == 0
    assert 'code, name = "DT399", "one-more"' in result.stdout
    assert "class OneMore(Rule):" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--new", "one-more"], "--new needs a code"),
        (["DT101", "--new", "one-more"], "there is a rule DT101 model-half already"),
        (["DT399", "--new", "model-half"], "there is a rule DT101 model-half already"),
        (["399", "--new", "one-more"], "write it like DT390"),
        (["DT399", "--new", "One More"], "small letters with hyphens"),
        (["DT399", "--new", "one-more", "--output-format", "json"], "cannot go with --output-format"),
    ],
)
def test_a_new_rule_needs_a_free_code_and_a_name(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["rule", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr
