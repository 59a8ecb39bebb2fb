"""Which operator chose the dtype of each storage.

A write in place keeps the dtype of its target, and a copy that of its source: neither chooses it, and one line does so
for many tensors, as `model.to("cuda")` does for all parameters. So the choice is kept for each storage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dtlint.trace.signature import Signature

__all__ = ["Origins"]


class Origins:
    """The signature that chose the dtype, by address of the storage, where that is not the one that wrote it last."""

    def __init__(self, made: Mapping[int, Signature | None]) -> None:
        """`made` has the signature that wrote a storage last."""
        self._made = made
        self._earlier: dict[int, Signature] = {}

    def of(self, key: int) -> Signature | None:
        """Who chose the dtype of this storage, or kept that of its operands at the first call; None if not seen."""
        return self._earlier.get(key) or self._made.get(key)

    def kept(self, signature: Signature, sources: Sequence[int], target: int) -> None:
        """`signature` has written `target`, which `made` does not show yet: in place, or as a copy of the last source."""
        if target in sources:
            source = target
        elif signature.keeps and sources:
            source = sources[-1]
        else:  # the result of an operator that also writes in place, as batch_norm does its statistics
            return
        origin = self.of(source)
        if origin is not None and origin is not signature:
            self._earlier[target] = origin

    def let_go_of(self, dead: Iterable[int]) -> None:
        """These storages are gone."""
        if self._earlier:
            for key in dead:
                self._earlier.pop(key, None)

    def let_go(self) -> None:
        """All storages will be met anew."""
        self._earlier.clear()
