"""What a trace looks at, as a person writes it: checked before anything runs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dtlint.trace.options import VALUES, Options, OptionsError


@pytest.mark.parametrize(
    ("written", "every", "traced"),
    [
        (None, 1, [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("3:5", 1, [3, 4, 5]),
        (":2", 1, [1, 2]),
        ("8:", 1, [8, 9]),
        ("4", 1, [4]),
        (None, 4, [1, 5, 9]),
        ("2:8", 3, [2, 5, 8]),
    ],
)
def test_steps_are_counted_from_1_and_both_ends_are_included(written: str, every: int, traced: list[int]) -> None:
    options = Options.parse(steps=written, every=every)
    assert [step for step in range(1, 10) if options.traces(step)] == traced
    assert options.always == (len(traced) == 9)


def test_the_step_that_is_traced_next() -> None:
    options = Options.parse(steps="2:8", every=3)
    assert [options.following(step) for step in range(10)] == [2, 2, 5, 5, 5, 8, 8, 8, math.inf, math.inf]
    assert Options.parse().following(7) == 8


@pytest.mark.parametrize(
    ("patterns", "covered"),
    [
        ((), ["", "blocks.0", "blocks.0.attn.q", "blocks.1.fc", "head"]),
        (("blocks.0",), ["blocks.0", "blocks.0.attn.q"]),
        (("*.attn",), ["blocks.0.attn.q"]),
        (("blocks.*.fc", "head"), ["blocks.1.fc", "head"]),
        (("attn",), []),
    ],
)
def test_a_module_is_covered_if_it_or_one_around_it_matches(patterns: tuple[str, ...], covered: list[str]) -> None:
    options = Options.parse(modules=patterns)
    paths = ["", "blocks.0", "blocks.0.attn.q", "blocks.1.fc", "head"]
    assert [path for path in paths if options.covers(path)] == covered


def test_watch_takes_the_names_that_people_use() -> None:
    assert Options.parse(watch=["fp16", "torch.float32", " bfloat16"]).watch == {"float16", "float32", "bfloat16"}
    assert Options.parse().watch == set(VALUES)
    assert Options.parse(only="dtypes").watch == set()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"steps": "a:b"}, "steps 'a:b' is no span"),
        ({"steps": ""}, "is no span"),
        ({"steps": "5:2"}, "steps '5:2' is an empty span"),
        ({"steps": "0:2"}, "counted from 1"),
        ({"every": 0}, "every 0"),
        ({"every": 1.5}, "every 1.5"),
        ({"every": "2"}, "every '2'"),
        ({"steps": 3}, "steps 3"),
        ({"only": "values"}, "only 'values' is not known; use dtypes"),
        ({"watch": ["flaot16"]}, "did you mean float16?"),
        ({"watch": ["int8"]}, "watch 'int8' is no dtype whose values can be judged"),
        ({"only": "dtypes", "watch": ["float16"]}, "only dtypes judges no values"),
        ({"modules": [""]}, "module '' is no path"),
        (
            {"assume": "bfloat16"},
            "assume 'bfloat16' would show nothing: it has float32's range, where nothing new overflows; use float16",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(words: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionsError) as raised:
        Options.parse(**words)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
