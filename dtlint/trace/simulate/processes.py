"""Where a program spreads: threads and spawned children find the device too, and nccl is gloo."""

from __future__ import annotations

import contextlib
import multiprocessing.spawn
import sys
import threading
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from dtlint.trace.patches import Patches
    from dtlint.trace.simulate.hardware import Hardware

__all__ = ["answer", "stay"]

CHILD = "from dtlint.trace.simulate.processes import stay; stay({device!r}); "
"""What a spawned child runs first."""

_staying = contextlib.ExitStack()


def answer(patches: Patches, hardware: Hardware, here: Callable[[], AbstractContextManager[object]]) -> None:
    """Spread the device. `here` is what a thread needs to be in, to find it."""
    _threads(patches, here)
    _children(patches)
    _one_device(patches, hardware)
    if torch.distributed.is_available():
        _nccl(patches)


def stay(device: str) -> None:
    """Simulate the device from the moment torch is imported to the end of this process."""
    from dtlint.trace.arrival import when_imported
    from dtlint.trace.simulate import simulate

    def start() -> None:
        _staying.enter_context(simulate(device))

    _staying.enter_context(when_imported("torch", start))


def _threads(patches: Patches, here: Callable[[], AbstractContextManager[object]]) -> None:
    """torch's modes are each thread's own."""
    start = threading.Thread.start

    def start_here(self: threading.Thread) -> None:
        run = self.run

        def run_here() -> None:
            with here():
                run()

        self.run = run_here  # type: ignore[method-assign]
        start(self)

    patches.set(threading.Thread, "start", start_here)


def _children(patches: Patches) -> None:
    """A spawned child is a new Python, told by its command line what to run."""
    get_command_line = multiprocessing.spawn.get_command_line

    def command_line(**kwds: Any) -> list[str]:
        line = get_command_line(**kwds)
        code = line.index("-c") + 1 if "-c" in line else None  # a frozen program has no Python to start
        if code is not None:
            line[code] = CHILD.format(device="cuda") + line[code]
        return line

    patches.set(multiprocessing.spawn, "get_command_line", command_line)


def _one_device(patches: Patches, hardware: Hardware) -> None:
    """nn.DataParallel hands each device its share; one device gets it all."""

    class Scatter:
        @staticmethod
        def apply(devices: Any, sizes: Any, dim: int, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return (tensor.to(hardware.indexed()),)

    patches.set(sys.modules["torch.nn.parallel.scatter_gather"], "Scatter", Scatter)


def _nccl(patches: Patches) -> None:
    distributed = torch.distributed
    asked: dict[str, str] = {}
    real = {name: getattr(distributed, name) for name in ("init_process_group", "new_group", "get_backend")}

    def mapped(backend: Any) -> Any:
        if backend is None or "nccl" in str(backend).lower():
            asked["backend"] = "nccl"
            return "gloo"
        return backend

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        return real["init_process_group"](mapped(backend), *args, **kwargs)

    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        return real["new_group"](ranks, timeout, mapped(backend) if backend is not None else None, *args, **kwargs)

    def get_backend(group: Any = None) -> Any:
        return asked.get("backend") or real["get_backend"](group)

    answers = {
        "init_process_group": init_process_group,
        "new_group": new_group,
        "get_backend": get_backend,
        "is_nccl_available": lambda: True,
    }
    for module in (distributed, distributed.distributed_c10d):
        for name, value in answers.items():
            patches.set(module, name, value)
