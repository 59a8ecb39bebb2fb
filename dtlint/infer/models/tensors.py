"""Python's operators on tensors: each is one of torch's ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, DTYPES, FLOATING, Category
from dtlint.dtypes.promotion import promote
from dtlint.infer.domain.interval import ANY, Range
from dtlint.infer.domain.lattice import at_least, category_of, join_dtypes, join_symbols, least
from dtlint.infer.domain.values import (
    NO_TENSOR,
    TOP,
    Array,
    Number,
    Tensor,
    Unknown,
    Value,
)
from dtlint.infer.models import arrays, mutation, ranges, shapes
from dtlint.infer.models.departures import marked
from dtlint.infer.models.handed_over import supposed
from dtlint.infer.models.ops import ask, refusal

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["comparison_result", "in_place_result", "operator_result", "unary_result", "unknown_result"]

_OPS = {
    "add": "torch.add",
    "sub": "torch.sub",
    "mul": "torch.mul",
    "truediv": "torch.div",
    "floordiv": "torch.floor_divide",
    "mod": "torch.remainder",
    "pow": "torch.pow",
    "matmul": "torch.matmul",
    "and": "torch.bitwise_and",
    "or": "torch.bitwise_or",
    "xor": "torch.bitwise_xor",
    "lshift": "torch.bitwise_left_shift",
    "rshift": "torch.bitwise_right_shift",
}
_IN_PLACE = {
    "add": "torch.Tensor.add_",
    "sub": "torch.Tensor.sub_",
    "mul": "torch.Tensor.mul_",
    "truediv": "torch.Tensor.div_",
}
_FLOATS = FLOATING | COMPLEX


def operator_result(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """`left + right` where one of them is a tensor."""
    other = right if isinstance(left, Tensor) else left
    if isinstance(other, Unknown) and (other != NO_TENSOR or name == "matmul"):
        return _with_unknown(ctx, name, left, right)
    if category_of(other) is None and not isinstance(other, (Tensor, Array, Unknown)):
        return TOP
    if isinstance(other, Array):
        number = arrays.as_number(other)
        if number is None:
            return arrays.beside_tensor(ctx, name, left, right)
        left, right = (left, number) if other is right else (number, right)
    args = [left, right]
    op = _OPS[name]
    if not isinstance(left, Tensor) and name != "pow":
        # the dtype is that of the operands the other way round; but `1 / x` is a reciprocal, which autocast knows
        args = [right, left]
        if name == "truediv":
            made = ask(ctx, "torch.reciprocal", [right], {})
            if isinstance(made, Tensor) and (made.dtypes or made.symbol):
                args = [made, left]
    result = _of_half_complex(name, left, right) or ask(ctx, op, args, {})
    if not isinstance(result, Tensor):
        return Tensor()
    rank = shapes.broadcast([one.rank for one in (left, right) if isinstance(one, Tensor)])
    if name == "matmul":
        rank = result.rank
    made_range = ranges.range_of(op.rpartition(".")[2], [left, right], {})
    device = shapes.device_of_operands([left, right], {})
    return Tensor(result.dtypes, result.symbol, rank, made_range, device, result.extra | _wrapped(name, left, right))


def _of_half_complex(name: str, left: Value, right: Value) -> Tensor | None:
    """Arithmetic with a tensor of complex32, of which the table knows little: it promotes as any other."""
    dtypes = [one.dtypes for one in (left, right) if isinstance(one, Tensor) and one.dtypes and one.rank]
    if name not in ("add", "sub", "mul", "truediv") or len(dtypes) != 2 or frozenset({"complex32"}) not in dtypes:
        return None
    found = {promote(one, other) for one in dtypes[0] for other in dtypes[1]}
    known = frozenset(one for one in found if one is not None)
    return Tensor(known) if len(known) == len(found) else None


def _wrapped(name: str, left: Value, right: Value) -> frozenset[tuple[str, object]]:
    """Of a sum or a difference of small integers: that it may have wrapped around.

    Not where an operand is a bound of others, `x - x.min()`, and not for sums of masks."""
    if name not in ("add", "sub"):
        return frozenset()
    for one in (left, right):
        small = isinstance(one, Tensor) and one.dtypes is not None and bool(one.dtypes) and one.dtypes <= _SMALL
        is_mask = isinstance(one, Tensor) and one.range.magnitude <= 1 and name == "add"
        if not isinstance(one, Tensor) or not small or is_mask or ("bound", True) in one.extra:
            return frozenset()
    return frozenset({("wraps", name)})


_SMALL = frozenset({"uint8"})


def _with_unknown(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """A tensor and something that may be another, or a number."""
    known, other = (left, right) if isinstance(left, Tensor) else (right, left)
    assert isinstance(known, Tensor)
    assert isinstance(other, Unknown)
    rank = at_least(least(known.rank))
    if name == "matmul" and known.dtypes is not None:
        operand = Tensor(other.dtypes) if other.dtypes else known  # no number has this operator
        result = ask(ctx, "torch.matmul", [known, operand] if known is left else [operand, known], {})
        if isinstance(result, Tensor):
            return Tensor(result.dtypes, result.symbol, None, device=known.device)
    if other.symbol is not None or other.dtypes:
        as_tensor = Tensor(other.dtypes, other.symbol)
        args = [known, as_tensor] if known is left else [as_tensor, known]
        result = ask(ctx, _OPS[name], args, {})
        if isinstance(result, Tensor):  # it may be a number as well, a real one
            kind = max((DTYPES[dtype].category for dtype in other.dtypes or ()), default=Category.FLOAT)
            if other.dtypes == supposed(ctx):
                kind = Category.FLOAT  # it has the dtype only if it is a tensor
            given = (known, Number(kind)) if known is left else (Number(kind), known)
            number = operator_result(ctx, name, *given)
            both = number if isinstance(number, Tensor) else Tensor()
            return Tensor(join_dtypes(result.dtypes, both.dtypes), join_symbols(result.symbol, both.symbol), rank)
    if known.dtypes and known.dtypes <= FLOATING and known.dtypes == supposed(ctx):
        return Tensor(known.dtypes, None, rank)  # of an integer a number may make a float
    if name == "truediv":
        return Tensor(_FLOATS, None, rank)
    return Tensor(None, None, rank)


def unknown_result(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """An operator on what may be a tensor, and a number or something else that may be one."""
    operands = [left, right]
    if all(one == NO_TENSOR or category_of(one) is not None for one in operands):
        return NO_TENSOR
    symbols = [one.symbol for one in operands if isinstance(one, Unknown) and one.symbol is not None]
    others = [one for one in operands if not (isinstance(one, Unknown) and one.symbol is not None)]
    if symbols and all(category_of(one) is not None for one in others):
        as_tensors: list[Value] = [
            Tensor(one.dtypes, one.symbol) if isinstance(one, Unknown) else one for one in operands
        ]
        result = operator_result(ctx, name, *as_tensors)
        if isinstance(result, Tensor):
            return Unknown(result.dtypes, result.symbol)
    known = [
        one for one in operands if isinstance(one, Unknown) and one.dtypes is not None and one.dtypes != frozenset()
    ]
    if known and len(known) + len([one for one in others if category_of(one) is not None]) == 2:
        as_tensors = [Tensor(one.dtypes) if isinstance(one, Unknown) else one for one in operands]
        # `1 - (x == y)` raises for tensors alone: whether these are tensors is not known, so that nothing is recorded
        recorder, ctx.recorder = ctx.recorder, None
        try:
            result = operator_result(ctx, name, *as_tensors)
        finally:
            ctx.recorder = recorder
        if isinstance(result, Tensor):
            return Unknown(result.dtypes, result.symbol)
    return Unknown(_FLOATS) if name == "truediv" else TOP


def in_place_result(ctx: Context, name: str, known: Tensor, given: Value) -> Value:
    """`x += y`: the tensor keeps its dtype, or the statement raises."""
    result = operator_result(ctx, name, known, given)
    elements = result.range if isinstance(result, Tensor) else ANY
    op = _IN_PLACE.get(name)
    if op is not None and ctx.recorder is not None and not isinstance(given, Unknown):
        error = refusal(ctx, op, [known, given], {})
        made = None if error else Tensor(known.dtypes, known.symbol, known.rank, elements, known.device)
        ctx.recorder.operation(op, [known, given], {}, made, error, ctx)
    mutation.elements_became(ctx, known, elements)
    made = Tensor(known.dtypes, known.symbol, known.rank, elements, known.device)
    return marked(ctx, f"torch.Tensor.{name}_", [known, given], made)


def unary_result(ctx: Context, name: str, value: Tensor) -> Value:
    """`-x`, `~x`, `+x`."""
    if name == "pos":
        return value
    result = ask(ctx, "torch.neg" if name == "neg" else "torch.bitwise_not", [value], {})
    if not isinstance(result, Tensor):
        return Tensor(value.dtypes, value.symbol, value.rank)
    return Tensor(result.dtypes, result.symbol, value.rank, result.range, value.device, result.extra)


_BOOL = frozenset({"bool"})
TRUTHS = Range(0.0, 1.0, True, False, False)


def comparison_result(ctx: Context, name: str, left: Value, right: Value) -> Value:
    """`x < y`: bool."""
    ranks = [one.rank for one in (left, right) if isinstance(one, Tensor)]
    if any(isinstance(one, Unknown) for one in (left, right)):
        ranks.append(None)
    device = shapes.device_of_operands([left, right], {})
    result = Tensor(_BOOL, None, shapes.broadcast(ranks), TRUTHS, device)
    if ctx.recorder is not None:
        ctx.recorder.operation(f"torch.{name}", [left, right], {}, result, None, ctx)
    return result
