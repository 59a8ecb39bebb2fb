"""Dtypes that are not known, but decided by something that has a name: what promotion and torch's ops make of them.

A symbol stands for whatever floating dtype its atoms have. So an op is asked with every floating dtype in their place:
what comes out the same as what went in is still the symbol, and what always comes out alike is known.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from dtlint.dtypes.dtype import DTYPES, FLOATING, INTEGRAL, Category
from dtlint.dtypes.promotion import promote
from dtlint.infer.ops import KEEPING_DIMENSIONS, is_op, op_result
from dtlint.infer.refusals import refusal
from dtlint.infer.values import (
    UNKNOWN,
    Array,
    Atom,
    Constant,
    Dtype,
    DtypeOf,
    Items,
    Number,
    Symbol,
    Tensor,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Hashable, Mapping, Sequence

    from dtlint.infer.values import Autocast, Dtypes

__all__ = [
    "asked",
    "category_of",
    "is_floating",
    "lifted",
    "of_atom",
    "part_of",
    "promoted",
    "promoted_dtype",
    "same_dtype",
    "symbol_as_dtype",
    "symbol_of",
    "tensor_of",
]


def of_atom(atom: Atom) -> Symbol:
    """The dtype of one thing."""
    return Symbol(frozenset({atom}))


def tensor_of(value: Unknown) -> Tensor:
    """An unknown value that turns out to be a tensor."""
    dtypes = None if value.dtypes is None or len(value.dtypes) == len(DTYPES) else value.dtypes
    symbol = of_atom(value.atom) if value.atom is not None else None
    return Tensor(dtypes, under=value.under, scaled=value.scaled, symbol=symbol)


def symbol_of(value: Value | None) -> Symbol | None:
    """The symbol of a tensor, of a dtype, or of what is used as one."""
    if isinstance(value, (Tensor, DtypeOf)):
        return value.symbol
    if isinstance(value, Unknown) and value.atom is not None:
        return of_atom(value.atom)
    return None


def symbol_as_dtype(value: Value | None) -> Symbol | None:
    """The symbol of what is used as a dtype."""
    if isinstance(value, Unknown) and value.atom is not None:
        return of_atom(replace(value.atom, is_dtype=True))
    return symbol_of(value)


def lifted(tensor: Tensor, floor: Category) -> Tensor:
    """A tensor, made of at least that category where a symbol says what it is of."""
    symbol = tensor.symbol
    if symbol is None or symbol.floor >= floor:
        return tensor
    return tensor.but(symbol=symbol.but(floor=floor))


def part_of(tensor: Tensor) -> Tensor:
    """A tensor of its dtype that may have fewer dimensions."""
    symbol = tensor.symbol
    if symbol is not None and not symbol.reduced:
        return tensor.but(zero_dim=None, symbol=symbol.but(reduced=True))
    return tensor if tensor.zero_dim is None else tensor.but(zero_dim=None)


def same_dtype(left: Value, right: Value) -> bool | None:
    """Have two tensors one dtype, whatever floating dtype decides it? None when that cannot be told."""
    if not isinstance(left, Tensor) or not isinstance(right, Tensor):
        return None
    if left.dtypes is not None and right.dtypes is not None:
        if not left.dtypes & right.dtypes:
            return False
        return True if len(left.dtypes | right.dtypes) == 1 else None
    one, other = left.symbol, right.symbol
    if one is None or other is None:
        return None
    return (
        True if one.of == other.of and one.met == other.met and max(one.floor, other.floor) < Category.COMPLEX else None
    )


# -- promotion --------------------------------------------------------------------------------------------------------


def category_of(value: Value) -> Category | None:
    """The category that a Python number has in promotion; None for what is no known number."""
    if isinstance(value, Number):
        return value.category
    if isinstance(value, Array):  # torch takes NumPy's scalars for Python's numbers
        if value.scalar is not True or value.dtypes is None or len(value.dtypes) != 1:
            return None
        (dtype,) = value.dtypes
        # float64 and complex128 are Python's float and complex; of others only whole numbers are not read as floats
        whole = DTYPES[dtype].category is Category.INTEGER
        return Category.INTEGER if whole else Category.COMPLEX if dtype == "complex128" else Category.FLOAT
    number = value.value if isinstance(value, Constant) else None
    return _CATEGORIES.get(type(number))


_CATEGORIES: dict[type, Category] = {
    bool: Category.BOOL,
    int: Category.INTEGER,
    float: Category.FLOAT,
    complex: Category.COMPLEX,
}


def promoted(operands: Sequence[Value]) -> Symbol | None:
    """What decides the dtype of elementwise arithmetic on tensors and numbers, where one of them has a symbol."""
    of: frozenset[Atom] = frozenset()
    met: frozenset[str] = frozenset()
    floor = Category.BOOL
    widens = reduced = False
    for value in operands:
        if isinstance(value, Tensor):
            symbol = value.symbol
            if symbol is not None and (value.dtypes is None or len(value.dtypes) > 1):
                of |= symbol.of
                met |= symbol.met
                floor = max(floor, symbol.floor)
                widens = widens or symbol.widens
                reduced = reduced or symbol.reduced or value.zero_dim is True
                continue
            if value.dtypes is None or len(value.dtypes) != 1:
                return None
            (dtype,) = value.dtypes
            category = DTYPES[dtype].category
            if category >= Category.FLOAT:
                if value.zero_dim is not False or category is Category.COMPLEX:
                    return None
                met |= {dtype}
                continue
            floor = max(floor, category)
            widens = widens or category is Category.INTEGER  # narrower numbers
        else:
            number = category_of(value)
            if number is None:
                return None
            floor = max(floor, number)
    return Symbol(of, met, floor, widens, reduced) if of else None


def promoted_dtype(given: Sequence[Value]) -> Value:
    """What `torch.promote_types` makes of dtypes, two or, by `functools.reduce`, more."""
    tensors = [_of_dtype(value) for value in given]
    known = [next(iter(tensor.dtypes)) for tensor in tensors if tensor.dtypes is not None and len(tensor.dtypes) == 1]
    if not known:
        return UNKNOWN
    least: str | None = known[0]
    for dtype in known[1:]:
        least = None if least is None else promote(least, dtype)
    if least is None:
        return UNKNOWN
    if len(known) == len(given):
        return Dtype(least)
    symbol = promoted(tensors)
    if symbol is not None:
        return DtypeOf(symbol)
    return DtypeOf(dtypes=frozenset(filter(None, (promote(least, dtype) for dtype in DTYPES))))


def _of_dtype(value: Value) -> Tensor:
    """A tensor with dimensions, of that dtype."""
    if isinstance(value, Dtype):
        return Tensor(frozenset({value.name}), zero_dim=False)
    if isinstance(value, DtypeOf):
        return Tensor(value.dtypes, zero_dim=False, symbol=value.symbol)
    return Tensor(zero_dim=False)


# -- ops --------------------------------------------------------------------------------------------------------------

_ASKED_WITH = ("float32", "float16", "bfloat16", "float64")
_MOST_ATOMS = 2
_MOST_KEPT = 4096

_Learnt = tuple[frozenset[str], frozenset[int]]
"""Of one output: the dtypes that came out, and the atoms, by number, whose dtype it always had."""


class _Lift(NamedTuple):
    """What an op makes of other dtypes than floating ones: see Symbol."""

    floor: Category
    widens: bool


class _Answer(NamedTuple):
    """What an op gave for its operands: one output, or a tuple of them."""

    outputs: list[_Learnt]
    lifts: list[_Lift]
    single: bool


_answers: dict[Hashable, _Answer | None] = {}
"""What asking the table gave, by op and operands."""


def asked(
    op: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    default: Dtypes,
    autocast: Autocast | None,
    origin: ast.expr,
) -> Tensor | Items | None:
    """The tensors that `op(*args, **keywords)` gives, by the operator table, for tensors with known dtypes or symbols.

    Returns:
        None where the table has no answer.
    """
    if not is_op(op):
        return None
    atoms: list[Atom] = []
    for value in _tensors([*args, *keywords.values()]):
        sole = _follows(value)
        if sole is not None:
            if sole not in atoms:
                atoms.append(sole)
        elif value.dtypes is None or len(value.dtypes) > 2:
            return None
    if len(atoms) > _MOST_ATOMS:
        return None
    region = None if autocast is None else (autocast.device, autocast.dtype, autocast.enabled)
    given = tuple(_sign(value, atoms) for value in args)
    key = (op, given, tuple((name, _sign(value, atoms)) for name, value in keywords.items()), default, region)
    if key not in _answers:
        if len(_answers) >= _MOST_KEPT:
            _answers.clear()
        _answers[key] = _answer(op, args, keywords, default, autocast, origin, atoms)
    answer = _answers[key]
    if answer is None:
        return None
    before = [value.symbol for value in _tensors([*args, *keywords.values()]) if value.symbol is not None]
    reduced = op.rpartition(".")[2].rstrip("_") not in KEEPING_DIMENSIONS or any(symbol.reduced for symbol in before)
    outputs = [
        _made(output, lift, before, reduced, atoms, origin)
        for output, lift in zip(answer.outputs, answer.lifts, strict=True)
    ]
    return outputs[0] if answer.single else Items(tuple(outputs))


def _made(
    learnt: _Learnt, lift: _Lift, before: list[Symbol], reduced: bool, atoms: list[Atom], origin: ast.expr
) -> Tensor:
    dtypes, follows = learnt
    symbol = None
    if follows:
        floor = max((lift.floor, *(each.floor for each in before)))
        widens = lift.widens or any(each.widens for each in before)
        symbol = Symbol(frozenset({atoms[min(follows)]}), floor=floor, widens=widens, reduced=reduced)
    if symbol is None and len(dtypes) > 2:
        return Tensor(origin=origin)
    return Tensor(None if symbol is not None else dtypes, origin=origin, symbol=symbol)


def _follows(value: Tensor) -> Atom | None:
    """The one thing whose dtype a tensor has, where that is not known."""
    if value.dtypes is not None and len(value.dtypes) == 1:
        return None
    return value.symbol.sole if value.symbol is not None and value.symbol.exact else None


def _tensors(args: Sequence[Value]) -> list[Tensor]:
    found = [value for value in args if isinstance(value, Tensor)]
    for value in args:
        if isinstance(value, Items):
            found += [item for item in value.items if isinstance(item, Tensor)]
    return found


def _sign(value: Value, atoms: list[Atom]) -> Hashable:
    """What the table can tell apart of an operand."""
    if isinstance(value, Tensor):
        sole = _follows(value)
        return (value.dtypes if sole is None else atoms.index(sole), value.zero_dim)
    if isinstance(value, Items):
        return tuple(_sign(item, atoms) for item in value.items)
    if isinstance(value, Constant):
        constant = value.value
        if type(constant) is int or type(constant) is float:
            return type(constant).__name__  # to the table all numbers are alike
        return (type(constant), constant if isinstance(constant, (bool, str)) else repr(constant))
    if isinstance(value, Dtype):
        return value.name
    return type(value).__name__


def _answer(
    op: str,
    args: Sequence[Value],
    keywords: Mapping[str, Value],
    default: Dtypes,
    autocast: Autocast | None,
    origin: ast.expr,
    atoms: list[Atom],
) -> _Answer | None:
    """What comes out with every dtype in the place of each atom."""
    outputs: list[_Learnt] | None = None
    single = False
    for dtypes in product(_ASKED_WITH, repeat=len(atoms)):
        given = dict(zip(atoms, dtypes, strict=True))
        operands = [_with(value, given) for value in args]
        result = op_result(op, operands, keywords, default, autocast, origin)
        if result is None:
            return None
        now = [result] if isinstance(result, Tensor) else list(result.items) if isinstance(result, Items) else []
        if not now or not all(isinstance(output, Tensor) and output.dtypes for output in now):
            if len(set(dtypes)) > 1 and refusal(op, operands, keywords) is not None:
                continue
            return None
        learnt = [_learnt(output, dtypes) for output in now if isinstance(output, Tensor)]
        if outputs is None:
            outputs, single = learnt, isinstance(result, Tensor)
        elif len(outputs) != len(learnt):
            return None
        else:
            outputs = [(a | b, f & g) for (a, f), (b, g) in zip(outputs, learnt, strict=True)]
    if outputs is None:
        return None
    kept = []
    for dtype in _OTHERS:
        operands = [_with(value, dict.fromkeys(atoms, dtype)) for value in args]
        whole = op_result(op, operands, keywords, default, None, origin)
        made = [whole] if isinstance(whole, Tensor) else list(whole.items) if isinstance(whole, Items) else []
        kept.append(made if len(made) == len(outputs) else [UNKNOWN] * len(outputs))
    return _Answer(outputs, [_lift(*given) for given in zip(*kept, strict=True)], single)


_OTHERS = ("int64", "int32", "bool")
_INT, _BOOL = frozenset({"int32"}), frozenset({"bool"})


def _lift(of_long: Value, of_int: Value, of_bool: Value) -> _Lift:
    """What an op lifts whole numbers and truths to, by what it makes of them: a sum leaves numbers whole. One that refuses
    them has floating tensors for certain."""
    if not isinstance(of_long, Tensor) or not of_long.dtypes or not of_long.dtypes <= INTEGRAL | _BOOL:
        return _Lift(Category.FLOAT, False)
    widens = not isinstance(of_int, Tensor) or of_int.dtypes != _INT
    kept = not widens and isinstance(of_bool, Tensor) and of_bool.dtypes == _BOOL
    return _Lift(Category.BOOL if kept else Category.INTEGER, widens)


def _learnt(output: Tensor, dtypes: tuple[str, ...]) -> _Learnt:
    found = output.dtypes or frozenset()
    return found, frozenset(number for number, dtype in enumerate(dtypes) if found == {dtype})


def _with(value: Value, given: dict[Atom, str]) -> Value:
    """A value in which atoms have dtypes."""
    if isinstance(value, Tensor):
        sole = _follows(value)
        return value if sole is None else value.but(dtypes=frozenset({given[sole]}), symbol=None)
    if isinstance(value, Items):
        return Items(tuple(_with(item, given) for item in value.items))
    return value


def is_floating(value: Value) -> bool | None:
    """Is it certain that a tensor is, or is not, of a floating dtype?"""
    if not isinstance(value, Tensor):
        return None
    if value.dtypes is not None:
        return True if value.dtypes <= FLOATING else None if value.dtypes & FLOATING else False
    symbol = value.symbol
    if symbol is None:
        return None
    sure = bool(symbol.met) or symbol.floor >= Category.FLOAT or all(atom.floating for atom in symbol.of)
    return True if sure and symbol.floor < Category.COMPLEX else None
