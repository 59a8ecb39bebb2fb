"""The GPU that is not there: how many, which one is current, its random numbers, its streams and events.

Everything runs at once on the CPU, so a stream is only a name, and an event the time at which it was recorded.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Event", "Generator", "Hardware", "Properties", "Stream"]

GIB = 1 << 30


@dataclass(frozen=True)
class Properties:
    """What `torch.cuda.get_device_properties` answers: an A100's numbers, the oldest GPU with bfloat16 and TF32."""

    name: str = "simulated CUDA device (dtlint)"
    major: int = 8
    minor: int = 0
    total_memory: int = 80 * GIB
    multi_processor_count: int = 108
    max_threads_per_multi_processor: int = 2048
    max_threads_per_block: int = 1024
    warp_size: int = 32
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 48 << 10
    shared_memory_per_block_optin: int = 163 << 10
    shared_memory_per_multiprocessor: int = 164 << 10
    L2_cache_size: int = 40 << 20
    memory_bus_width: int = 5120
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = "sm_80"  # torch's spelling
    uuid: str = "00000000-0000-0000-0000-000000000000"


class _AnyGenerator(type(torch._C.Generator)):  # type: ignore[misc]
    """Generators that the program already has are generators too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch._C.Generator)


class Generator(torch._C.Generator, metaclass=_AnyGenerator):
    """torch.Generator, also for the simulated device. Its numbers are the CPU's, not those of CUDA's Philox."""

    def __new__(cls, device: Any = "cpu") -> Generator:
        """A generator on the CPU, whatever it says."""
        return super().__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        self._says = torch.device(device)

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device that it was asked for."""
        return self._says

    @contextmanager
    def instead(self) -> Iterator[None]:
        """Whoever draws from the CPU's default generator meanwhile, draws from this one."""
        default = torch.default_generator
        kept = default.get_state()
        default.set_state(self.get_state())
        try:
            yield
        finally:
            self.set_state(default.get_state())
            default.set_state(kept)


class Hardware:
    """The state of the simulated devices."""

    def __init__(self) -> None:
        self.count = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        """As many as torchrun starts processes here; else one."""
        self.current = 0
        self.generator = Generator("cuda:0")
        self.stream = Stream()

    def indexed(self, device: Any = None) -> torch.device:
        """A device as torch.cuda takes it, with its number: None and a bare "cuda" are the current one."""
        if device is None:
            return torch.device("cuda", self.current)
        device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        return device if device.index is not None else torch.device("cuda", self.current)

    def choose(self, device: Any) -> int:
        """Make a device the current one, a negative number none; returns the one before."""
        before, index = self.current, self.indexed(device).index if not isinstance(device, int) else device
        if index >= 0:
            self.current = index
        return before


class Stream:
    """A queue of work that has always been done."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        self.priority = priority
        self.cuda_stream = self.stream_id = 0
        self.device = torch.device("cuda", 0) if device is None or isinstance(device, int) else torch.device(device)
        self.device_index = self.device.index or 0

    def query(self) -> bool:
        """Is all done?"""
        return True

    def synchronize(self) -> None:
        """Wait for what is done."""

    def is_capturing(self) -> bool:
        """Is a graph being captured?"""
        return False

    def wait_event(self, event: Any) -> None:
        """Wait for what is done."""

    def wait_stream(self, stream: Any) -> None:
        """Wait for what is done."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event of now."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        return None


class Event:
    """A moment, as the CPU's clock has it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._at = time.perf_counter()

    def record(self, stream: Any = None) -> None:
        """Now."""
        self._at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Wait for what is done."""

    def query(self) -> bool:
        """Has it happened?"""
        return True

    def synchronize(self) -> None:
        """Wait for what is done."""

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from here to `end`."""
        return (end._at - self._at) * 1e3
