"""What holds of all values: joins are upper bounds, widening ends, and intervals contain what they stand for."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.interval import ANY, Range, point
from dtlint.infer.domain.lattice import join, widen
from dtlint.infer.domain.values import (
    ABSENT,
    NO_TENSOR,
    TOP,
    Array,
    Const,
    Dtype,
    External,
    Instance,
    Many,
    Mapping,
    Number,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)

_dtypes = st.one_of(st.none(), st.frozensets(st.sampled_from(["float16", "float32", "int64"]), min_size=1))
_numbers = st.one_of(st.integers(-5, 5), st.floats(-10, 10), st.booleans())
_ranges = st.tuples(st.floats(-9, 9), st.floats(-9, 9)).map(lambda ends: point(min(ends)).join(point(max(ends))))
_leaves: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from([TOP, NO_TENSOR, ABSENT, Const(None), Const("a"), External("torch.nn.Linear")]),
    _numbers.map(Const),
    st.builds(Number, st.sampled_from([Category.INTEGER, Category.FLOAT]), _ranges),
    st.builds(Tensor, _dtypes, st.none(), st.sampled_from([None, -1, 0, 1, 2]), _ranges),
    st.builds(Unknown, _dtypes),
    st.builds(Instance, _dtypes, kind=st.sampled_from(["a.A", "a.B"])),
    st.builds(Dtype, _dtypes),
    st.builds(Array, _dtypes, st.sampled_from([None, True, False])),
)


def _nested(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda items: Tuple(tuple(items))),
        inner.map(Many),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=2).map(
            lambda items: Mapping(tuple((Const(key), value) for key, value in items.items()))
        ),
    )


values = st.recursive(_leaves, _nested, max_leaves=4)


@given(values)
def test_joining_a_value_with_itself_gives_it_back(value: Value) -> None:
    assert join(value, value) == value


@settings(max_examples=300)
@given(values, values)
def test_a_join_stands_for_both(left: Value, right: Value) -> None:
    joined = join(left, right)
    for one in (left, right):
        assert _holds_dtypes(joined, one)


def _tensor_dtypes(value: Value) -> frozenset[str] | None:
    """What a value says of the dtype of a tensor, if it is one; None: anything."""
    found: frozenset[str] = frozenset()
    for one in choices(value):
        if isinstance(one, (Tensor, Unknown)):
            if one.dtypes is None:
                return None
            found |= one.dtypes
    return found


def _holds_dtypes(joined: Value, one: Value) -> bool:
    high, low = _tensor_dtypes(joined), _tensor_dtypes(one)
    return high is None or (low is not None and low <= high)


@settings(max_examples=300)
@given(values, values)
def test_the_order_of_a_join_does_not_matter(left: Value, right: Value) -> None:
    assert _tensor_dtypes(join(left, right)) == _tensor_dtypes(join(right, left))


@settings(max_examples=300)
@given(values, values, values)
def test_what_is_joined_first_does_not_matter_for_dtypes(one: Value, two: Value, three: Value) -> None:
    left, right = join(join(one, two), three), join(one, join(two, three))
    assert _tensor_dtypes(left) == _tensor_dtypes(right)


@given(st.lists(values, min_size=1, max_size=30))
def test_widening_comes_to_an_end(chain: list[Value]) -> None:
    value, changes = chain[0], 0
    for _ in range(4):
        for each in chain:
            grown = widen(value, each)
            changes += grown != value
            value = grown
    assert all(widen(value, each) == value for each in chain)


_reals = st.integers(-6_400, 6_400).map(lambda whole: whole / 64)
"""Numbers whose products do not underflow: intervals are of the real line."""


@st.composite
def _with_element(draw: st.DrawFn) -> tuple[Range, float]:
    ends = sorted((draw(_reals), draw(_reals)))
    low, high = ends
    element = low + (high - low) * draw(st.integers(0, 8)) / 8
    return Range(low, high, low <= 0 <= high, False, False), element


def _contains(known: Range, number: float) -> bool:
    slack = 1e-9 * max(1.0, abs(number))
    return known.low - slack <= number <= known.high + slack and (number != 0 or known.zero)


@settings(max_examples=300)
@given(_with_element(), _with_element())
def test_intervals_contain_what_is_computed(left: tuple[Range, float], right: tuple[Range, float]) -> None:
    (one, x), (other, y) = left, right
    assert _contains(one.add(other), x + y)
    assert _contains(one.subtract(other), x - y)
    assert _contains(one.multiply(other), x * y)
    assert _contains(one.negate(), -x)
    assert _contains(one.absolute(), abs(x))
    assert _contains(one.square(), x * x)
    assert _contains(one.join(other), x)
    assert _contains(one.widen(other), y)
    if abs(y) > 1e-6:
        assert _contains(one.divide(other), x / y)
    if x >= 0:
        assert _contains(one.power(0.5), x**0.5)
    assert _contains(one.clamp(-1.0, 1.0), min(max(x, -1.0), 1.0))


@given(st.lists(_with_element(), min_size=1, max_size=40))
def test_widened_intervals_come_to_an_end(chain: list[tuple[Range, float]]) -> None:
    known, changes = chain[0][0], 0
    for each, _ in chain * 2:
        grown = known.widen(each)
        changes += grown != known
        known = grown
    assert changes <= 24


@pytest.mark.parametrize("exponent", [math.inf, -math.inf, math.nan])
def test_a_power_of_no_finite_number_is_not_known(exponent: float) -> None:
    assert point(2.0).power(exponent) == ANY
