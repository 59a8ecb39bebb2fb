"""torch's operators, by the learned table: it is asked with every dtype that the operands can have.

Combinations with which torch raises are no answer: a program that gets past the call had another. Where the caller decides
a dtype, every floating one stands in for it: what comes out the same as what went in is still the caller's, and what
always comes out alike is known.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ARITHMETIC, COMPLEX, DTYPES, Category
from dtlint.dtypes.promotion import promote
from dtlint.dtypes.table import DTYPE, UNKNOWN, load
from dtlint.infer.context import NeverReturns, Unfit
from dtlint.infer.domain.lattice import join_all, join_symbols
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Array,
    Const,
    Dtype,
    Many,
    Number,
    Region,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
)
from dtlint.infer.models import indexing, shapes
from dtlint.infer.models.departures import marked
from dtlint.infer.models.handed_over import beside_known
from dtlint.infer.models.plain_tensors import as_operand
from dtlint.infer.models.table_answers import Operand, Question, Refusal, is_anything, table_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dtlint.infer.context import Context

__all__ = ["GOES_ON", "ask", "default_dtypes", "is_op", "refusal", "refusal_as", "tell_refusal"]

_ALL_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


def is_op(name: str) -> bool:
    """Does the operator table have an op of that qualified name?"""
    return name in load().ops


def default_dtypes(ctx: Context) -> frozenset[str]:
    """What the default dtype can be here."""
    default = ctx.ambient("default dtype")
    if isinstance(default, Const) and isinstance(default.value, str):
        return frozenset({default.value})
    return default.dtypes if isinstance(default, Dtype) and default.dtypes is not None else _ALL_FLOATS


GOES_ON = "goes on"
"""Does a path go on behind an op that torch refuses, with an unknown result? So it does in functions that are read as called by
anybody, for whom the op may be mended, and in a notebook, whose cells run one by one. It ends in a program that is run, and
in one of several things that may be called, which is not what is called there then."""


def ask(
    ctx: Context,
    op: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    settings: Mapping[str, Value] | None = None,
) -> Value | None:
    """The result of an op for its operands, in the region in force; None for an op that the table does not have.

    Args:
        settings: what a layer's constructor was given by name.

    Raises:
        NeverReturns: torch raises for all that the operands can be; Unfit where the path goes on behind it.
    """
    if not is_op(op):
        return None
    args = [as_operand(one) for one in _without_none(op, args)]
    args = [_as_taken(op, place, one) for place, one in enumerate(args)]
    keywords = {_named_by_torch(op, name): one for name, one in keywords.items()}
    keywords = {name: _as_taken(op, name, one) for name, one in keywords.items()}
    args, keywords = _by_name(op.rpartition(".")[2], args, keywords)
    args = beside_known(ctx, op, args)
    answer = _asked(op, args, keywords, ctx.ambient("region"), default_dtypes(ctx))
    if isinstance(answer, Refusal) and (index := _assumed_index(ctx, op, args)) is not None:
        args = [*args[:index], Tensor(_INT64, None, getattr(args[index], "rank", None)), *args[index + 1 :]]
        answer = _asked(op, args, keywords, ctx.ambient("region"), default_dtypes(ctx))
    operands = args[1:] if args and args[0] == NONE and _is_layer(op) else args
    if ctx.recorder is not None and _is_unsafe(ctx, op, operands, keywords):
        ctx.recorder.operation(op, operands, keywords, None, UNSAFE, ctx)
        return answer if isinstance(answer, Value) else TOP
    if isinstance(answer, Refusal):
        mended = _as_if_mended(ctx, op, args, keywords)
        # what refuses float32 as well is given something else than is assumed
        if mended is not None or not _takes_nothing_else(args, _takes_assumed(ctx, args, keywords)):
            tell_refusal(ctx, op, operands, answer.message, keywords)
        if mended is None:
            raise Unfit if ctx.ambient(GOES_ON) == Const(True) else NeverReturns
        return shapes.with_shape(op, mended, args, keywords, settings)
    if isinstance(answer, Tensor) and is_anything(answer.dtypes):
        answer = Tensor()
    if answer == TOP:  # there may be no kernel for it on the CPU alone
        answer = _as_if_mended(ctx, op, args, keywords) or TOP
    if answer == TOP:
        named = dict(zip(keywords, _as_floats(keywords.values()), strict=True))
        answer = _of_some_dtype(_asked(op, _as_floats(args), named, ctx.ambient("region"), default_dtypes(ctx)))
    made = shapes.with_shape(op, answer, args, keywords, settings)
    result = marked(ctx, op, (*args, *keywords.values()), made)
    if ctx.recorder is not None:
        error = _of_class_weights(ctx, operands, keywords) if op in _CROSS_ENTROPY else None
        ctx.recorder.operation(op, operands, keywords, None if error else result, error, ctx)
    return result


def _as_taken(op: str, place: int | str, value: Value) -> Value:
    """An argument that might be a tensor, where the op takes none, as `dim` of `x.sum(dim)`: then it is a number."""
    if not isinstance(value, (Tensor, Unknown)) or (value.dtypes is None and value.symbol is None):
        return value
    kinds = load().kinds_at(op, place)
    if kinds == _NO_OPERAND:
        return TOP
    return NO_TENSOR if kinds == _NUMBER_ALONE else value


def _named_by_torch(op: str, name: str) -> str:
    """The name of an argument that torch also takes by NumPy's name: `x.sum(axis=-1)`."""
    known = _OF_NUMPY.get(name)
    return name if known is None or load().kinds_at(op, name) is not None else known


_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}
_NO_OPERAND: frozenset[str] = frozenset()
_NUMBER_ALONE = frozenset("n")


def tell_refusal(
    ctx: Context, op: str, operands: Sequence[Value], message: str, keywords: Mapping[str, Value] | None = None
) -> None:
    """Record that an op raises for its operands."""
    if ctx.recorder is not None:
        ctx.recorder.operation(op, operands, keywords or {}, None, message, ctx)
    else:
        ctx.semantics.tells()  # to whom it is recorded later


def _as_if_mended(ctx: Context, op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | None:
    """What an op that lacks a kernel for the assumed dtype gives once it computes in float32 and casts back: what stands
    behind it is asked about as well. None where nothing is assumed, and for an op that raises whatever is."""
    dtypes = _takes_assumed(ctx, args, keywords)
    if not dtypes:
        return None
    named = {name: _with_floats(one) for name, one in keywords.items()}
    answer = _asked(op, [_with_floats(one) for one in args], named, ctx.ambient("region"), default_dtypes(ctx))
    return None if isinstance(answer, Refusal) else _narrowed(answer, dtypes)


def _takes_assumed(ctx: Context, args: Sequence[Value], keywords: Mapping[str, Value]) -> frozenset[str]:
    """The assumed dtype, where that is a floating one other than float32 and an operand has it; nothing elsewhere."""
    assumed = ctx.ambient("assumed")
    dtypes = frozenset({str(assumed.value)}) if isinstance(assumed, Const) else frozenset()
    given = any(_has(one, dtypes) for one in (*args, *keywords.values()))
    return dtypes if given and dtypes <= _ALL_FLOATS - _SINGLE else frozenset()


def _takes_nothing_else(args: Sequence[Value], assumed: frozenset[str]) -> bool:
    """Are all tensors that an op is given of the assumed dtype?"""
    return bool(assumed) and all(one.dtypes == assumed for one in args if isinstance(one, (Tensor, Unknown)))


def _has(value: Value, dtypes: frozenset[str]) -> bool:
    """Is it a tensor of some dtypes, or does it hold one?"""
    if isinstance(value, Tuple):
        return any(_has(one, dtypes) for one in value.items)
    return _has(value.item, dtypes) if isinstance(value, Many) else isinstance(value, Tensor) and value.dtypes == dtypes


def _with_floats(value: Value) -> Value:
    """A value with float32 in the place of floating dtypes, in a list of tensors as well."""
    if isinstance(value, Tuple):
        return Tuple(tuple(map(_with_floats, value.items)), value.names)
    if isinstance(value, Many):
        return Many(_with_floats(value.item))
    if isinstance(value, Tensor) and value.dtypes and value.dtypes <= _ALL_FLOATS:
        return Tensor(_SINGLE, None, value.rank, device=value.device)
    return value


def _narrowed(value: Value, dtypes: frozenset[str]) -> Value:
    """What was computed in float32, cast to other dtypes."""
    if isinstance(value, Tuple):
        return Tuple(tuple(_narrowed(one, dtypes) for one in value.items), value.names)
    if isinstance(value, Many):
        return Many(_narrowed(value.item, dtypes))
    if isinstance(value, Tensor) and value.dtypes == _SINGLE:
        return Tensor(dtypes, None, value.rank, device=value.device)
    return value


_SINGLE = frozenset({"float32"})


def _assumed_index(ctx: Context, op: str, args: Sequence[Value]) -> int | None:
    """The place of an operand that is looked up by, where it only has a dtype because all that callers give is assumed to
    have it: what is used as an index is one."""
    assumed = ctx.ambient("assumed")
    if not isinstance(assumed, Const):
        return None
    last = op.rpartition(".")[2].rstrip("_")
    place = _INDEX_AT.get(last)
    index = args[place] if place is not None and place < len(args) else None
    return place if isinstance(index, Tensor) and index.dtypes == frozenset({str(assumed.value)}) else None


def _without_none(op: str, args: Sequence[Value]) -> Sequence[Value]:
    """The operands where the first may be None, and torch raises if it is."""
    place = 1 if _is_layer(op) else 0
    first = args[place] if place < len(args) else None
    if not isinstance(first, Union) or NONE not in first.choices:
        return args
    tensors = join_all(one for one in first.choices if one != NONE) or first
    return [*args[:place], tensors, *args[place + 1 :]]


def _as_floats(values: Iterable[Value]) -> list[Value]:
    """The same with tensors of float32."""
    return [
        Tensor(frozenset({"float32"}), None, one.rank, device=one.device) if isinstance(one, Tensor) else one
        for one in values
    ]


def _of_some_dtype(value: Value | Refusal) -> Value:
    """Tensors as many as there are for float32, whose dtypes are not known: of what kind a result is, no dtype decides."""
    if isinstance(value, Tensor):
        return Tensor()
    if isinstance(value, Tuple) and all(isinstance(item, Tensor) for item in value.items):
        return Tuple(tuple(Tensor() for _ in value.items), value.names)
    return TOP


def _by_name(
    last: str, args: Sequence[Value], keywords: Mapping[str, Value]
) -> tuple[Sequence[Value], Mapping[str, Value]]:
    """The operands as the table knows them: the dimensions of a variance by name, for a bool may stand in their place, the
    condition of `where` as the bool that it is, logits as the floating numbers that they are, or it raises."""
    second = args[1] if len(args) > 1 else None
    is_dim = isinstance(second, Tuple) or (isinstance(second, Const) and type(second.value) is int)
    if last in _SPREADS and is_dim:
        return args[:1], {**keywords, **dict(zip(("dim", "unbiased", "keepdim"), args[1:], strict=False))}
    if last in _JOINING and args and isinstance(args[0], Tuple):
        return [Tuple(tuple(map(_with_dimensions, args[0].items))), *args[1:]], keywords
    first = args[0] if args else None
    if last in _OF_LOGITS and isinstance(first, Tensor) and first.dtypes is None and first.symbol is None:
        return [Tensor(_ALL_FLOATS, None, first.rank, first.range, first.device, first.extra), *args[1:]], keywords
    if last == "where" and len(args) == 3 and isinstance(args[0], Tensor) and args[0].dtypes is None:
        return [Tensor(_BOOL, None, args[0].rank, device=args[0].device), *args[1:]], keywords
    return args, keywords


def _with_dimensions(value: Value) -> Value:
    """A tensor that has dimensions, if it is not known to."""
    if isinstance(value, Tensor) and value.rank is None:
        return Tensor(value.dtypes, value.symbol, -1, value.range, value.device)
    return value


_INT64 = frozenset({"int64"})
_INDEX_AT = {
    **dict.fromkeys(("gather", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill"), 2),
    "index_select": 2,
    **dict.fromkeys(("Embedding", "EmbeddingBag", "take", "take_along_dim", "nll_loss", "NLLLoss"), 1),
    **dict.fromkeys(("multi_margin_loss", "MultiMarginLoss"), 1),
    **dict.fromkeys(("embedding", "embedding_bag", "one_hot"), 0),
}
"""Where the indices of an op stand among its operands, a layer's weight first; those of classes among them."""
_JOINING = frozenset({"cat", "concat", "concatenate"})
"""They refuse tensors without dimensions."""
_SPREADS = frozenset({"var", "std", "var_mean", "std_mean"})
_OF_LOGITS = frozenset({"cross_entropy", "nll_loss"})
_BOOL = frozenset({"bool"})


def _is_layer(op: str) -> bool:
    """Is it a layer of torch.nn? The table takes its weight first, or None where it has none."""
    return op.startswith("torch.nn.") and op[9:10].isupper()


_CROSS_ENTROPY = frozenset({"torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss"})


def _of_class_weights(ctx: Context, args: Sequence[Value], keywords: Mapping[str, Value]) -> str | None:
    """What torch says where the weight of the classes has another dtype than the logits: of classes, as `nll_loss`."""
    target = args[1] if len(args) > 1 else keywords.get("target")
    weight = args[2] if len(args) > 2 else keywords.get("weight")
    if not isinstance(target, Tensor) or target.dtypes != frozenset({"int64"}) or not isinstance(weight, Tensor):
        return None
    return refusal(ctx, "torch.nn.functional.nll_loss", args[:2], {"weight": weight})


def refusal(ctx: Context, op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> str | None:
    """What torch says where it raises for all that the operands can be; None where it need not."""
    answer = _asked(op, args, keywords, ctx.ambient("region"), default_dtypes(ctx)) if is_op(op) else None
    return answer.message if isinstance(answer, Refusal) else None


def refusal_as(op: str, args: Sequence[Value], keywords: Mapping[str, Value], region: Value, dtype: str) -> str | None:
    """What torch says where the floating dtypes that callers decide are one and the same, and the default dtype is float32,
    outside of autocast unless a region is in view; None where it need not raise then."""
    args = [_assumed(value, dtype) for value in _with_indices(op, args)]
    if op == "torch.Tensor.__setitem__" and isinstance(args[0], Tensor):
        return indexing.refused_write(args[0], args[1], args[2])
    known = {name: _assumed(value, dtype) for name, value in keywords.items()}
    outside = NONE if isinstance(region, Unknown) else region
    answer = _asked(op, args, known, outside, frozenset({"float32"})) if is_op(op) else None
    return answer.message if isinstance(answer, Refusal) else None


_BY_INDEX = frozenset(
    {"gather", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill", "index_select"}
)


def _with_indices(op: str, args: Sequence[Value]) -> Sequence[Value]:
    """The operands, where what is looked up by holds whole numbers, if nothing is known of it."""
    name = op.rpartition(".")[2]
    place = 1 if name == "__setitem__" else 2 if name.rstrip("_") in _BY_INDEX else len(args)
    index = args[place] if place < len(args) else None
    if not isinstance(index, Tensor) or index.dtypes is not None:
        return args
    if name == "__setitem__" and (not isinstance(args[2], Tensor) or args[2].rank in (0, 1)):
        return args  # it may be a mask, through which one element is cast
    rank = -1 if index.rank is None else index.rank
    return [*args[:place], Tensor(frozenset({"int64"}), None, rank), *args[place + 1 :]]


def _assumed(value: Value, dtype: str) -> Value:
    """A value, where callers' dtypes are a given one."""
    if isinstance(value, Tuple):
        return Tuple(tuple(_assumed(item, dtype) for item in value.items))
    if not isinstance(value, Tensor):
        return value
    dtypes = value.dtypes
    if dtypes is None and value.symbol is not None:
        dtypes = frozenset({reduce(_promoted, value.symbol.met, dtype)})
    elif dtypes == _ALL_FLOATS:
        dtypes = frozenset({"float32"})
    return Tensor(dtypes, None, value.rank, value.range, value.device)


def _promoted(one: str, other: str) -> str:
    return promote(one, other) or one


UNSAFE = "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast."
"""What torch says of ops that a region refuses."""


def _is_unsafe(ctx: Context, op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """Does the region in force refuse the op, on a GPU at least if the device is not known?"""
    regions = _region_for(ctx.ambient("region"), shapes.device_of_operands(args, keywords))
    return regions is not None and all(
        region is not None and load().autocast(region.device or "cuda", op) == "banned" for region in regions
    )


def _asked(
    op: str, args: Sequence[Value], keywords: Mapping[str, Value], region: Value, defaults: frozenset[str]
) -> Value | Refusal:
    as_given = _are_as_given((*args, *keywords.values()))
    operands = tuple(_operand(value, as_given) for value in (*args, *keywords.values()))
    device = shapes.device_of_operands(args, keywords)
    if device is None and args and op.startswith("torch.nn."):
        # Weights lie where the input does, or torch raises; a layer's come before its input, a function's behind.
        device = shapes.device_of_operands(args[:1] if op.startswith("torch.nn.functional.") else args[-1:], {})
    regions = _region_for(region, device)
    return table_answer(Question(op, operands, tuple(keywords), regions, defaults, device))


def _region_for(region: Value, device: str | None) -> tuple[Region | None, ...] | None:
    """The regions that the op can run in; None where nobody knows: a caller may have opened one."""
    if isinstance(region, Const) and region.value is None:
        return (None,)
    if isinstance(region, Region):
        if region.enabled is False or (device is not None and region.device not in (None, device)):
            return (None,)
        on = Region(region.device, region.dtype, True)
        return (on,) if region.enabled else (on, None)
    if isinstance(region, Union):
        found: list[Region | None] = []
        for one in region.choices:
            these = _region_for(one, device)
            if these is None:
                return None
            found += [each for each in these if each not in found]
        return tuple(found)
    return None


def _are_as_given(values: Sequence[Value]) -> bool:
    """Have tensors whose dtype the caller decides the dimensions that it has given them, and the others some? Then the
    promotion of all is that of what was given, dimensions or not: it is asked as if they had some."""
    for value in values:
        if isinstance(value, Tuple):
            if not _are_as_given(value.items):
                return False
        elif isinstance(value, Tensor):
            if value.symbol is not None and value.dtypes is None:
                shaped = value.rank not in (None, 0) and all(atom.shaped for atom in value.symbol.of)
                if (value.symbol.reshaped and not shaped) or value.rank == 0:
                    return False
            elif value.rank in (None, 0) and (value.dtypes is None or value.dtypes & _FLOATING):
                return False
    return True


_FLOATING = _ALL_FLOATS | COMPLEX


def _operand(value: Value, as_given: bool) -> Operand:
    """What an argument can be, to the table."""
    kind = type(value)
    if kind is Tensor:
        assert isinstance(value, Tensor)
        ranks = (2, 1) if value.rank is None else (1,) if value.rank == 0 else (2,)
        if value.dtypes is None:
            if value.symbol is not None:
                ranks = (2,) if as_given else ranks if value.rank in (None, 0) else (2, 1)
                return Operand(tuple(("?", rank) for rank in ranks), value.symbol)
            return Operand(tuple((dtype, rank) for dtype in ARITHMETIC for rank in ranks))
        return Operand(tuple((dtype, rank) for dtype in sorted(value.dtypes) for rank in ranks))
    if kind is Const:
        assert isinstance(value, Const)
        plain = isinstance(value.value, (bool, int, float, complex, str, type(None)))
        return Operand((_sample(value.value) if plain else UNKNOWN,))
    if kind is Number:
        assert isinstance(value, Number)
        return Operand((_SAMPLES[value.category],))
    if kind is Dtype:
        assert isinstance(value, Dtype)
        if value.dtypes is not None:
            return Operand(tuple((dtype, DTYPE) for dtype in sorted(value.dtypes)))
        return Operand((("?", DTYPE),), value.symbol) if value.symbol is not None else Operand((UNKNOWN,))
    if isinstance(value, Array) and value.scalar is True and value.dtypes is not None and len(value.dtypes) == 1:
        category = DTYPES[next(iter(value.dtypes))].category
        return Operand((_SAMPLES[category],))
    if value == NO_TENSOR:
        return Operand((_SAMPLES[Category.INTEGER], _SAMPLES[Category.FLOAT]))
    if isinstance(value, Union):
        inner = [_operand(one, as_given) for one in value.choices]
        if all(one.symbol is None for one in inner):
            return Operand(tuple(sorted({option for one in inner for option in one.options}, key=repr)))
        return Operand((UNKNOWN,))
    if isinstance(value, Tuple):
        return _of_items(value, as_given)
    if isinstance(value, Many):
        item = _operand(value.item, as_given)
        if isinstance(value.item, Number):
            return Operand(((_SAMPLES[Category.INTEGER],) * 2,))
        if isinstance(value.item, Tensor) and (item.symbol is not None or len(item.options) == 1):
            return Operand(tuple((option, option) for option in item.options), item.symbol)
    return Operand((UNKNOWN,))


def _of_items(value: Tuple, as_given: bool) -> Operand:
    items = [_operand(item, as_given) for item in value.items]
    if value.items and all(isinstance(item, (Number, Const)) for item in value.items):
        return Operand((tuple(item.options[0] for item in items),))
    symbols = {item.symbol for item in items}
    one = reduce(join_symbols, symbols) if items else None
    if one is not None or (items and symbols == {None} and all(len(item.options) == 1 for item in items)):
        # of one dtype all, whichever have dimensions
        return Operand((tuple(item.options[0] for item in items),), one)
    alike = {item.dtypes if isinstance(item, Tensor) else None for item in value.items}
    if len(alike) == 1 and symbols == {None}:
        dtypes = alike.pop()
        if dtypes is not None and len(dtypes) == 1:  # dimensions decide nothing where all are of one dtype
            return Operand((tuple((dtype, 2) for _ in items for dtype in dtypes),))
    combined = 1
    for item in items:
        combined *= len(item.options)
    if items and symbols == {None} and combined <= 64 and all(isinstance(item, Tensor) for item in value.items):
        return Operand(tuple(product(*(item.options for item in items))))
    return Operand((UNKNOWN,))


def _sample(value: object) -> object:
    """A number that stands for those of its category: nothing else of one decides a dtype."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return _SAMPLES[Category.INTEGER]
    return 0.5 if isinstance(value, float) else 1j


_SAMPLES: dict[Category, object] = {
    Category.BOOL: True,
    Category.INTEGER: 2,
    Category.FLOAT: 0.5,
    Category.COMPLEX: 1j,
}
"""Numbers that stand for those of their category. No two of them are equal, as 1 and True are."""
