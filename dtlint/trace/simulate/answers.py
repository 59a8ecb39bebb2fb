"""What torch.cuda, torch.accelerator and torch.backends answer while CUDA is simulated: tables from names to answers.

An answer that costs nothing to get right is right; the rest is what a healthy, idle GPU would say.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.flop_counter  # before there is a version of CUDA: with one and no Triton, it would warn

from dtlint.trace.simulate.hardware import Event, Generator, Hardware, Properties, Stream
from dtlint.trace.simulate.placement import asked_by_tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.trace.patches import Patches

__all__ = ["answer"]

CUDA_VERSION = "12.8"
CUDNN_VERSION = 91002
"""Of the wheels of torch 2.7 and later; programs print it or compare it."""

NOTHING = (
    *("init", "_lazy_init", "synchronize", "empty_cache", "ipc_collect", "_sleep", "set_sync_debug_mode"),
    *("reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"),
    *("reset_accumulated_memory_stats", "reset_peak_host_memory_stats", "reset_accumulated_host_memory_stats"),
    *("set_per_process_memory_fraction", "caching_allocator_enable", "empty_host_cache"),
)
"""Functions that do nothing, because there is nothing to do."""

ZERO = (
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
    *("memory_cached", "max_memory_cached", "device_memory_used", "memory_usage", "utilization"),
    *("temperature", "power_draw", "clock_rate", "get_sync_debug_mode"),
)
"""Measurements of a device that is not there."""

TRUE = ("is_initialized", "is_bf16_supported", "is_tf32_supported")
"""Not `_is_compiled`: by it torch imports functions that only a build with CUDA has."""

FALSE = ("is_current_stream_capturing", "_is_in_bad_fork", "can_device_access_peer")

UNABLE = ("CUDAGraph", "graph", "graph_pool_handle", "make_graphed_callables", "cudart", "jiterator", "MemPool")
"""What has no counterpart on a CPU."""

LEGACY = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}
"""The tensor types of torch.cuda."""


def answer(patches: Patches, hardware: Hardware) -> None:
    """Have all of them answer as with the hardware."""
    available = _Available(torch.cuda.is_available())
    answers: dict[str, Any] = {
        **{name: _constant(None) for name in NOTHING},
        **{name: _constant(0) for name in ZERO},
        **{name: _constant(True) for name in TRUE},
        **{name: _constant(False) for name in FALSE},
        **{name: _unable(name) for name in UNABLE},
        **_device(hardware),
        **_random(hardware.generator),
        **_streams(hardware),
        "is_available": available,
    }
    patches.set(torch.cuda, "_initialized", True)  # by it checkpointing keeps the device's random numbers
    _set(patches, [torch.cuda, *_submodules("torch.cuda.")], answers)
    accelerator = {
        **answers,
        "current_accelerator": lambda *args, **kwargs: torch.device("cuda"),
        "set_device_index": hardware.choose,
        "set_device_idx": hardware.choose,
        "current_device_index": lambda: hardware.current,
        "current_device_idx": lambda: hardware.current,
        "device_index": _device_index(hardware),
        "get_memory_info": answers["mem_get_info"],
    }
    if hasattr(torch, "accelerator"):  # torch 2.6
        _set(patches, [torch.accelerator, *_submodules("torch.accelerator.")], accelerator)
    patches.set(torch, "Generator", Generator)
    patches.set(torch, "Stream", Stream)
    patches.set(torch, "Event", Event)
    patches.set(torch.version, "cuda", CUDA_VERSION)
    patches.set(torch.backends.cuda, "is_built", _constant(True))
    patches.set(torch.backends.cudnn, "is_available", _constant(True))
    patches.set(torch.backends.cudnn, "is_acceptable", _constant(False))  # by it torch's own modules call cuDNN
    patches.set(torch.backends.cudnn, "version", _constant(CUDNN_VERSION))
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        patches.set(torch.cuda.nvtx, name, _constant(0))
    for name in ("init", "start", "stop"):
        if hasattr(torch.cuda.profiler, name):
            patches.set(torch.cuda.profiler, name, _constant(None))


def _set(patches: Patches, modules: list[ModuleType], answers: dict[str, Any]) -> None:
    """Functions are defined in submodules and handed up: everywhere they answer the same."""
    for module in modules:
        for name, value in answers.items():
            if name in vars(module) and not isinstance(getattr(module, name), ModuleType):
                patches.set(module, name, value)


def _submodules(prefix: str) -> list[ModuleType]:
    """Those that hold functions of their own. `amp` is Python, and right as it is."""
    return [module for name, module in list(sys.modules.items()) if name.startswith(prefix) and ".amp" not in name]


def _constant(value: Any) -> Callable[..., Any]:
    def constant(*args: Any, **kwargs: Any) -> Any:
        return value

    return constant


def _unable(name: str) -> Callable[..., Any]:
    """A function, or a class as there is one, that cannot be called."""

    def unable(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"dtlint: torch.cuda.{name} cannot be simulated on a CPU; run this part without it")

    if isinstance(getattr(torch.cuda, name, None), type):  # programs name it in annotations, as in CUDAGraph | None
        return type(name, (), {"__new__": unable, "__module__": "torch.cuda"})
    return unable


class _Available:
    """The program is told yes; the tracer, which would use the device, the truth."""

    def __init__(self, truth: bool) -> None:
        self.truth = truth

    def __call__(self) -> bool:
        """Is there a device?"""
        return self.truth if asked_by_tracer() else True


def _device(hardware: Hardware) -> dict[str, Any]:
    properties = Properties()
    capability = (properties.major, properties.minor)

    def set_device(device: Any) -> None:
        hardware.choose(device)

    def memory_stats(*args: Any, **kwargs: Any) -> dict[str, int]:
        return defaultdict(int)

    return {
        "device_count": lambda: hardware.count,
        "current_device": lambda: hardware.current,
        "set_device": set_device,
        "_exchange_device": hardware.choose,
        "_maybe_exchange_device": hardware.choose,
        "get_device_name": _constant(properties.name),
        "get_device_capability": _constant(capability),
        "get_device_properties": _constant(properties),
        "get_arch_list": _constant(["sm_80"]),
        "get_gencode_flags": _constant("-gencode compute=compute_80,code=sm_80"),
        "mem_get_info": _constant((properties.total_memory, properties.total_memory)),
        "get_per_process_memory_fraction": _constant(1.0),
        "get_allocator_backend": _constant("native"),
        "memory_stats": memory_stats,
        "memory_stats_as_nested_dict": memory_stats,
        "host_memory_stats": memory_stats,
        "memory_snapshot": lambda *args, **kwargs: [],
        "memory_summary": _constant("memory of a simulated device is not counted"),
        "list_gpu_processes": _constant("no processes on a simulated device"),
        **{name: _legacy(name, dtype, hardware) for name, dtype in LEGACY.items()},
    }


def _random(generator: Generator) -> dict[str, Any]:
    def manual_seed(seed: int) -> None:
        generator.manual_seed(int(seed))

    def seed() -> None:
        generator.seed()

    def get_rng_state(*args: Any, **kwargs: Any) -> torch.Tensor:
        return generator.get_state()

    def set_rng_state_all(states: list[torch.Tensor]) -> None:
        for state in states:
            generator.set_state(state)

    def set_rng_state(state: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        generator.set_state(state)

    return {
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
        "seed": seed,
        "seed_all": seed,
        "initial_seed": generator.initial_seed,
        "get_rng_state": get_rng_state,
        "get_rng_state_all": lambda: [generator.get_state()],
        "set_rng_state": set_rng_state,
        "set_rng_state_all": set_rng_state_all,
        "default_generators": (generator,),
        "_get_generator": lambda device: generator,
    }


def _streams(hardware: Hardware) -> dict[str, Any]:
    class StreamContext:
        """The given stream is the current one; None changes nothing."""

        def __init__(self, stream: Stream | None) -> None:
            self.stream, self._before = stream, hardware.stream

        def __enter__(self) -> None:
            self._before, hardware.stream = hardware.stream, self.stream or hardware.stream

        def __exit__(self, *exc: object) -> None:
            hardware.stream = self._before

    def set_stream(stream: Stream | None) -> None:
        hardware.stream = stream or hardware.stream

    return {
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "StreamContext": StreamContext,
        "stream": StreamContext,
        "set_stream": set_stream,
        "current_stream": lambda *args, **kwargs: hardware.stream,
        "default_stream": lambda *args, **kwargs: hardware.stream,
    }


def _device_index(hardware: Hardware) -> Any:
    @contextmanager
    def device_index(device: int | None) -> Iterator[None]:
        before = hardware.choose(-1 if device is None else device)
        try:
            yield
        finally:
            hardware.choose(before)

    return device_index


def _legacy(name: str, dtype: torch.dtype, hardware: Hardware) -> Any:
    """A tensor type as `torch.cuda.FloatTensor`: it makes tensors, and knows those that it could have made."""

    class Legacy(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            made = getattr(torch, name)(*args, **kwargs)
            return made.to(hardware.indexed())

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, torch.Tensor) and instance.is_cuda and instance.dtype is dtype

    return Legacy(name, (), {"dtype": dtype, "is_cuda": True, "__module__": "torch.cuda"})
