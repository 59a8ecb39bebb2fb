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


WRAPPERS = """
    class Base:
        def step(self, x):
            return x * 2
    class Wrapper:
        def __init__(self, inner, dtype):
            self.inner = inner
            self.dtype = dtype
        def step(self, x):
            return self.inner.step(x.to(self.dtype))
    made = Base()
    for dtype in (torch.float16, torch.float64, torch.bfloat16, torch.float32, torch.float16):
        made = Wrapper(made, dtype)
    one = Wrapper(Wrapper(Wrapper(Wrapper(Base(), torch.float16), torch.float64), torch.float32), torch.float16)
    a = one.step(S) + 0
    b = made.step(S) + 0
"""
ENDLESS = """
    class Node:
        def __init__(self):
            self.next = None
        def last(self, x):
            self.next = Node()
            return x if x.ndim > 5 else self.next.last(x[None].to(torch.float64))
    a = Node().last(S) + 0
"""


def test_wrappers_around_one_another_are_followed_through_all_of_them() -> None:
    text = textwrap.dedent(WRAPPERS)
    assert contradicted(text) == []
    assert known(text)["one.step(S) + 0"] == "float16"


def test_ever_new_objects_are_not_followed_for_ever() -> None:
    assert contradicted(textwrap.dedent(ENDLESS)) == []


COUNTING = """
    import json
    def levels(nested):
        if not isinstance(nested, list):
            return (0,)
        inner = ()
        for one in nested:
            inner = inner + levels(one)
        return tuple(1 + one for one in set(inner))
    nested = json.loads("[[1], [2]]")
    a = S * len(levels([[1], [2]]))
    b = S * list(levels(nested))[0]
"""


def test_the_result_of_a_recursion_that_counts_is_widened() -> None:
    text = textwrap.dedent(COUNTING)
    assert contradicted(text) == []
    assert known(text)["S * list(levels(nested))[0]"] == "float32"
