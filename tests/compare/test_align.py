"""Lines of two runs are matched as `diff` matches lines of text, however long they are."""

from __future__ import annotations

import time
from difflib import SequenceMatcher

from hypothesis import given, settings
from hypothesis import strategies as st

from dtlint.compare.align import WINDOW, _opcodes


def matched(one: str, other: str) -> list[tuple[int, int]]:
    pairs = []
    for tag, start, end, begin, stop in _opcodes(list(one), list(other)):
        if tag == "equal":
            assert one[start:end] == other[begin:stop]
            pairs += zip(range(start, end), range(begin, stop), strict=True)
    return pairs


@given(st.text("abcd", max_size=40), st.text("abcd", max_size=40))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_matches_are_equal_and_in_order(one: str, other: str) -> None:
    pairs = matched(one, other)
    assert pairs == sorted(set(pairs))
    assert len({n for n, _ in pairs}) == len({n for _, n in pairs}) == len(pairs)


@given(st.text("abcdefgh", min_size=10, max_size=60), st.integers(0, 9), st.sampled_from("xyz"))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_what_one_run_has_more_is_stepped_over(text: str, at: int, more: str) -> None:
    longer = text[:at] + more + text[at:]
    assert matched(text, longer) == [(n, n if n < at else n + 1) for n in range(len(text))]
    assert matched(longer, text) == [(n if n < at else n + 1, n) for n in range(len(text))]


def test_long_runs_that_differ_take_no_time() -> None:
    one = "addmul" * 10_000
    other = one[:1000] + "x" + one[1000:30_000] + one[30_012:]
    start = time.process_time()
    pairs = matched(one, other)
    assert time.process_time() - start < 10
    assert len(pairs) > 0.99 * len(one)


def test_windows_do_not_change_what_fits_into_one() -> None:
    one, other = "abcabdacb" * 20, "abdabcacb" * 20
    assert len(one) < WINDOW
    by_one = [op for op in SequenceMatcher(None, one[2:], other[2:], autojunk=False).get_opcodes() if op[0] == "equal"]
    assert len(matched(one, other)) >= sum(end - start for _, start, end, *_ in by_one)
