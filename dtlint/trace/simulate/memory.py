"""Memory of the simulated device for who asks below the mode, as custom operators in Python do: it is the CPU's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dtlint.trace.simulate.kernels import Kernels
from dtlint.trace.simulate.placement import HOME, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.trace.simulate.hardware import Hardware

__all__ = ["install"]

ALLOCATE = (torch.ops.aten.empty.memory_format, torch.ops.aten.empty_strided.default)
"""Every constructor gets its memory by one of these."""


def install(hardware: Hardware) -> Kernels:
    """Give it out, until the kernels are removed."""

    def allocating(func: Any) -> Callable[..., Any]:
        def allocate(*args: Any, **kwargs: Any) -> Any:
            where = hardware.indexed(kwargs.get("device"))
            return place(func(*args, **{**kwargs, "device": HOME, "pin_memory": False}), where)

        return allocate

    kernels = Kernels("CUDA")
    kernels.register({func: allocating(func) for func in ALLOCATE})
    return kernels
