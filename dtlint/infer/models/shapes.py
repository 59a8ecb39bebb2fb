"""A result's dimensions, elements and device, put to the dtype that the operator table has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.table import load
from dtlint.infer.domain.values import Many, Tensor, Tuple, Value, reshaped
from dtlint.infer.models import ranges, ranks
from dtlint.infer.models.ranks import broadcast, of_sizes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["BARE", "broadcast", "device_of_operands", "of_sizes", "with_shape"]

BARE: tuple[str, object] = ("bare", True)
"""Says of a tensor that it may well have no dimensions: it was made of data of which nothing is known, `torch.tensor(width)`."""


def with_shape(
    op: str,
    answer: Value,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    settings: Mapping[str, Value] | None = None,
) -> Value:
    """The table's answer, with what is known of the dimensions, the elements and the device.

    Args:
        args, keywords: what the op is called with; for a layer its weight first, or None.
        settings: what a layer's constructor was given by name.
    """
    if isinstance(answer, Tensor):
        device = device_of_operands(args, keywords)
        rank = ranks.of_result(op, args, keywords, settings)
        symbol = answer.symbol if ranks.keeps(op) else reshaped(answer.symbol)
        extra = _BOUND if op.rpartition(".")[2] in _BOUNDS else frozenset()
        if rank is None and _is_bare(op, args, keywords):
            extra |= {BARE}
        return Tensor(answer.dtypes, symbol, rank, ranges.of_op(op, args, keywords), device, extra)
    if isinstance(answer, Tuple) and not answer.names and len(answer.items) == 2:
        answer = Tuple(answer.items, _NAMES.get(op.rpartition(".")[2], ()))
    if isinstance(answer, (Tuple, Many)):
        parts = ranks.of_parts(op, args, keywords, settings)
        device = device_of_operands(args, keywords)
        if isinstance(answer, Tuple) and op.rpartition(".")[2] == "svd" and len(answer.items) == 3:
            answer = Tuple(answer.items, ("U", "S", "Vh" if op.startswith("torch.linalg") else "V"))
        if isinstance(answer, Tuple) and isinstance(parts, tuple) and len(parts) == len(answer.items):
            items = zip(answer.items, parts, strict=True)
            return Tuple(tuple(_with_rank(item, rank, device) for item, rank in items), answer.names)
        return _with_rank(answer, None if isinstance(parts, tuple) else parts, device)
    return answer


def _is_bare(op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """Is it an op on nothing but such tensors, and along no dimension, which they would have then?"""
    if "dim" in keywords or (len(args) > 1 and not load().kinds_at(op, 1)):
        return False
    given = list(_tensors((*args, *keywords.values())))
    return bool(given) and all(BARE in one.extra for one in given)


_BOUNDS = frozenset({"max", "min", "amax", "amin", "maximum", "minimum", "cummax", "cummin"})
_BOUND: frozenset[tuple[str, object]] = frozenset({("bound", True)})
"""Says of a tensor that its elements bound others: a difference with it is perhaps never negative."""


_NAMES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("max", "min", "median", "nanmedian", "mode", "kthvalue"), ("values", "indices")),
    **dict.fromkeys(("sort", "topk", "cummax", "cummin"), ("values", "indices")),
    "aminmax": ("min", "max"),
    "qr": ("Q", "R"),
    "eigh": ("eigenvalues", "eigenvectors"),
    "eig": ("eigenvalues", "eigenvectors"),
    "slogdet": ("sign", "logabsdet"),
}
"""The fields of results that are named tuples."""


def device_of_operands(args: Sequence[Value], keywords: Mapping[str, Value]) -> str | None:
    """Where a result is: with the operands; one without dimensions may be on the CPU beside others that are not."""
    found = {(one.device, one.rank == 0) for one in _tensors((*args, *keywords.values()))}
    devices = {device for device, _ in found}
    if len(devices) > 1:
        devices = {device for device, scalar in found if not scalar}
    return devices.pop() if len(devices) == 1 else None


def _tensors(values: Iterable[Value]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, Tuple):
            yield from _tensors(value.items)
        elif isinstance(value, Many):
            yield from _tensors((value.item,))


def _with_rank(value: Value, rank: int | None, device: str | None) -> Value:
    if isinstance(value, Tensor):
        return Tensor(value.dtypes, reshaped(value.symbol), rank, value.range, device)
    if isinstance(value, Tuple):
        return Tuple(tuple(_with_rank(item, rank, device) for item in value.items), value.names)
    return Many(_with_rank(value.item, rank, device)) if isinstance(value, Many) else value
