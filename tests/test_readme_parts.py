"""The generator of the documentation's parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from readme import generate, renew, table

from dtlint import Applicability, Rule, Severity


class Piped(Rule):
    """Finds `a | b`.

    ## What it does
    So.
    """

    code, name, severity, fix, default = "DT301", "piped", Severity.INFO, Applicability.SAFE, False


def test_the_table() -> None:
    assert table([Piped]).splitlines()[-1] == r"| DT301 | piped | info | safe | Finds `a \| b`. *(opt-in)* |"


def test_a_part_is_what_the_command_prints(tmp_path: Path) -> None:
    text = "Before\n<!-- generated: dtlint --version -->\nold\n<!-- end -->\nAfter\n"
    renewed = renew(text, tmp_path)
    assert "old" not in renewed
    assert renewed.startswith("Before\n<!-- generated: dtlint --version -->\n```console\n$ dtlint --version\ndtlint ")
    assert renewed.endswith("\n```\n<!-- end -->\nAfter\n")
    assert renew(renewed, tmp_path) == renewed


@pytest.mark.parametrize(("what", "reason"), [("rm -rf x", "only dtlint itself"), ("dtlint chek", "exit code 2")])
def test_what_cannot_be_shown_is_refused(what: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        generate(what, tmp_path)
