"""What the tests of comparisons share: a function's record with sketches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from dtlint.trace.export import record_of  # noqa: E402
from dtlint.trace.mode import Tracer  # noqa: E402
from dtlint.trace.options import Options  # noqa: E402
from dtlint.trace.record import TraceRecord  # noqa: E402

Sketched = Callable[..., TraceRecord]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The same sums in every run."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield


@pytest.fixture
def sketched() -> Sketched:
    """Run a function from the same random state, under autocast if a dtype is given; its record."""

    def sketched(function: Callable[[], Any], autocast: Any = None, **options: Any) -> TraceRecord:
        torch.manual_seed(0)
        tracer = Tracer(Options.parse(sketch=True, **options))
        with tracer, torch.autocast("cpu", autocast or torch.bfloat16, enabled=autocast is not None):
            function()
        return record_of(tracer, ["test"], 0)

    return sketched
