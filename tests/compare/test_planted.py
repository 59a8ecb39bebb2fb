"""In each planted pair of runs the guilty line is the first that is named; pairs that differ otherwise are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import planted
import pytest
import torch

from dtlint.compare import CannotCompare, compare
from dtlint.trace.record import TraceRecord

Sketched = Callable[..., TraceRecord]

LINES = inspect.getsource(planted).splitlines()


def guilty(name: str) -> int:
    """The line that is to be named: that which the program says, or else its own that is marked."""
    program = planted.PROGRAMS[name]
    text = getattr(program, "guilty", None)
    if text is not None:
        [line] = [n for n, source in enumerate(LINES, 1) if text in source and ".guilty" not in source]
        return line
    source, start = inspect.getsourcelines(program)
    [line] = [start + n for n, text in enumerate(source) if "# planted" in text]
    return line


@pytest.mark.parametrize("name", planted.PROGRAMS)
def test_the_first_guilty_line_is_named(name: str, sketched: Sketched) -> None:
    program = planted.PROGRAMS[name]
    autocast = torch.bfloat16 if name in planted.AUTOCAST else None
    one, other = sketched(lambda: program(False)), sketched(lambda: program(True), autocast)
    comparison = compare(one, other)
    assert comparison.findings, "nothing was found"
    assert comparison.findings[0].place.file.endswith("planted.py")
    assert comparison.findings[0].place.line == guilty(name)


@pytest.mark.parametrize("name", planted.REFUSED)
def test_what_is_no_rounding_is_refused(name: str, sketched: Sketched) -> None:
    program, why = planted.REFUSED[name]
    one, other = sketched(lambda: program(False)), sketched(lambda: program(True))
    with pytest.raises(CannotCompare, match=why) as refusal:
        compare(one, other)
    assert "\n" not in str(refusal.value)
