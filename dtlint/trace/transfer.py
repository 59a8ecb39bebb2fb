"""Numbers from their device to Python. On CUDA through pinned memory and an event: nothing else is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Counts", "fetch"]

T = TypeVar("T")


class Counts(Generic[T]):
    """Counts that wait on their device, each few with what they are of."""

    def __init__(self) -> None:
        self._waiting: dict[torch.device, list[tuple[T, Tensor]]] = {}

    def add(self, of: T, *counts: Tensor) -> None:
        """Let these 0-dim tensors wait; all on one device."""
        self._waiting.setdefault(counts[0].device, []).append((of, torch.stack(counts)))

    def read(self) -> Iterator[tuple[T, list[int]]]:
        """What is waiting, by one transfer per device; it waits no longer."""
        waiting, self._waiting = self._waiting, {}
        for added in waiting.values():
            counted = fetch(torch.stack([counts for _, counts in added])).tolist()
            yield from zip((of for of, _ in added), counted, strict=True)


def fetch(x: Tensor) -> Tensor:
    """`x` on the CPU.

    A plain copy from CUDA would synchronise the stream, which `torch.cuda.set_sync_debug_mode("error")` refuses, and
    which no graph that is being captured survives.
    """
    if not torch._C._dispatch_keys(x).has(torch._C.DispatchKey.CUDA):  # whatever a simulated device would say
        return x
    with torch.inference_mode(False):
        here = torch.empty(x.shape, dtype=x.dtype, pin_memory=True)
    here.copy_(x, non_blocking=True)
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]
    done.record(torch.cuda.current_stream(x.device))
    done.synchronize()
    return here
