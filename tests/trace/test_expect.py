"""What a test can expect of a trace, and how the failure reads."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn

import dtlint
from dtlint.trace.expect import ExpectationError, Expectations


class Scaled(nn.Module):
    """A layer with a buffer that may be wider than what it is given."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((2,), 2.0, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.scale).relu()


def unmet(t: dtlint.Trace, **expected: object) -> list[tuple[str, str]]:
    """Each expectation that is not met with the message of a place."""
    return [(one.expectation, one.diagnostic.message) for one in t.unmet(Expectations.parse(**expected))]  # type: ignore[arg-type]


def test_a_promotion_is_told_with_its_operator_line_module_and_operand() -> None:
    model = nn.Sequential(Scaled(torch.float32))
    with dtlint.trace() as t:
        model(torch.ones(2).half())
    with pytest.raises(AssertionError) as failed:
        t.expect(no_promotions=True)
    line = inspect.getsourcelines(Scaled)[1] + 8
    told = str(failed.value).splitlines()
    assert told[0] == (
        "no_promotions: float16 was raised to float32 by a float32 operand, buffer 0.scale, in mul in module `0`, once"
    )
    assert told[1].endswith(f"test_expect.py:{line}:17")
    assert f"{line} |         return (x * self.scale).relu()" in told
    assert told[-1].startswith("help: cast that operand to float16")


def test_a_promotion_is_told_once_a_place_and_to_float64_as_well() -> None:
    with dtlint.trace() as t:
        torch.ones(2) * torch.ones(2).double()
        torch.ones(2).half() * torch.ones(2).double()
    assert len(unmet(t, no_promotions=True)) == 2


def test_what_holds_raises_nothing() -> None:
    with dtlint.trace() as t:
        Scaled(torch.float16)(torch.ones(2).half())
    t.expect(no_promotions=True, max_dtype=torch.float32, no_nonfinite=True, fail_on="any")


def test_the_largest_dtype_is_told_where_it_begins_and_not_where_it_goes_on() -> None:
    def widened() -> None:
        x = torch.ones(2).double()
        y = x + 1
        (y * y).sum()

    with dtlint.trace() as t:
        widened()
    ((_, message),) = unmet(t, max_dtype="float32")
    assert message == "the cast gave float64, wider than float32, once; 3 more operators went on in it"


def test_a_wider_weight_is_told_by_its_name_where_it_is_read_first() -> None:
    model = Scaled(torch.float64)
    with dtlint.trace() as t:
        model(torch.ones(2))
        model.scale + 1
    ((_, message),) = unmet(t, max_dtype="float32")
    assert message.startswith("buffer Scaled.scale is float64, wider than float32; mul in Scaled reads it")


def test_what_is_only_cast_down_is_passed_over() -> None:
    model = nn.Linear(2, 2)
    with dtlint.trace() as t:
        x = torch.ones(2, 2).bfloat16()
        with torch.autocast("cpu", torch.bfloat16):
            model(x)
    assert unmet(t, max_dtype="bfloat16") == []


@pytest.mark.parametrize(
    ("limit", "wider"), [("float32", set()), ("float16", {"bfloat16", "float32"}), ("bfloat16", {"float16", "float32"})]
)
def test_a_dtype_holds_another_where_promotion_says_so(limit: str, wider: set[str]) -> None:
    given = {name: torch.ones(2, dtype=getattr(torch, name)) for name in ("float16", "bfloat16", "float32")}
    with dtlint.trace() as t:
        for x in given.values():
            x + 1
    assert {name for name in given if any(f"is {name}," in m for _, m in unmet(t, max_dtype=limit))} == wider


def test_overflows_and_nan_are_told_even_if_nobody_reads_them() -> None:
    with dtlint.trace() as t:
        torch.full((2,), 6e4).half() * 2
        torch.zeros(2) / torch.zeros(2)
    assert [name for name, _ in unmet(t, no_overflow=True)] == ["no_overflow"]
    assert [name for name, _ in unmet(t, no_nonfinite=True)] == ["no_nonfinite"] * 2
    assert [name for name, _ in unmet(t, no_overflow=True, fail_on="overflow,DT902")] == ["no_overflow", "fail_on"]


def test_a_comment_that_silences_the_rule_holds_here_too() -> None:
    with dtlint.trace() as t:
        torch.ones(2).half() * torch.ones(2)  # dtlint: ignore[DT905]
        torch.ones(2) + torch.ones(2).double()  # dtlint: ignore[DT906]
    assert unmet(t, no_promotions=True, max_dtype="float32") == []


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"max_dtype": "flaot32"}, "did you mean float32?"),
        ({"max_dtype": "int8"}, "no floating dtype"),
        ({"max_dtype": torch.int64}, "max_dtype 'int64'"),
        ({"no_promotions": "yes"}, "True or False"),
        ({"fail_on": "overflw"}, "did you mean 'overflow'"),
        ({"fail_on": ["overflow"]}, "is a text such as"),
    ],
)
def test_what_cannot_be_expected_is_refused(expected: dict[str, object], message: str) -> None:
    with pytest.raises(ExpectationError, match=message.replace("?", r"\?")):
        Expectations.parse(**expected)  # type: ignore[arg-type]


def test_to_expect_nothing_or_what_was_not_looked_at_is_refused() -> None:
    with dtlint.trace(only="dtypes") as t:
        torch.ones(2)
    with pytest.raises(ValueError, match="nothing is expected"):
        t.expect()
    with pytest.raises(ValueError, match=r'no_overflow can never fail with only="dtypes"'):
        t.expect(no_overflow=True)
