"""torch's operators, by the learned table: it is asked with every dtype that the operands can have.

Combinations with which torch raises are no answer: a program that gets past the call had another. Where the caller decides
a dtype, every floating one stands in for it: what comes out the same as what went in is still the caller's, and what
always comes out alike is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import ARITHMETIC, COMPLEX, DTYPES, Category
from dtlint.dtypes.promotion import promote
from dtlint.dtypes.table import DTYPE, UNKNOWN, Outcome, load
from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.lattice import join, join_symbols
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
    Symbol,
    Tensor,
    Tuple,
    Union,
    Value,
)
from dtlint.infer.models import shapes
from dtlint.infer.models.autocast_policies import as_cast, policies_for
from dtlint.infer.models.ranks import is_elementwise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Atom, Dtypes

__all__ = ["ask", "default_dtypes", "is_op", "refusal"]

_MOST_QUESTIONS = 400
"""Combinations of operands that are asked for one call; past it, the result is unknown."""
_ATOMS_AS = ("float32", "float16", "bfloat16", "float64")
"""What stands in for a dtype that the caller decides."""
_MOST_ATOMS = 2
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


@dataclass(unsafe_hash=True, slots=True)
class _Operand:
    """What the table is told of an argument: what it can be, one by one, and what symbol it has."""

    options: tuple[Any, ...]
    symbol: Symbol | None = None


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
        NeverReturns: torch raises for all that the operands can be.
    """
    if not is_op(op):
        return None
    answer = _asked(ctx, op, args, keywords)
    operands = args[1:] if args and args[0] == NONE and _is_layer(op) else args
    if ctx.recorder is not None and _is_unsafe(ctx, op, operands, keywords):
        ctx.recorder.operation(op, operands, keywords, None, UNSAFE, ctx)
        return answer if isinstance(answer, Value) else TOP
    if isinstance(answer, _Refusal):
        if ctx.recorder is not None:
            ctx.recorder.operation(op, operands, keywords, None, answer.message, ctx)
        raise NeverReturns
    if isinstance(answer, Tensor) and _is_anything(answer.dtypes):
        answer = Tensor()
    result = shapes.with_shape(op, answer, args, keywords, settings)
    if ctx.recorder is not None:
        error = _of_class_weights(ctx, operands, keywords) if op in _CROSS_ENTROPY else None
        ctx.recorder.operation(op, operands, keywords, None if error else result, error, ctx)
    return result


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
    answer = _asked(ctx, op, args, keywords) if is_op(op) else None
    return answer.message if isinstance(answer, _Refusal) else None


UNSAFE = "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast."
"""What torch says of ops that a region refuses."""


def _is_unsafe(ctx: Context, op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
    """Does the region in force refuse the op, on a GPU at least if the device is not known?"""
    regions = _region_for(ctx.ambient("region"), shapes.device_of_operands(args, keywords))
    return regions is not None and all(
        region is not None and load().autocast(region.device or "cuda", op) == "banned" for region in regions
    )


def _asked(ctx: Context, op: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value | _Refusal:
    region = ctx.ambient("region")
    as_given = _are_as_given((*args, *keywords.values()))
    operands = tuple(_operand(value, as_given) for value in args)
    named = tuple((name, _operand(value, as_given)) for name, value in keywords.items())
    device = shapes.device_of_operands(args, keywords)
    key = op, operands, named, region, default_dtypes(ctx), device
    if key not in _ANSWERS:
        if len(_ANSWERS) > _MOST_KEPT:
            _ANSWERS.clear()
        _ANSWERS[key] = _answer(op, operands, named, _region_for(region, device), key[4], device)
    return _ANSWERS[key]


@dataclass(slots=True)
class _Refusal:
    """torch raises for all that the operands can be.

    Attributes:
        message: what it says in one of these cases.
    """

    message: str


def _is_anything(dtypes: Dtypes) -> bool:
    """Are these what is known of the result of moving what is not known: anything, quantized dtypes included?"""
    categories = {DTYPES[dtype].category for dtype in dtypes or ()}
    return len(dtypes or ()) > 6 and {Category.INTEGER, Category.FLOAT} <= categories


_MOST_KEPT = 100_000
_ANSWERS: dict[object, Value | _Refusal] = {}
"""Answers by question. The table never changes, so neither do they."""

Regions = tuple["Region | str | None", ...]


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


_ANYWHERE = tuple(Region(device, dtype) for device in ("cpu", "cuda") for dtype in ("float16", "bfloat16"))
"""What a caller may have opened."""


def _are_as_given(values: Sequence[Value]) -> bool:
    """Have tensors whose dtype the caller decides the dimensions that it has given them, and the others some? Then the
    promotion of all is that of what was given, dimensions or not: it is asked as if they had some."""
    for value in values:
        if isinstance(value, Tuple):
            if not _are_as_given(value.items):
                return False
        elif isinstance(value, Tensor):
            if value.symbol is not None and value.dtypes is None:
                if value.symbol.reshaped or value.rank == 0:
                    return False
            elif value.rank in (None, 0) and (value.dtypes is None or value.dtypes & _FLOATING):
                return False
    return True


_FLOATING = _ALL_FLOATS | COMPLEX


def _operand(value: Value, as_given: bool) -> _Operand:
    """What an argument can be, to the table."""
    kind = type(value)
    if kind is Tensor:
        assert isinstance(value, Tensor)
        ranks = (2, 1) if value.rank is None else (1,) if value.rank == 0 else (2,)
        if value.dtypes is None:
            if value.symbol is not None:
                ranks = (2,) if as_given else ranks if value.rank in (None, 0) else (2, 1)
                return _Operand(tuple(("?", rank) for rank in ranks), value.symbol)
            return _Operand(tuple((dtype, rank) for dtype in ARITHMETIC for rank in ranks))
        return _Operand(tuple((dtype, rank) for dtype in sorted(value.dtypes) for rank in ranks))
    if kind is Const:
        assert isinstance(value, Const)
        plain = isinstance(value.value, (bool, int, float, complex, str, type(None)))
        return _Operand((_sample(value.value) if plain else UNKNOWN,))
    if kind is Number:
        assert isinstance(value, Number)
        return _Operand((_SAMPLES[value.category],))
    if kind is Dtype:
        assert isinstance(value, Dtype)
        if value.dtypes is not None:
            return _Operand(tuple((dtype, DTYPE) for dtype in sorted(value.dtypes)))
        return _Operand((("?", DTYPE),), value.symbol) if value.symbol is not None else _Operand((UNKNOWN,))
    if isinstance(value, Array) and value.scalar is True and value.dtypes is not None and len(value.dtypes) == 1:
        category = DTYPES[next(iter(value.dtypes))].category
        return _Operand((_SAMPLES[category],))
    if value == NO_TENSOR:
        return _Operand((_SAMPLES[Category.INTEGER], _SAMPLES[Category.FLOAT]))
    if isinstance(value, Union):
        inner = [_operand(one, as_given) for one in value.choices]
        if all(one.symbol is None for one in inner):
            return _Operand(tuple(sorted({option for one in inner for option in one.options}, key=repr)))
        return _Operand((UNKNOWN,))
    if isinstance(value, Tuple):
        return _of_items(value, as_given)
    if isinstance(value, Many):
        item = _operand(value.item, as_given)
        if isinstance(value.item, Number):
            return _Operand(((1, 1),))
        if isinstance(value.item, Tensor) and (item.symbol is not None or len(item.options) == 1):
            return _Operand(tuple((option, option) for option in item.options), item.symbol)
    return _Operand((UNKNOWN,))


def _of_items(value: Tuple, as_given: bool) -> _Operand:
    items = [_operand(item, as_given) for item in value.items]
    if value.items and all(isinstance(item, (Number, Const)) for item in value.items):
        return _Operand((tuple(item.options[0] for item in items),))
    symbols = {item.symbol for item in items}
    one = reduce(join_symbols, symbols) if items else None
    if one is not None or (items and symbols == {None} and all(len(item.options) == 1 for item in items)):
        # of one dtype all, whichever have dimensions
        return _Operand((tuple(item.options[0] for item in items),), one)
    combined = 1
    for item in items:
        combined *= len(item.options)
    if items and symbols == {None} and combined <= 64 and all(isinstance(item, Tensor) for item in value.items):
        return _Operand(tuple(product(*(item.options for item in items))))
    return _Operand((UNKNOWN,))


def _sample(value: object) -> object:
    """A number that stands for those of its category: nothing else of one decides a dtype."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return 1
    return 0.5 if isinstance(value, float) else 1j


_SAMPLES: dict[Category, object] = {
    Category.BOOL: True,
    Category.INTEGER: 1,
    Category.FLOAT: 0.5,
    Category.COMPLEX: 1j,
}


def _answer(
    op: str,
    operands: tuple[_Operand, ...],
    named: tuple[tuple[str, _Operand], ...],
    regions: tuple[Region | None, ...] | None,
    defaults: frozenset[str],
    device: str | None,
) -> Value | _Refusal:
    """The result for all combinations, or that there is none."""
    every = (*operands, *(operand for _, operand in named))
    atoms: list[Atom] = []
    for operand in every:
        if operand.symbol is not None:
            atoms += [atom for atom in sorted(operand.symbol.of, key=lambda one: one.key) if atom not in atoms]
    if len(atoms) > _MOST_ATOMS:
        return TOP
    outside = regions is None
    tried: tuple[Region | None, ...] = (None,) if regions is None else regions
    found: list[tuple[dict[Atom, str], Value]] = []
    refused = _Refusal("")
    for assigned in product(_ATOMS_AS, repeat=len(atoms)):
        chosen = dict(zip(atoms, assigned, strict=True))
        value = _with_atoms(op, operands, named, chosen, tried, defaults, device)
        if value is None:
            return TOP
        if isinstance(value, _Refusal):
            refused = value
        else:
            found.append((chosen, value))
    whole = _of_whole_numbers(op, operands, named, atoms, tried, defaults, device)
    if not found:
        if whole:
            known = [value for _, value in whole if value is not None]
            return _joined(known) if len(known) == len(whole) else TOP
        if outside and _runs_somewhere(op, operands, named, atoms, defaults, device):
            return TOP
        return refused
    symbols = [operand.symbol for operand in every if operand.symbol is not None]
    result = _restricted(_abstracted(found, symbols), whole, symbols)
    if outside and _is_touched(op, operands, named, defaults, found, device):
        result = _only_outside(result)
    return result


_WHOLE = ("int64", "int32", "bool")
"""What stands in for dtypes of the caller's that are not floating."""
_Whole = list[tuple["dict[Atom, str]", "Value | None"]]
"""What the op gives for each choice of dtypes of which some are not floating; None: that is not known."""


def _of_whole_numbers(
    op: str,
    operands: tuple[_Operand, ...],
    named: tuple[tuple[str, _Operand], ...],
    atoms: list[Atom],
    regions: tuple[Region | None, ...],
    defaults: frozenset[str],
    device: str | None,
) -> _Whole:
    """What the op gives where the caller's dtypes are not all floating, as far as they may be something else."""
    found: _Whole = []
    for assigned in product(*(("float32",) if atom.floating else ("float32", *_WHOLE) for atom in atoms)):
        if not set(assigned) & set(_WHOLE):
            continue
        chosen = dict(zip(atoms, assigned, strict=True))
        value = _with_atoms(op, operands, named, chosen, regions, defaults, device)
        if not isinstance(value, _Refusal):
            found.append((chosen, value))
    return found


def _joined(values: list[Value]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result


def _restricted(result: Value, whole: _Whole, symbols: list[Symbol]) -> Value:
    """What is known for floating dtypes, restricted to what holds for whole numbers and truths, too, or to where it holds."""
    if isinstance(result, Tensor):
        given = [(chosen, value.dtypes if isinstance(value, Tensor) else None) for chosen, value in whole]
        symbol = result.symbol
        if symbol is not None:
            least = max((_least(symbol, given), *(one.least for one in symbols)))
            outside = any(one.outside for one in symbols)
            reshaped = any(one.reshaped for one in symbols)
            return Tensor(result.dtypes, Symbol(symbol.of, symbol.met, least, outside, reshaped))
        dtypes: Dtypes = result.dtypes
        for _, these in given:
            dtypes = None if dtypes is None or these is None else dtypes | these
        return Tensor(dtypes)
    if isinstance(result, Tuple):
        items = []
        for place, item in enumerate(result.items):
            parts: _Whole = [(chosen, _item(value, place, len(result.items))) for chosen, value in whole]
            items.append(_restricted(item, parts, symbols))
        return Tuple(tuple(items))
    if isinstance(result, Many):
        inner: _Whole = [(chosen, value.item if isinstance(value, Many) else None) for chosen, value in whole]
        return Many(_restricted(result.item, inner, symbols))
    return result


def _item(value: Value | None, place: int, count: int) -> Value | None:
    return value.items[place] if isinstance(value, Tuple) and len(value.items) == count else None


def _least(symbol: Symbol, whole: Sequence[tuple[dict[Atom, str], Dtypes]]) -> Category:
    """The least category of atoms for which a symbol holds."""
    wrong = [chosen for chosen, dtypes in whole if dtypes != frozenset({_dtype_of(symbol, chosen)})]
    if not wrong:
        return Category.BOOL
    return Category.INTEGER if all("bool" in chosen.values() for chosen in wrong) else Category.FLOAT


def _with_atoms(
    op: str,
    operands: tuple[_Operand, ...],
    named: tuple[tuple[str, _Operand], ...],
    chosen: dict[Atom, str],
    regions: tuple[Region | None, ...],
    defaults: frozenset[str],
    device: str | None,
) -> Value | _Refusal | None:
    """The join of what all combinations give where the caller's dtypes are these; None: unknown."""
    options = [_instances(operand, chosen) for operand in (*operands, *(one for _, one in named))]
    count = 1
    for option in options:
        count *= len(option)
    if count > _MOST_QUESTIONS:
        return None
    table, names, places = load(), [name for name, _ in named], len(operands)
    result: Value | None = None
    unknown = False
    refused = _Refusal("")
    for region in regions:
        for given in product(*options):
            policies = policies_for(table, op, region, given)
            if policies is None:
                return None
            for policy, default in product(policies, sorted(defaults)):
                now = [as_cast(argument, policy, region, given) for argument in given]
                outcome = _called(op, now[:places], dict(zip(names, now[places:], strict=True)), default)
                if outcome.error is not None:
                    if (
                        outcome.is_of_cpu and device != "cpu" and not _decomposes(op, given)
                    ):  # the table was learned there; a GPU may have the kernel
                        unknown = True
                    refused = _Refusal(outcome.error)
                    continue
                if not outcome.known:
                    agreed = _agreed(op, now)
                    if agreed is None:
                        promotes = is_elementwise(op) and _mixes(given)
                        unknown = unknown or promotes or not _supposes_0_dim(given, options)
                        continue
                    value: Value = Tensor(frozenset({agreed}))
                else:
                    value = _value(outcome.result)
                result = value if result is None else join(result, value)
    if unknown:
        return None
    return refused if result is None else result


def _called(op: str, args: list[Any], keywords: dict[str, Any], default: str) -> Outcome:
    """The table's answer. It was learned with the default dtypes float32 and float64: what these do not change, no other
    changes."""
    table = load()
    outcome = table.call(op, args, keywords, default=default)
    if outcome.known or outcome.error is not None or default not in ("float16", "bfloat16"):
        return outcome
    single, double = (table.call(op, args, keywords, default=other) for other in ("float32", "float64"))
    return single if single == double else outcome


def _instances(operand: _Operand, chosen: dict[Atom, str]) -> tuple[Any, ...]:
    """The options of an operand where the caller's dtypes are chosen."""
    if operand.symbol is None:
        return tuple(list(option) if _is_list(option) else option for option in operand.options)
    dtype = _dtype_of(operand.symbol, chosen)
    made: list[Any] = []
    for option in operand.options:
        if _is_list(option):
            made.append([(dtype if item[0] == "?" else item[0], item[1]) for item in option])
        else:
            made.append((dtype, option[1]))
    return tuple(made)


def _is_list(option: object) -> bool:
    if not isinstance(option, tuple):
        return False
    return not (len(option) == 2 and isinstance(option[0], str) and isinstance(option[1], int))


def _dtype_of(symbol: Symbol, chosen: dict[Atom, str]) -> str:
    """What a symbol's dtype is where the atoms' are chosen."""
    dtypes = [*(chosen[atom] for atom in symbol.of), *symbol.met]
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promote(result, dtype) or result
    return result


_DECOMPOSITIONS = frozenset(
    {
        "cholesky",
        "det",
        "eig",
        "eigh",
        "eigvals",
        "eigvalsh",
        "inv",
        "inv_ex",
        "inverse",
        "ldl_factor",
        "logdet",
        "lstsq",
    }
    | {"lu", "lu_factor", "matrix_rank", "pinv", "pinverse", "qr", "slogdet", "solve", "svd", "svdvals", "cholesky_ex"}
)
"""Ops that torch documents for float32, float64 and their complex counterparts alone, whatever the device."""


def _decomposes(op: str, given: Sequence[Any]) -> bool:
    halves = any(isinstance(one, tuple) and one[:1] in (("float16",), ("bfloat16",)) for one in given)
    return halves and op.rpartition(".")[2] in _DECOMPOSITIONS


_PRODUCTS = frozenset({"addmm", "baddbmm", "addbmm", "addmv", "addr", "mm", "bmm", "matmul", "linear"})


def _agreed(op: str, given: Sequence[object]) -> str | None:
    """The one dtype of all operands of a product, if they have one: the table has not seen all of their shapes."""
    if op.rpartition(".")[2].rstrip("_") not in _PRODUCTS or any(one is UNKNOWN for one in given):
        return None
    dtypes = {one[0] for one in given if isinstance(one, tuple) and len(one) == 2 and one[1] != DTYPE}
    return dtypes.pop() if len(dtypes) == 1 else None


def _mixes(given: Sequence[object]) -> bool:
    """Are there operands of several dtypes?"""
    return len({one[0] for one in given if isinstance(one, tuple) and len(one) == 2 and one[1] != DTYPE}) > 1


def _supposes_0_dim(given: Sequence[Any], options: Sequence[tuple[Any, ...]]) -> bool:
    """Is an operand taken for 0-dim here that may as well have dimensions? What the table has not seen of 0-dim tensors is
    mostly what torch refuses for their shape."""
    return any(
        isinstance(one, tuple) and len(one) == 2 and one[1] == 1 and (one[0], 2) in option
        for one, option in zip(given, options, strict=True)
    )


def _value(result: object) -> Value:
    """A value of the table's result: a dtype, a tuple of results, a list of alike ones, or no tensor."""
    if isinstance(result, str):
        return Tensor(frozenset({result}))
    if isinstance(result, tuple):
        return Tuple(tuple(map(_value, result)))
    if isinstance(result, list):
        return Many(_value(result[0]))
    return TOP


def _abstracted(found: list[tuple[dict[Atom, str], Value]], symbols: list[Symbol]) -> Value:
    """What several instances have in common: the same dtype each time, or that of a symbol."""
    first = found[0][1]
    values = [value for _, value in found]
    if all(isinstance(value, Tensor) for value in values):
        return _one_tensor([(chosen, value) for chosen, value in found if isinstance(value, Tensor)], symbols)
    if isinstance(first, Tuple) and all(
        isinstance(value, Tuple) and len(value.items) == len(first.items) for value in values
    ):
        items = []
        for place in range(len(first.items)):
            items.append(_abstracted([(chosen, value.items[place]) for chosen, value in found], symbols))  # type: ignore[attr-defined]
        return Tuple(tuple(items))
    if isinstance(first, Many) and all(isinstance(value, Many) for value in values):
        return Many(_abstracted([(chosen, value.item) for chosen, value in found], symbols))  # type: ignore[attr-defined]
    result = first
    for value in values[1:]:
        result = join(result, value)
    return result


def _one_tensor(found: list[tuple[dict[Atom, str], Tensor]], symbols: list[Symbol]) -> Tensor:
    dtypes: Dtypes = frozenset()
    for _, tensor in found:
        dtypes = None if dtypes is None or tensor.dtypes is None else dtypes | tensor.dtypes
    if not symbols or (dtypes is not None and len(dtypes) == 1 and len(found) > 1):
        return Tensor(dtypes)
    for symbol in (*symbols, _promoted(symbols)):
        if all(tensor.dtypes == frozenset({_dtype_of(symbol, chosen)}) for chosen, tensor in found):
            return Tensor(None, symbol)
    for met in _ATOMS_AS:  # promoted with a dtype that is no symbol
        symbol = _promoted([*symbols, Symbol(frozenset(), frozenset({met}))])
        if all(tensor.dtypes == frozenset({_dtype_of(symbol, chosen)}) for chosen, tensor in found):
            return Tensor(None, symbol)
    # dtypes that were tried for the caller's are no bound: it may have another
    return Tensor(None)


def _promoted(symbols: list[Symbol]) -> Symbol:
    return Symbol(
        frozenset().union(*(symbol.of for symbol in symbols)),
        frozenset().union(*(symbol.met for symbol in symbols)),
    )


def _runs_somewhere(
    op: str,
    operands: tuple[_Operand, ...],
    named: tuple[tuple[str, _Operand], ...],
    atoms: list[Atom],
    defaults: frozenset[str],
    device: str | None,
) -> bool:
    """Does the op that raises outside autocast run in a region that the caller may have opened?"""
    chosen = dict.fromkeys(atoms, "float32")
    return any(
        not isinstance(_with_atoms(op, operands, named, chosen, (region,), defaults, device), _Refusal)
        for region in _ANYWHERE
    )


def _is_touched(
    op: str,
    operands: tuple[_Operand, ...],
    named: tuple[tuple[str, _Operand], ...],
    defaults: frozenset[str],
    found: list[tuple[dict[Atom, str], Value]],
    device: str | None,
) -> bool:
    """Does the op give something else in a region that the caller may have opened?"""
    for chosen, usual in found:
        for region in _ANYWHERE:
            if _with_atoms(op, operands, named, chosen, (region,), defaults, device) != usual:
                return True
    return False


def _only_outside(value: Value) -> Value:
    """What holds outside autocast alone: a symbol says so, and a known dtype is not known."""
    if isinstance(value, Tensor):
        symbol = value.symbol
        if symbol is not None:
            symbol = Symbol(symbol.of, symbol.met, symbol.least, True, symbol.reshaped)
        return Tensor(None, symbol)
    if isinstance(value, Tuple):
        return Tuple(tuple(map(_only_outside, value.items)))
    return Many(_only_outside(value.item)) if isinstance(value, Many) else value
