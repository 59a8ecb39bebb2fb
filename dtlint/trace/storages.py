"""Who wrote each live storage last. Tensors share storages: values are followed from storage to storage.

A weak reference is held on each known storage, so that its address is not used again while it stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dtlint.trace.origins import Origins
from dtlint.trace.site import PLAIN

if TYPE_CHECKING:
    from dtlint.trace.signature import Signature

__all__ = ["Storages", "values_of"]


class Storages:
    """All storages that were met, by address, until they die."""

    def __init__(self) -> None:
        self.made: dict[int, Signature | None] = {}
        """The signature that wrote a storage last; None for a weight, a batch, or memory as it was allocated."""
        self.origins = Origins(self.made)

    def write(self, x: Tensor, maker: Signature | None) -> int:
        """`maker` has written the storage of `x`. Returns its address."""
        storage = x.untyped_storage()
        key: int = storage._cdata
        if key not in self.made:
            storage._weak_ref()
        self.made[key] = maker
        return key

    def maker(self, x: Tensor) -> Signature | None:
        """Who wrote this tensor's storage last, as far as it was seen."""
        if type(x) not in PLAIN or x.layout is not torch.strided:
            return None
        return self.made.get(x.untyped_storage()._cdata)

    def origin(self, x: Tensor) -> Signature | None:
        """Who chose the dtype of this tensor's storage, or kept that of its operands, as far as it was seen."""
        if type(x) not in PLAIN or x.layout is not torch.strided:
            return None
        return self.origins.of(x.untyped_storage()._cdata)

    def let_go_of_dead(self) -> list[int]:
        """Give free the addresses of storages that have died, and return them."""
        made, free = self.made, torch.UntypedStorage._free_weak_ref
        dead = list(filter(torch.UntypedStorage._expired, made))
        for key in dead:
            del made[key]
            free(key)  # type: ignore[no-untyped-call]
        self.origins.let_go_of(dead)
        return dead

    def let_go(self) -> None:
        """Give free all addresses: every storage will be met anew."""
        free = torch.UntypedStorage._free_weak_ref
        for key in self.made:
            free(key)  # type: ignore[no-untyped-call]
        self.made.clear()
        self.origins.let_go()


def values_of(key: int, dtype: torch.dtype) -> Tensor | None:
    """All that a known storage holds now, on its device; None if it is gone or empty."""
    if torch.UntypedStorage._expired(key):
        return None
    storage = torch.UntypedStorage._new_with_weak_ptr(key)
    if storage is None or not storage.nbytes():
        return None
    with torch.inference_mode(False):
        return torch.empty(0, dtype=dtype, device=storage.device).set_(storage)
