"""What an autocast region makes of an op's operands: by its lists, for one device or for any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.dtypes.table import DTYPE, UNKNOWN, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.domain.values import Region

__all__ = ["as_cast", "is_listed", "policies_for"]

_CASTABLE = frozenset({"float16", "bfloat16", "float32"})
"""What autocast casts; float64 and integers it leaves alone."""
_DEVICES = ("cpu", "cuda", "mps", "xpu")
_NEVER_LOWERING = frozenset(
    {"mean", "nanmean", "square", "std", "var", "masked_select", "normalize", "pairwise_distance", "cross_entropy"}
    | {"nll_loss", "NLLLoss", "CrossEntropyLoss", "roll", "tile", "hstack", "vstack", "dstack", "column_stack"}
    | {"concat", "concatenate", "row_stack", "float_power", "trapz", "gumbel_softmax"}
    | {"pad", "max_pool3d", "MaxPool3d", "LocalResponseNorm"}
)
"""Ops that call others within, none of which autocast gives a lower dtype: on float32 it has nothing to do for them."""
_KEEPING = frozenset(
    f"torch.{owner}{name}" for owner in ("", "Tensor.") for name in ("mean", "std", "var", "masked_select")
)
"""Ops that call others within on the CPU alone: on GPUs they have a kernel of their own, and are in no list of autocast."""
_CALLED = {
    **dict.fromkeys(("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"), "nll_loss"),
    "square": "pow",
    **dict.fromkeys(("normalize", "pairwise_distance"), "linalg_vector_norm"),
    **dict.fromkeys(("softmin", "Softmin", "gumbel_softmax"), "softmax"),
    **dict.fromkeys(("__rdiv__", "__rtruediv__"), "reciprocal"),
    "arccos": "acos",
    "arcsin": "asin",
}
"""Ops that call another one of ATen on GPUs, which decides the dtype of what they give."""
_OF_SEVERAL = frozenset({"inner", "pad", "max_pool3d", "MaxPool3d", "LocalResponseNorm"})
"""Ops that call another aten op for another mode, or another number of dimensions, than the table has seen."""


def policies_for(
    table: Table, op: str, region: Region | None, given: Sequence[object]
) -> tuple[str | None, ...] | None:
    """What autocast may do with the op; None when that is not known.

    Args:
        region: the region that is on; None outside.
        given: the operands, as the table takes them.
    """
    if region is None:
        return (None,)
    devices = (region.device,) if region.device is not None else _DEVICES
    last = op.rpartition(".")[2]
    policies = {_policy(table, device, op, last) for device in devices}
    if last in _OF_SEVERAL:
        policies.add("composite")
    if "composite" in policies and op in _KEEPING:
        policies -= {"composite"}
        policies.add(None)
    if policies & {"composite", "unknown"} and last in _NEVER_LOWERING and _none_is_half(given):
        policies -= {"composite", "unknown"}
        policies.add(None)
    if policies & {"composite", "unknown"} and _none_is_float(given):
        policies -= {"composite", "unknown"}
        policies.add(None)
    if policies & {"composite", "unknown", "banned", "fp32_append_dtype"}:
        return None
    if policies == {None}:
        return (None,)
    if "lower" in policies and region.dtype is None:
        return None
    return tuple(sorted(policies, key=str))


def _policy(table: Table, device: str, op: str, last: str) -> str | None:
    """What autocast does with an op on one device, or with what it calls there."""
    policy = table.autocast(device, op)
    if policy != "composite" or device == "cpu":
        return policy
    if op.startswith("torch.special."):
        return table.autocast_of_aten(device, last) or policy
    return table.autocast_of_aten(device, _CALLED[last]) if last in _CALLED else policy


def is_listed(table: Table, op: str, region: Region) -> bool:
    """May autocast do anything with the op in a region that is on, whatever its operands?"""
    return policies_for(table, op, region, (UNKNOWN,)) != (None,)


def _dtypes(given: Sequence[object]) -> list[str] | None:
    """The dtypes of all operands; None where something is not known."""
    found: list[str] = []
    for argument in given:
        if argument is UNKNOWN:
            return None
        for operand in argument if isinstance(argument, list) else [argument]:
            if isinstance(operand, tuple) and len(operand) == 2 and operand[1] != DTYPE:
                found.append(operand[0])
    return found


def _none_is_half(given: Sequence[object]) -> bool:
    """Has no operand a dtype that autocast would lift to float32?"""
    dtypes = _dtypes(given)
    return dtypes is not None and not {"float16", "bfloat16"} & set(dtypes)


def _none_is_float(given: Sequence[object]) -> bool:
    """Is no operand of a dtype that autocast touches?"""
    dtypes = _dtypes(given)
    return dtypes is not None and not _CASTABLE & set(dtypes)


def as_cast(argument: object, policy: str | None, region: Region | None, given: Sequence[object]) -> object:
    """An operand as autocast hands it to the op."""
    if policy is None or region is None:
        return argument
    if isinstance(argument, list):
        return [as_cast(item, policy, region, given) for item in argument]
    if not isinstance(argument, tuple) or argument[1] == DTYPE or argument[0] not in _CASTABLE:
        return argument
    if policy == "lower":
        return (region.dtype, argument[1])
    if policy == "promote":
        return (_widest(given) or argument[0], argument[1])
    return ("float32", argument[1])


def _widest(given: Sequence[object]) -> str | None:
    """The dtype that the operands of a promoting op are cast to."""
    floats = [dtype for dtype in _dtypes(given) or () if DTYPES[dtype].category is Category.FLOAT]
    if len(set(floats)) > 1 and any(DTYPES[dtype].bits >= 32 for dtype in floats):
        return "float32"
    return None
