"""One simulation: everything that answers for CUDA, put in place together and taken away together."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

import torch

from dtlint.trace.mode import Tracer
from dtlint.trace.patches import Patches
from dtlint.trace.simulate import answers, memory, processes, tensors
from dtlint.trace.simulate.autocast import CudaAutocast
from dtlint.trace.simulate.device import SimulatedDevice
from dtlint.trace.simulate.hardware import Hardware

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.simulate.kernels import Kernels

__all__ = ["NOT_SIMULATED", "Simulation"]

NOT_SIMULATED = (
    "simulated device: CUDA ran on the CPU, with CUDA's autocast and half arithmetic; the order in which its kernels "
    "add up, its fused kernels (attention, cuDNN), its random numbers, its memory and errors of mixed devices were not "
    "simulated"
)
"""What a report says of a simulated run."""


class Simulation:
    """CUDA as the program finds it, between `with` and its end."""

    active: ClassVar[Simulation | None] = None

    def __init__(self) -> None:
        self.hardware = Hardware()
        self.device = SimulatedDevice(self.hardware)
        self.autocast = CudaAutocast()
        self._memory: Kernels | None = None
        self._patches = Patches()

    def __enter__(self) -> Simulation:
        """Start.

        Raises:
            RuntimeError: another simulation runs, or a trace, which must be the inner one.
        """
        if Simulation.active is not None:
            raise RuntimeError("CUDA is simulated already; end that simulation before starting another")
        if Tracer.active is not None:
            raise RuntimeError("a trace is running; start the simulation first, and the trace within it")
        Simulation.active = self
        try:
            answers.answer(self._patches, self.hardware)
            tensors.answer(self._patches, self.hardware)
            processes.answer(self._patches, self.hardware, self._in_thread)
            self.autocast.install(self._patches)
            self._memory = memory.install(self.hardware)
            self.device.__enter__()  # type: ignore[no-untyped-call]
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        """End it, and put everything back."""
        self.device.__exit__(*exc)  # type: ignore[no-untyped-call]
        self._undo()
        if torch.cuda.is_available():  # torch believes it initialized already
            torch.cuda.init()  # type: ignore[no-untyped-call]

    def unseen(self) -> list[tuple[str, int]]:
        """What a report must say, and how many times: that it was simulated, and what was computed otherwise."""
        widened = self.device.widened
        told = [(NOT_SIMULATED, 1)]
        if widened:
            names = ", ".join(f"{name} ({count})" for name, count in widened.most_common())
            what = f"calls computed in float32 and rounded, because the CPU has no half kernel of them: {names}"
            told.append((what, widened.total()))
        return told

    @contextmanager
    def _in_thread(self) -> Iterator[None]:
        self.autocast.include(True)
        torch._C._push_on_torch_dispatch_stack(self.device)  # `with` keeps flags that threads would mix up
        try:
            yield
        finally:
            torch._C._pop_torch_dispatch_stack(None)
            self.autocast.include(False)

    def _undo(self) -> None:
        self.device.on = False
        self.autocast.remove()
        if self._memory is not None:
            self._memory.remove()
        self._patches.undo()
        Simulation.active = None
