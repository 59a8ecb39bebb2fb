"""The local errors that `--shadow` tells are those that float64 finds afterwards, from operands that were kept."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import honest
import planted
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dtlint.trace.export import record_of
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options

LOW = (torch.float16, torch.bfloat16)
FILES = (honest.__file__, planted.__file__)
Key = tuple[str, int]
"""An operator, and the line of a program's that ran it in the forward."""


class Keeping(TorchDispatchMode):
    """Keeps the operands and the result of every operator of the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Key, Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        held = [copied(a) for a in args], {name: copied(a) for name, a in (kwargs or {}).items()}
        out = func(*args, **(kwargs or {}))
        frame = sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename not in FILES:
            frame = frame.f_back
        if torch._C._current_autograd_node() is None and frame.f_code.co_filename in FILES:
            key = func._schema.name.removeprefix("aten::"), frame.f_lineno
            self.calls.append((key, func, *held, copied(out)))
        return out


def copied(a: Any) -> Any:
    return a.clone() if isinstance(a, Tensor) else [copied(x) for x in a] if isinstance(a, (list, tuple)) else a


def double(a: Any) -> Any:
    if isinstance(a, Tensor):
        return a.double() if a.is_floating_point() else a
    if isinstance(a, (list, tuple)):
        return [double(x) for x in a]
    return torch.float64 if isinstance(a, torch.dtype) and a.is_floating_point else a


def offline(program: Callable[[], Any]) -> dict[Key, float]:
    """The norm of the differences from float64 over that of its results."""
    with Keeping() as keeping:
        program()
    sums: dict[Key, list[float]] = {}
    for key, func, args, kwargs, out in keeping.calls:
        first = out[0] if isinstance(out, list) else out
        if not isinstance(first, Tensor) or first.dtype not in LOW:
            continue
        try:
            exact = func(*double(args), **{name: double(a) for name, a in kwargs.items()})
        except RuntimeError:
            continue
        exact = exact[0] if isinstance(exact, (list, tuple)) else exact
        meant = exact.isfinite() & (exact > -6e4)
        known = sums.setdefault(key, [0.0, 0.0])
        known[0] += torch.where(meant, exact - first.double(), 0.0).square().sum().item()
        known[1] += torch.where(meant, exact, 0.0).square().sum().item()
    return {key: math.sqrt(square / of) for key, (square, of) in sums.items() if of}


def told(program: Callable[[], Any]) -> dict[Key, float]:
    """As the trace tells them, of lines that ran in one module only."""
    tracer = Tracer(Options.parse(shadow="float32"))
    with tracer:
        program()
    record = record_of(tracer, ["test"], 0)
    found = []
    for local in record.local:
        entry = record.entries[local.entry]
        if entry.phase == "forward":
            found.append(((entry.op, record.places[entry.place].line), local.error))
    times = Counter(key for key, _ in found)
    return {key: error for key, error in found if times[key] == 1}


def in_half(name: str) -> Callable[[], None]:
    def program() -> None:
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16):
            honest.train(name, steps=1)

    return program


def changed(name: str) -> Callable[[], None]:
    def program() -> None:
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=name in planted.AUTOCAST):
            planted.PROGRAMS[name](True)

    return program


@pytest.mark.parametrize(
    "program",
    [
        *map(in_half, honest.MODELS),
        *map(changed, ("a_wrong_scale", "a_float32_island_removed", "an_accumulator_in_half")),
    ],
    ids=[*honest.MODELS, "scale", "island", "accumulator"],
)
def test_local_errors_are_those_that_float64_finds(program: Callable[[], None]) -> None:
    exact, seen = offline(program), told(program)
    both = exact.keys() & seen.keys()
    assert len(both) >= 3
    for key in both:
        assert seen[key] == pytest.approx(exact[key], rel=0.1, abs=1e-7), key
