"""Kernels in Python on a dispatch key of torch's, registered together and taken away together."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Kernels"]


class Kernels:
    """What stands on one key instead of torch's own kernels."""

    def __init__(self, key: str) -> None:
        self.key = key
        self._library: Any = None

    def register(self, kernels: Mapping[Any, Callable[..., Any]]) -> None:
        """Register a kernel for each overload, as `torch.ops.aten.mm.default`."""
        self._library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
        with warnings.catch_warnings():  # that there are kernels already; when these go, those stand again
            warnings.simplefilter("ignore", UserWarning)
            for overload, kernel in kernels.items():
                self._library.impl(overload, kernel, self.key)

    def remove(self) -> None:
        """Undo `register`."""
        if self._library is not None:
            self._library._destroy()
            self._library = None
