"""What an autocast region makes of an op's operands: by its lists, for one device or for any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.dtypes.table import DTYPE, Table, load
from dtlint.infer.values import Constant, Dtype, Items, Iteration, Number, Tensor, options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.values import Autocast, Value

__all__ = ["as_cast", "is_untouched", "policies_for"]

_CASTABLE = frozenset({"float16", "bfloat16", "float32"})
"""What autocast casts; float64 and integers it leaves alone."""


def is_untouched(op: str, autocast: Autocast | None, args: Sequence[Value]) -> bool:
    """Does an op give in an autocast region what it gives outside?"""
    if autocast is None or op in _FACTORIES:
        return True
    policies = policies_for(load(), op, autocast, args)
    return policies is not None and (policies == (None,) or ("lower" not in policies and _none_is_half(args)))


_DEVICES = ("cpu", "cuda", "mps", "xpu")
_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        *(
            "nn.Parameter",
            "nn.Buffer",
            "tensor",
            "as_tensor",
            "asarray",
            "from_numpy",
            "zeros",
            "ones",
            "empty",
            "full",
            "arange",
            "eye",
        ),
        *("rand", "randn", "randint", "randperm", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like"),
        *(
            "linspace",
            "randn_like",
            "randint_like",
            "logspace",
            "Tensor",
            "scalar_tensor",
            "tril_indices",
            "triu_indices",
        ),
    )
)
"""What makes tensors of numbers, or wraps one, takes no part in autocast."""


def policies_for(
    table: Table, op: str, autocast: Autocast | None, args: Sequence[Value]
) -> tuple[str | None, ...] | None:
    """What autocast may do with the op; None when that is not known."""
    if autocast is None:
        return (None,)
    devices = (autocast.device,) if autocast.device is not None else _DEVICES
    policies = {table.autocast(device, op) for device in devices}
    if op.rpartition(".")[2] in _OF_SEVERAL:
        policies.add("composite")
    if policies & {"composite", "unknown"} and op.rpartition(".")[2] in _NEVER_LOWERING and _none_is_half(args):
        policies -= {"composite", "unknown"}
        policies.add(None)
    if policies & {"composite", "unknown", "banned", "fp32_append_dtype"}:
        return None
    if policies == {None}:
        return (None,)
    if "lower" in policies and autocast.dtype is None:
        return None
    if autocast.enabled is None:
        policies.add(None)
    return tuple(sorted(policies, key=str))


_NEVER_LOWERING = frozenset(
    {"mean", "nanmean", "square", "std", "var", "masked_select", "normalize", "pairwise_distance", "cross_entropy"}
    | {"nll_loss", "NLLLoss", "CrossEntropyLoss", "roll", "tile", "hstack", "vstack", "dstack", "column_stack"}
    | {"concat", "concatenate", "row_stack", "float_power", "trapz", "gumbel_softmax"}
    | {"pad", "max_pool3d", "MaxPool3d", "LocalResponseNorm"}
)
"""Ops that call others within, none of which autocast gives a lower dtype: on float32 it has nothing to do for them."""


_OF_SEVERAL = frozenset({"inner", "pad", "max_pool3d", "MaxPool3d", "LocalResponseNorm"})
"""Ops that call another aten op for another mode, or another number of dimensions, than the table has seen."""


def _none_is_half(args: Sequence[Value]) -> bool:
    """Has no tensor among the operands a dtype that autocast would lift to float32?"""
    for value in args:
        within = value.item if isinstance(value, Iteration) else value
        for choice in within.items if isinstance(within, Items) else options(within):
            if isinstance(choice, Tensor):
                if choice.dtypes is None or choice.dtypes & {"float16", "bfloat16"}:
                    return False
            elif not isinstance(choice, (Number, Constant, Dtype, Items)):
                return False
    return True


def as_cast(argument: object, policy: str | None, autocast: Autocast | None, given: Sequence[object]) -> object:
    """An operand as autocast hands it to the op."""
    if policy is None or autocast is None:
        return argument
    if isinstance(argument, list):
        return [as_cast(item, policy, autocast, given) for item in argument]
    if not isinstance(argument, tuple) or argument[1] == DTYPE or argument[0] not in _CASTABLE:
        return argument
    if policy == "lower":
        return (autocast.dtype, argument[1])
    if policy == "promote":
        return (_widest(given) or argument[0], argument[1])
    return ("float32", argument[1])


def _widest(given: Sequence[object]) -> str | None:
    """The dtype that the operands of a promoting op are cast to."""
    floats = [
        operand[0]
        for argument in given
        for operand in (argument if isinstance(argument, list) else [argument])
        if isinstance(operand, tuple) and operand[1] != DTYPE and DTYPES[operand[0]].category is Category.FLOAT
    ]
    if len(set(floats)) > 1 and any(DTYPES[dtype].bits >= 32 for dtype in floats):
        return "float32"
    return None
