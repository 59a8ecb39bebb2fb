"""Under an assumption each public function that computes with tensors has a verdict; one that was not followed to its end has
no good one."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dtlint import RuntimeRule, discover
from dtlint.check.file import check_source
from dtlint.check.verdict import Verdict
from dtlint.cli import main
from dtlint.config import Settings
from dtlint.dtypes.assumption import parse_assumption
from dtlint.source.file import Source

if TYPE_CHECKING:
    from pathlib import Path

RULES = [rule for rule in discover().values() if not issubclass(rule, RuntimeRule) and rule.default]

LIBRARY = """
import torch


def inverse(x: torch.Tensor) -> torch.Tensor:
    return _inverse(x)


def _inverse(x: torch.Tensor) -> torch.Tensor:
    return torch.linalg.inv(x)


def shifted(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(3)


def normed(x: torch.Tensor) -> torch.Tensor:
    return x / x.pow(2).mean(-1, keepdim=True).sqrt()


class Doubling:
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def named(settings: dict) -> str:
    return settings["name"]
"""


def verdicts(text: str, *names: str) -> dict[tuple[str, str], Verdict]:
    settings = Settings(supports=tuple(map(parse_assumption, names)))
    checked = check_source(Source.from_bytes(textwrap.dedent(text).encode(), "a.py"), RULES, settings)
    return {(one.assumption, one.function): one.verdict for one in checked.support}


def test_each_public_function_with_tensors_has_a_verdict_and_private_ones_are_their_callers() -> None:
    assert verdicts(LIBRARY, "half") == {
        ("half", "inverse"): Verdict.RAISES,
        ("half", "shifted"): Verdict.LEAVES,
        ("half", "normed"): Verdict.OVERFLOWS,
        ("half", "Doubling.__call__"): Verdict.SUPPORTS,
    }


def test_a_function_in_which_no_tensor_of_the_dtype_is_seen_is_not_judged() -> None:
    text = """
        import torch

        from elsewhere import encode


        def scored(x, model):
            return torch.softmax(model(x), -1)


        def encoded(x: torch.Tensor):
            return encode(x)


        def scaled(x):
            return x.exp() * 2


        def positions(count: int):
            return torch.arange(count)
    """
    assert verdicts(text, "half") == {
        ("half", "scored"): Verdict.UNSEEN,
        ("half", "encoded"): Verdict.UNSEEN,
        ("half", "scaled"): Verdict.SUPPORTS,
        ("half", "positions"): Verdict.SUPPORTS,
    }


def test_a_function_that_mostly_calls_what_is_not_seen_is_not_judged() -> None:
    text = """
        import torch

        from elsewhere import attend, mix


        def block(x: torch.Tensor):
            x = x + attend(x)
            return mix(x)


        def normed(x: torch.Tensor):
            return torch.softmax(x, -1) * attend(x)
    """
    assert verdicts(text, "half") == {("half", "block"): Verdict.UNSEEN, ("half", "normed"): Verdict.SUPPORTS}


def test_each_assumption_is_judged_for_itself() -> None:
    found = verdicts(LIBRARY, "half", "double")
    assert found["half", "normed"] is Verdict.OVERFLOWS
    assert {verdict for (name, _), verdict in found.items() if name == "double"} == {Verdict.SUPPORTS}


def test_without_an_assumption_there_is_none() -> None:
    assert verdicts(LIBRARY) == {}


@pytest.mark.parametrize("limit", ["_BUDGET", "_MOST_UNDER"])
def test_a_function_that_is_not_followed_to_its_end_is_not_passed_over(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"dtlint.infer.interproc.file_reading.{limit}", 0)
    found = verdicts(LIBRARY, "half")
    assert found["half", "inverse"] is Verdict.UNFINISHED
    assert found["half", "Doubling.__call__"] is Verdict.SUPPORTS


def test_one_that_takes_too_long_to_read_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dtlint.infer.interproc.file_reading.STEPS", 8)
    assert set(verdicts(LIBRARY, "half").values()) == {Verdict.UNFINISHED}


def test_statistics_count_them_and_name_those_that_fall_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second time from the cache
        result = CliRunner().invoke(main, ["check", "--isolated", "--assume", "half", "--statistics", "library.py"])
        assert result.output.partition("\n\n")[2] == textwrap.dedent(
            """\
            4 public functions with tensors under half:
              1  raises
                   library.py:5 inverse
              1  leaves the dtype
                   library.py:13 shifted
              1  overflows or loses precision
                   library.py:17 normed
              1  supports it, as far as is seen
            """
        )
    result = CliRunner().invoke(
        main, ["check", "--isolated", "--assume", "half", "--statistics", "--output-format", "json", "library.py"]
    )
    found = json.loads(result.output)
    assert [one["count"] for one in found["rules"]] == [1, 1, 1]
    assert found["functions"][0] == {
        "assumption": "half",
        "filename": "library.py",
        "row": 5,
        "function": "inverse",
        "verdict": "raises",
    }


def test_a_report_counts_what_was_not_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dtlint.infer.interproc.file_reading.STEPS", 8)
    result = CliRunner().invoke(main, ["check", "--isolated", "--no-cache", "--assume", "half", "library.py"])
    assert "5 public functions were not analysed within the budget: `--statistics` names them." in result.output


def test_functions_in_handlers_and_cases_are_judged() -> None:
    text = """
        import torch

        try:
            from quick import scaled
        except ImportError:
            def scaled(x: torch.Tensor) -> torch.Tensor:
                return x * 2

        match torch.__version__[0]:
            case "1":
                def inverse(x: torch.Tensor) -> torch.Tensor:
                    return torch.linalg.inv(x)
    """
    assert verdicts(text, "half") == {("half", "scaled"): Verdict.SUPPORTS, ("half", "inverse"): Verdict.RAISES}
