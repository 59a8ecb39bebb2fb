"""Room for the frames of a deep recursion."""

from __future__ import annotations

import sys

import pytest

from dtlint.frames import with_room


def test_gives_what_the_function_gives() -> None:
    assert with_room(lambda: 3) == 3


def test_raises_what_the_function_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        with_room(lambda: 1 / 0)


@pytest.mark.skipif(sys.platform != "linux" or sys.version_info < (3, 11), reason="frames are in chunks since 3.11")
def test_calls_behind_it_map_no_memory() -> None:
    resource = pytest.importorskip("resource")

    def faults(depth: int) -> int:
        """Page faults of calls that go to all depths up to this one, forth and back."""

        def descend(depth: int) -> None:
            if depth:
                descend(depth - 1)

        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for below in range(depth):
            for _ in range(10):
                descend(below)
        return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)

    usual = faults(400)
    assert with_room(lambda: faults(400)) < usual / 4
