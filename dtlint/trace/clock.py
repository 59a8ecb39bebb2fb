"""How long each operator takes: the clock on the CPU, events on CUDA, which wait for nothing as operators run.

A time is that of the operator alone, as it is called from Python; what the tracer does about it comes before and after.
"""

from __future__ import annotations

import functools
import platform
from contextlib import suppress
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.ratios import WITHOUT_BFLOAT16
from dtlint.trace.schema import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.trace.signature import Signature

__all__ = ["Clock"]

CALIBRATION = 200
"""Calls by which it is measured what a call costs in which nothing is computed."""


class Clock:
    """The times of a run's operators."""

    def __init__(self) -> None:
        self.operators = self.optimizers = 0
        """Nanoseconds in all operators, and in optimizer steps, as the host sees them."""
        self.device = 0.0
        """Seconds of the operators on CUDA."""
        self._last: int | tuple[torch.cuda.Event, torch.cuda.Event] = 0
        self._pending: list[tuple[Signature, torch.cuda.Event, torch.cuda.Event]] = []
        self._free: list[torch.cuda.Event] = []
        self._cuda = torch.cuda.is_available()
        self._stepping = 0
        self._began = self._now()
        self._mark: list[float] | None = None
        self._whole, self._steps = [0.0, 0.0, 0.0], 0
        """Wall, operators and optimizers over the steps but the first, in seconds."""

    def timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """`call`, with its time kept for `add`."""

        @functools.wraps(call, updated=())
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._cuda and any(map(_on_cuda, args)) and not torch.cuda.is_current_stream_capturing():
                start, end = self._event(), self._event()
                start.record()
                out = call(*args, **kwargs)
                end.record()
                self._last = start, end
                return out
            began = perf_counter_ns()
            out = call(*args, **kwargs)
            self._last = perf_counter_ns() - began
            self.operators += self._last
            return out

        return timed

    def add(self, signature: Signature) -> None:
        """The last call was one of this signature."""
        if isinstance(self._last, int):
            signature.took(self._last * 1e-9)
        else:
            self._pending.append((signature, *self._last))

    def settle(self) -> None:
        """Take the times of the events that have passed; those of others are asked again."""
        waiting, self._pending = self._pending, []
        for signature, start, end in waiting:
            if end.query():  # type: ignore[no-untyped-call]
                seconds = start.elapsed_time(end) * 1e-3
                signature.took(seconds)
                self.device += seconds
                self._free += (start, end)
            else:
                self._pending.append((signature, start, end))

    def stepping(self, on: bool) -> None:
        """An optimizer's step begins, or has ended."""
        if on:
            self._stepping = perf_counter_ns()
        elif self._stepping:
            self.optimizers += perf_counter_ns() - self._stepping
            self._stepping = 0

    def step_begins(self) -> None:
        """A step that is traced begins, after others that were not."""
        self._mark = self._now()

    def step_ended(self, goes_on: bool) -> None:
        """A step that was traced has ended, and what it launched has run. The first is left out: it warms up.

        Is the next one to be traced?
        """
        self.settle()
        if self._mark is not None:
            self._whole = [a + now - then for a, now, then in zip(self._whole, self._now(), self._mark, strict=True)]
            self._steps += 1
        self._mark = self._now() if goes_on else None

    def _now(self) -> list[float]:
        return [perf_counter(), self.device if self.device else self.operators * 1e-9, self.optimizers * 1e-9]

    def timing(self) -> Timing:
        """All that is not an operator's own. Waits for what still runs on CUDA."""
        if self._pending:
            self._pending[-1][2].synchronize()
            self.settle()
        whole = self._whole if self._steps else [a - b for a, b in zip(self._now(), self._began, strict=True)]
        wall, operators, optimizers = whole
        cuda = self.device > 0
        return Timing(
            steps=self._steps,
            wall=wall,
            operators=operators,
            optimizers=optimizers,
            call=self._cost_of_a_call(),
            device="cuda" if cuda else "cpu",
            processor=torch.cuda.get_device_name() if cuda else _processor(),
            float32=_float32_precision(),
        )

    def _event(self) -> torch.cuda.Event:
        return self._free.pop() if self._free else torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]

    def _cost_of_a_call(self) -> float:
        """Seconds of a call in which nothing is computed, the median of several."""
        empty, call = torch.empty(0), self.timed(torch.neg)
        before, cuda, self._cuda = self.operators, self._cuda, False
        times = []
        for _ in range(CALIBRATION):
            call(empty)
            times.append(self._last)
        self.operators, self._cuda = before, cuda
        return float(sorted(t for t in times if isinstance(t, int))[CALIBRATION // 2]) * 1e-9


def _on_cuda(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return bool(x) and _on_cuda(x[0])
    return isinstance(x, Tensor) and torch._C._dispatch_keys(x).has(torch._C.DispatchKey.CUDA)


def _processor() -> str:
    """The name of the CPU, with a word on it where its products in bfloat16 are emulated."""
    name = platform.processor()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    with suppress(AttributeError, RuntimeError):  # a build without oneDNN, as on macOS: not known
        if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            name += WITHOUT_BFLOAT16
    return name


def _float32_precision() -> str:
    """In what float32 products are computed: `highest` is float32 itself, the others TF32 or less; "" if not known."""
    with suppress(RuntimeError, AttributeError):  # torch refuses to tell where old and new settings were mixed
        return torch.get_float32_matmul_precision()
    with suppress(RuntimeError, AttributeError):
        return {"ieee": "highest", "tf32": "high"}.get(torch.backends.cuda.matmul.fp32_precision, "")
    return ""
