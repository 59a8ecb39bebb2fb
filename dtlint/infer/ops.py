"""What torch's ops give for values: the operator table, asked with what the interpreter knows.

An operand of which only some dtypes are possible is asked with each of them. Those with which torch raises are no
answer: a program that gets past the op had another. So a matrix product of float32 with an unknown tensor is float32.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ARITHMETIC, COMPLEX, FLOATING, Category
from dtlint.dtypes.table import DTYPE, UNKNOWN, Outcome, load
from dtlint.infer.regions import as_cast, policies_for
from dtlint.infer.values import (
    NONE,
    Constant,
    Dtype,
    Either,
    Items,
    Iteration,
    Number,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.infer.values import UNKNOWN as UNKNOWN_VALUE

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

    from dtlint.infer.values import Autocast, Dtypes

__all__ = ["KEEPING_DIMENSIONS", "REARRANGING", "is_op", "op_result", "with_dimensions"]

_MOST_QUESTIONS = 160
"""Combinations of operands that are asked for one call; past it, the result is unknown."""

_BETTER_KNOWN = {
    f"{owner}.clip{place}": f"{owner}.clamp{place}" for owner in ("torch", "torch.Tensor") for place in ("", "_")
}
"""Second names of ops that the table has learned more of under the first."""


def is_op(name: str) -> bool:
    """Does the operator table have an op of that qualified name?"""
    return _BETTER_KNOWN.get(name, name) in load().ops


def op_result(
    op: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    default: Dtypes,
    autocast: Autocast | None,
    origin: ast.expr,
) -> Value | None:
    """The value of `op(*args, **keywords)`, for an op by its qualified name; None for one that the table does not have.

    Args:
        default: the default dtype; None when the program sets another.
        autocast: the region in force.
    """
    table = load()
    op = _BETTER_KNOWN.get(op, op)
    if op not in table.ops:
        return None
    standards = _DEFAULTS if default is None else sorted(default)
    last = op.rpartition(".")[2].rstrip("_")
    if _is_beyond_table(last, args, keywords):
        return UNKNOWN_VALUE
    if last in _AGREEING or last == "scaled_dot_product_attention":
        args, keywords = _as_agreeing(last, args, keywords)
    names = list(keywords)
    choices = [_operands(value) for value in (*args, *keywords.values())]
    count = 1
    for choice in choices:
        count *= len(choice)
    policies = policies_for(table, op, autocast, (*args, *keywords.values()))
    if count > _MOST_QUESTIONS or policies is None:
        return UNKNOWN_VALUE
    result: Value | None = None
    for given in product(*choices):
        for policy, standard in product(policies, standards):
            now = [as_cast(argument, policy, autocast, given) for argument in given]
            outcome = table.call(
                op, now[: len(args)], dict(zip(names, now[len(args) :], strict=True)), default=standard
            )
            if not outcome.known and outcome.error is None and last in _AGREEING:
                agreed = _agreed(now)
                if agreed is not None:
                    outcome = replace(outcome, known=True, result=agreed)
            if outcome.error is not None or (
                not outcome.known and result is not None and _supposes_0_dim(given, choices)
            ):
                continue
            value = _value(outcome, origin)
            result = value if result is None else join(result, value)
            if isinstance(result, (type(UNKNOWN_VALUE), Either)):
                return UNKNOWN_VALUE
    if result is None:
        return UNKNOWN_VALUE
    dimensioned = op.rpartition(".")[2].rstrip("_") in KEEPING_DIMENSIONS and any(
        isinstance(value, Tensor) and value.zero_dim is False for value in (*args, *keywords.values())
    )
    return with_dimensions(result) if dimensioned else result


def _is_beyond_table(op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """Is it a call whose result depends on what the table does not know?"""
    first = args[0] if args else None
    whole = isinstance(first, Tensor) and (first.dtypes is None or not first.dtypes <= FLOATING | COMPLEX)
    if op in ("add", "sub", "subtract"):  # `add(input, alpha, other)`, as it was called long ago
        return len(args) > 2
    if op in ("clamp", "clip"):  # of whole numbers: a number beside a tensor is taken for a tensor too
        kinds = {isinstance(bound, Tensor) for bound in (*args[1:], *keywords.values()) if bound != NONE}
        return whole and len(kinds) > 1
    return whole and op == "sum_to_size"  # of this size already, it is not summed


_AGREEING = frozenset({"addmm", "baddbmm", "addbmm", "addmv", "addr", "mm", "bmm", "matmul", "linear"})
"""Products, whose operands must have one dtype, which the result has; the table has not seen all of their shapes."""


def _as_agreeing(
    op: str, args: Sequence[Value], keywords: Mapping[str, Value]
) -> tuple[Sequence[Value], Mapping[str, Value]]:
    """The operands of a product, with what is unknown among them taken to be like the one that is known best: if it
    were not, the call would raise. The mask of an attention says nothing of its result."""
    if op == "scaled_dot_product_attention":
        given = [*args[:3], *(keywords[name] for name in ("query", "key", "value") if name in keywords)]
        args, keywords = given[:3], {}
    elif any(not isinstance(value, (Number, Constant)) for value in keywords.values()):
        return args, keywords
    known = [value for value in args if isinstance(value, Tensor) and value.dtypes is not None]
    if not known or not all(_may_be_tensor(value) for value in args):
        return args, keywords
    best = min(known, key=lambda value: len(value.dtypes or ()))
    return [value if value in known else best for value in args], keywords


def _may_be_tensor(value: Value) -> bool:
    return any(isinstance(choice, (Tensor, Unknown)) for choice in options(value))


_DEFAULTS = ("float16", "bfloat16", "float32", "float64")
"""What the default dtype may be set to."""


def _agreed(given: Sequence[object]) -> str | None:
    """The one dtype of all tensor operands, if they have one."""
    dtypes = {operand[0] for operand in given if isinstance(operand, tuple) and operand[1] != DTYPE}
    return dtypes.pop() if len(dtypes) == 1 and not any(operand is UNKNOWN for operand in given) else None


def _supposes_0_dim(given: Sequence[object], choices: Sequence[list[object]]) -> bool:
    """Is an operand taken for 0-dim here that may as well have dimensions? What the table has not seen of 0-dim tensors
    is mostly what torch refuses for their shape."""
    return any(
        isinstance(operand, tuple) and operand[1] == 1 and (operand[0], 2) in choice
        for operand, choice in zip(given, choices, strict=True)
    )


def with_dimensions(value: Value) -> Value:
    """The value, known to have dimensions."""
    if isinstance(value, Tensor):
        return replace(value, zero_dim=False)
    if isinstance(value, Items):
        return Items(tuple(map(with_dimensions, value.items)))
    return Iteration(with_dimensions(value.item)) if isinstance(value, Iteration) else value


KEEPING_DIMENSIONS = frozenset(
    {
        "abs",
        "add",
        "sub",
        "mul",
        "div",
        "neg",
        "exp",
        "log",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "relu",
        "gelu",
        "silu",
    }
    | {
        "softmax",
        "log_softmax",
        "softplus",
        "leaky_relu",
        "dropout",
        "clamp",
        "clip",
        "pow",
        "square",
        "where",
        "maximum",
        "minimum",
    }
    | {
        "transpose",
        "permute",
        "contiguous",
        "masked_fill",
        "split",
        "chunk",
        "cat",
        "stack",
        "expand",
        "repeat",
        "flatten",
        "unsqueeze",
    }
    | {
        "tril",
        "triu",
        "clone",
        "detach",
        "roll",
        "flip",
        "cumsum",
        "sort",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_not",
        "isnan",
    }
    | {
        "scaled_dot_product_attention",
        "layer_norm",
        "group_norm",
        "batch_norm",
        "linear",
        "conv1d",
        "conv2d",
        "conv3d",
        "normalize",
    }
    | {
        "max_pool1d",
        "max_pool2d",
        "avg_pool2d",
        "adaptive_avg_pool2d",
        "interpolate",
        "pad",
        "type_as",
        "float",
        "half",
        "long",
        "bool",
    }
    | {
        "erf",
        "floor",
        "ceil",
        "round",
        "reciprocal",
        "log1p",
        "expm1",
        "zeros_like",
        "ones_like",
        "rand_like",
        "randn_like",
        "t",
        "mT",
    }
)
"""Ops that give a tensor with dimensions when they are given one. Reductions, and what picks an element, do not."""


_SAMPLES: dict[Category, object] = {
    Category.BOOL: True,
    Category.INTEGER: 1,
    Category.FLOAT: 0.5,
    Category.COMPLEX: 1j,
}
"""Stand for the numbers of a category: the dtype of a result depends on nothing else of them."""


REARRANGING = frozenset(
    [
        "reshape",
        "expand",
        "repeat",
        "permute",
        "transpose",
        "contiguous",
        "flatten",
        "unflatten",
        "unsqueeze",
        "expand_as",
        "reshape_as",
        "view_as",
        "movedim",
        "swapaxes",
        "swapdims",
        "tile",
        "roll",
        "flip",
        "narrow",
        "split",
        "chunk",
        "unbind",
        "tensor_split",
        "repeat_interleave",
        "index_select",
        "t",
        "clone",
        "detach",
        "masked_fill",
        "masked_fill_",
        "tril",
        "triu",
        "gather",
        "take_along_dim",
        "unfold",
        "select",
        "diagonal",
        "adjoint",
        "pin_memory",
        "cpu",
        "cuda",
        "requires_grad_",
        "zero_",
        "fill_",
        "normal_",
        "uniform_",
        "copy_",
        "detach_",
        "squeeze",
        "masked_scatter",
        "masked_scatter_",
        "index_fill_",
        "trunc_normal_",
        "scatter_",
        "scatter_add_",
        "index_add_",
        "index_copy_",
        "clamp_",
        "add_",
        "sub_",
        "mul_",
        "div_",
        "relu_",
        "unsqueeze_",
        "squeeze_",
        "t_",
    ]
)
"""Methods whose result has the dtype of their tensor, whatever else they are given, in autocast too: what moves numbers,
and what writes into the tensor itself."""


def _operands(value: Value) -> list[object]:
    """What an argument may be to the table."""
    if isinstance(value, Tensor):
        ranks = (2, 1) if value.zero_dim is None else (1,) if value.zero_dim else (2,)
        if value.dtypes is None:
            # Dimensions and all: the rank matters little where the dtype is anybody's guess, and doubles the questions.
            return [(dtype, rank) for dtype in ARITHMETIC for rank in ranks]
        return [(dtype, rank) for dtype in sorted(value.dtypes) for rank in ranks]
    if isinstance(value, Dtype):
        return [(value.name, DTYPE)]
    if isinstance(value, Number):
        return [_SAMPLES[value.category]]
    if isinstance(value, Constant):
        return [value.value if isinstance(value.value, (bool, int, float, complex, str, type(None))) else UNKNOWN]
    if isinstance(value, Either) and all(
        isinstance(choice, (Dtype, Tensor, Constant, Number)) for choice in value.choices
    ):
        return [operand for choice in value.choices for operand in _operands(choice)]
    if isinstance(value, Items) and any(isinstance(item, Number) for item in value.items):
        return [[1] * len(value.items)] if _are_sizes(value) else [UNKNOWN]
    if isinstance(value, Items):
        items = [_operands(item) for item in value.items]
        if items and all(len(item) == 1 for item in items):
            return [[item[0] for item in items]]
        if items and all(isinstance(item, Tensor) for item in value.items) and len(items) <= 4:
            alike = list(product(*items))
            return [list(choice) for choice in alike] if len(alike) <= _MOST_QUESTIONS else [UNKNOWN]
        return [UNKNOWN]
    if isinstance(value, Iteration) and isinstance(value.item, (Number, Constant)):
        return [[_operands(value.item)[0]] * 2]  # sizes
    if (
        isinstance(value, Iteration)
        and isinstance(value.item, Tensor)
        and value.item.dtypes is not None
        and len(value.item.dtypes) == 1
    ):
        operand = _operands(value.item)[-1]
        return [[operand, operand]]
    return [UNKNOWN]


def _are_sizes(value: Items) -> bool:
    return all(
        (isinstance(item, Number) and item.category is Category.INTEGER)
        or (isinstance(item, Constant) and type(item.value) is int)
        for item in value.items
    )


def _value(outcome: Outcome, origin: ast.expr) -> Value:
    return _of(outcome.result, origin) if outcome.known else UNKNOWN_VALUE


def _of(result: object, origin: ast.expr) -> Value:
    """A value of the table's result: a dtype, a tuple of results, a list of alike ones, or no tensor."""
    if isinstance(result, str):
        return Tensor(frozenset({result}), origin=origin)
    if isinstance(result, tuple):
        return Items(tuple(_of(item, origin) for item in result))
    if isinstance(result, list):
        return Iteration(_of(result[0], origin))
    return UNKNOWN_VALUE
