"""A call that is known from elsewhere: it is not read again, and what it makes is its own."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import contradicted, known, mistaken

pytest.importorskip("torch")

RECURSIVE = """
    def moved(data, to):
        if isinstance(data, (list, tuple)):
            return [moved(one, to) for one in data]
        if isinstance(data, dict):
            return {key: moved(one, to) for key, one in data.items()}
        return data.to(to)
    first = moved([S, {"x": S}], torch.float16)
    second = moved([H, {"x": S}], torch.float64)
    third = moved([S, {"x": S}], torch.float16)
    third.append(D)
    a = first[0] * 1
    b = second[1]["x"] * 1
    c = third[-1] * 1
    d = first[1]["x"] * 1
    e = len(first)
"""


def test_a_call_that_is_known_from_elsewhere_makes_objects_of_its_own() -> None:
    text = textwrap.dedent(RECURSIVE)
    assert contradicted(text) == []
    found = known(text)
    assert found["first[0] * 1"] == "float16"
    assert found['second[1]["x"] * 1'] == "float64"
    assert found["third[-1] * 1"] == "float64"
    assert mistaken(text) == []
