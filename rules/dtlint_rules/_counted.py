"""Whole numbers that are counted in a half dtype, which does not have all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, LOW_PRECISION
from dtlint.infer.domain.values import Tensor, Value
from dtlint_rules._attained import dtypes_of, found, only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["counted_in_half"]

_WIDE = frozenset({"float32", "float64"})
_LIFTING = frozenset({"torch.Tensor.float", "torch.Tensor.double", "torch.Tensor.to", "torch.Tensor.type"})


def counted_in_half(facts: ModuleFacts) -> Iterator[Finding]:
    """`arange` beyond the whole numbers that half has; also up to what is not known, where the count is lifted to float32
    afterwards, too late to help."""
    lifted = {place for one in facts.anywhere(_LIFTING) if _lifts(one) for _, place in _counts(one.args[0])}

    def loses(operation: Operation) -> bool:
        if operation.op != "torch.arange" or not only(operation.result, LOW_PRECISION):
            return False
        most = max(2 / DTYPES[dtype].eps for dtype in dtypes_of(operation.result))
        return any(end - 1 > most and (end < math.inf or place in lifted) for end, place in _counts(operation.result))

    for seen in facts.operations(loses):
        dtype = min(dtypes_of(seen.what.result))
        text = f"Positions are counted in {dtype}, which has not all whole numbers beyond {2 / DTYPES[dtype].eps:.0f}"
        yield found(seen, text, "Count in float32 or int64, and cast what is computed from the positions")


def _lifts(operation: Operation) -> bool:
    return only(operation.result, _WIDE) and only(operation.args[0], LOW_PRECISION)


def _counts(value: Value | None) -> list[tuple[float, object]]:
    """What a tensor counts up to, and where it was made."""
    extra = value.extra if isinstance(value, Tensor) else frozenset()
    return [about for name, about in extra if name == "counted" and isinstance(about, tuple)]
