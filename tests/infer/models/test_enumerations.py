"""Enumerations, and abstract classes: each program's variables are compared with a run of it."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "members of an enumeration are found by value, by name and by iterating": """
        import enum
        class Mode(str, enum.Enum):
            HALF = "half"
            WHOLE = "whole"
            def cast(self, x):
                return x.half() if self is Mode.HALF else x
        class Kind(enum.Enum):
            A = 1
            B = 2
        a = Mode("half").cast(S)
        b = Mode["WHOLE"].cast(S)
        c = [one.cast(S).dtype for one in Mode][0]
        d = Mode.HALF == "half"
        e = Mode.HALF == Mode.WHOLE
        f = Kind(2) is Kind.B
        g = "whole" in {one.value for one in Mode}
        h = isinstance(Mode, enum.EnumMeta)
        i = Kind.A in (Kind.B, Kind.A)
        j = Kind.B.value
        k = Mode.HALF.name
        l = Mode.HALF in ["half"]
        def looked_up():
            table = {Mode.HALF: H}
            table[Mode.WHOLE] = D
            return table["half"] * 1, table.get("whole"), table.get(Mode.HALF)
        m, n, o = looked_up()
    """,
    "abstract classes of collections": """
        import collections.abc, numbers
        a = isinstance("x", collections.abc.Hashable)
        b = isinstance((1,), collections.abc.Sequence)
        c = isinstance({}, collections.abc.Mapping)
        d = isinstance([], collections.abc.Hashable)
        e = isinstance(1, numbers.Number)
        f = isinstance(1.0, numbers.Integral)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    text = textwrap.dedent(PROGRAMS[name])
    assert mistaken(text) == []
    assert loose(text) <= set()
