"""What the operator table answers for all that the operands of one call can be.

An answer is a pure function of the question, so it is remembered. Of a symbol nothing decides it but where its atoms stand
and which of them are certain to be floating: `x + y` of any two parameters is one question.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import COMPLEX, DTYPES, Category
from dtlint.dtypes.promotion import promote
from dtlint.dtypes.table import DTYPE, NUMBER, UNKNOWN, Outcome, load
from dtlint.infer.domain.lattice import join, join_dtypes, join_symbols
from dtlint.infer.domain.values import TOP, Atom, Many, Region, Symbol, Tensor, Tuple, Value
from dtlint.infer.models.autocast_policies import as_cast, is_listed, policies_for
from dtlint.infer.models.ranks import is_elementwise

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dtlint.infer.domain.values import Dtypes

__all__ = ["Operand", "Question", "Refusal", "is_anything", "table_answer"]

_MOST_COMBINATIONS = 400
"""Combinations of operands that are asked for one call; past it, the result is unknown."""
_ATOMS_AS = ("float32", "float16", "bfloat16", "float64")
"""What stands in for a dtype that the caller decides."""
_MOST_ATOMS = 2


@dataclass(unsafe_hash=True, slots=True)
class Operand:
    """What the table is told of an argument: what it can be, one by one, and what symbol it has."""

    options: tuple[Any, ...]
    symbol: Symbol | None = None


@dataclass(unsafe_hash=True, slots=True)
class Question:
    """A call of an op.

    Attributes:
        op: its qualified name.
        operands: the positional arguments, then those by name.
        names: the names of the latter.
        regions: the regions that it may run in, None for outside; None where nobody knows: a caller may have opened one.
        defaults: what the default dtype can be.
        device: where the operands are, if that is known.
    """

    op: str
    operands: tuple[Operand, ...]
    names: tuple[str, ...]
    regions: tuple[Region | None, ...] | None
    defaults: frozenset[str]
    device: str | None

    def symbols(self) -> list[Symbol]:
        """The symbols of the operands that have one."""
        return [operand.symbol for operand in self.operands if operand.symbol is not None]


@dataclass(slots=True)
class Refusal:
    """torch raises for all that the operands can be.

    Attributes:
        message: what it says in one of these cases.
    """

    message: str


_MOST_KEPT = 100_000
_ANSWERS: dict[Question, Value | Refusal] = {}
"""Answers by question. The table never changes, so neither do they."""
_PLACES = tuple(
    {floating: Atom(f"{place}{' floating' * floating}", floating=floating) for floating in (False, True)}
    for place in range(_MOST_ATOMS)
)
"""What stands for the atoms of a question that is remembered."""
_ANYWHERE = tuple(Region(device, dtype) for device in ("cpu", "cuda") for dtype in ("float16", "bfloat16"))
"""What a caller may have opened."""


def table_answer(question: Question) -> Value | Refusal:
    """The result of an op for all combinations of what its operands can be, or that there is none."""
    atoms = _atoms(question)
    if len(atoms) > _MOST_ATOMS:
        return TOP
    if not atoms:
        return _remembered(question)
    places = {atom: _PLACES[place][atom.floating] for place, atom in enumerate(atoms)}
    operands = tuple(_with_symbol(operand, places) for operand in question.operands)
    known = _remembered(
        Question(question.op, operands, question.names, question.regions, question.defaults, question.device)
    )
    if isinstance(known, Refusal):
        return known
    return _restored(known, dict(zip(places.values(), places, strict=True)), question.symbols())


def _remembered(question: Question) -> Value | Refusal:
    known = _ANSWERS.get(question)
    if known is None:
        if len(_ANSWERS) > _MOST_KEPT:
            _ANSWERS.clear()
        known = _ANSWERS[question] = _found(question)
    return known


def _atoms(question: Question) -> list[Atom]:
    """The atoms of the operands, in their order."""
    atoms: list[Atom] = []
    for symbol in question.symbols():
        atoms += [atom for atom in sorted(symbol.of, key=lambda one: one.key) if atom not in atoms]
    return atoms


def _with_symbol(operand: Operand, names: Mapping[Atom, Atom]) -> Operand:
    symbol = operand.symbol
    if symbol is None:
        return operand
    return Operand(operand.options, Symbol(frozenset(names[atom] for atom in symbol.of), symbol.met))


def _restored(value: Value, names: Mapping[Atom, Atom], given: Sequence[Symbol]) -> Value:
    """An answer with the atoms of the question; it holds where what is said of the given symbols does."""
    if isinstance(value, Tensor):
        if value.symbol is None:
            return value
        symbol = Symbol(
            frozenset(names[atom] for atom in value.symbol.of),
            value.symbol.met,
            max(value.symbol.least, *(one.least for one in given)),
            value.symbol.outside or any(one.outside for one in given),
            any(one.reshaped for one in given),
        )
        return Tensor(value.dtypes, symbol)
    if isinstance(value, Tuple):
        return Tuple(tuple(_restored(item, names, given) for item in value.items))
    return Many(_restored(value.item, names, given)) if isinstance(value, Many) else value


# -- all combinations ----------------------------------------------------------------------------------------------------


def _found(question: Question) -> Value | Refusal:
    atoms, symbols = _atoms(question), question.symbols()
    outside = question.regions is None
    tried: tuple[Region | None, ...] = (None,) if question.regions is None else question.regions
    found: list[tuple[dict[Atom, str], Value]] = []
    refused = Refusal("")
    for assigned in product(_ATOMS_AS, repeat=len(atoms)):
        chosen = dict(zip(atoms, assigned, strict=True))
        value = _with_atoms(question, chosen, tried)
        if value is None:
            return TOP
        if isinstance(value, Refusal):
            refused = value
        elif atoms and isinstance(value, Tensor) and len(value.dtypes or ()) != 1:
            return Tensor()  # no symbol has several dtypes where those of its atoms are known
        else:
            found.append((chosen, value))
    whole = _of_whole_numbers(question, atoms, tried)
    if not found:
        if whole:  # it is refused where all of them are floating, as of an embedding's indices
            return _of_any_kind(question, atoms, tried)
        if _runs_as_complex(question, atoms, tried):
            return TOP
        return TOP if outside and _runs_somewhere(question, atoms) else refused
    result = _restricted(_abstracted(found, symbols), whole)
    if not outside or not _is_touched(question, found):
        return result
    return _only_outside(result) if atoms else _anywhere(question, result)


_WHOLE = ("int64", "int32", "bool")
"""What stands in for dtypes of the caller's that are not floating."""
_Whole = list[tuple["dict[Atom, str]", "Value | None"]]
"""What the op gives for each choice of dtypes of which some are not floating; None: that is not known."""


def _of_whole_numbers(question: Question, atoms: list[Atom], regions: tuple[Region | None, ...]) -> _Whole:
    """What the op gives where the caller's dtypes are not all floating, as far as they may be something else."""
    found: _Whole = []
    for assigned in product(*(("float32",) if atom.floating else ("float32", *_WHOLE) for atom in atoms)):
        if not set(assigned) & set(_WHOLE):
            continue
        chosen = dict(zip(atoms, assigned, strict=True))
        value = _with_atoms(question, chosen, regions)
        if not isinstance(value, Refusal):
            found.append((chosen, value))
    return found


def _of_any_kind(question: Question, atoms: list[Atom], regions: tuple[Region | None, ...]) -> Value:
    """What the op gives where some of the caller's dtypes are floating and others not."""
    kinds = [_ATOMS_AS if atom.floating else (*_ATOMS_AS, *_WHOLE) for atom in atoms]
    if len(atoms) > _MOST_MIXED:
        return TOP
    found: list[tuple[dict[Atom, str], Value]] = []
    for assigned in product(*kinds):
        chosen = dict(zip(atoms, assigned, strict=True))
        value = _with_atoms(question, chosen, regions)
        if value is None:
            return TOP
        if isinstance(value, Tensor) and len(value.dtypes or ()) != 1:
            return Tensor()
        if not isinstance(value, Refusal):
            found.append((chosen, value))
    result = _abstracted(found, question.symbols())
    return _only_outside(result) if question.regions is None and _is_touched(question, found) else result


_MOST_MIXED = 2
"""Dtypes of the caller's that are tried in all combinations, floating or not."""


def _runs_as_complex(question: Question, atoms: list[Atom], regions: tuple[Region | None, ...]) -> bool:
    """Does an op on complex numbers run if the caller's dtypes are complex, too? Weights can be, though they are taken for
    floating ones."""
    options = [option for operand in question.operands for option in operand.options]
    given = {option[0] for option in options if isinstance(option, tuple) and option and isinstance(option[0], str)}
    return bool(atoms) and any(
        not isinstance(_with_atoms(question, dict.fromkeys(atoms, dtype), regions), Refusal)
        for dtype in sorted(given & COMPLEX)
    )


def _restricted(result: Value, whole: _Whole) -> Value:
    """What is known for floating dtypes, restricted to what holds for whole numbers and truths, too, or to where it holds."""
    if isinstance(result, Tensor):
        given = [(chosen, value.dtypes if isinstance(value, Tensor) else None) for chosen, value in whole]
        symbol = result.symbol
        if symbol is not None:
            return Tensor(result.dtypes, Symbol(symbol.of, symbol.met, _least(symbol, given)))
        dtypes: Dtypes = result.dtypes
        for _, these in given:
            dtypes = None if dtypes is None or these is None else dtypes | these
        return Tensor(dtypes)
    if isinstance(result, Tuple):
        items = []
        for place, item in enumerate(result.items):
            parts: _Whole = [(chosen, _item(value, place, len(result.items))) for chosen, value in whole]
            items.append(_restricted(item, parts))
        return Tuple(tuple(items))
    if isinstance(result, Many):
        inner: _Whole = [(chosen, value.item if isinstance(value, Many) else None) for chosen, value in whole]
        return Many(_restricted(result.item, inner))
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
    question: Question, chosen: dict[Atom, str], regions: tuple[Region | None, ...]
) -> Value | Refusal | None:
    """The join of what all combinations give where the caller's dtypes are these; None: unknown."""
    op = question.op
    options = [_instances(operand, chosen) for operand in question.operands]
    count = 1
    for option in options:
        count *= len(option)
    if count > _MOST_COMBINATIONS:
        return None
    table = load()
    result: Value | None = None
    refused = Refusal("")
    for region in regions:
        for given in product(*options):
            policies = policies_for(table, op, region, given)
            if policies is None:
                raised = _refused_however_cast(question, given)
                if raised is None:
                    return None
                refused = raised
                continue
            for policy in policies:
                now = given if policy is None else [as_cast(argument, policy, region, given) for argument in given]
                for outcome in _outcomes(question, now):
                    if outcome.error is not None:
                        if not _holds(outcome, question, now) and not _decomposes(op, given):
                            return None
                        refused = Refusal(outcome.error)
                        continue
                    if not outcome.known:
                        agreed = _agreed(op, now)
                        if agreed is None:
                            if (is_elementwise(op) and _mixes(given)) or not _supposes_0_dim(given, options):
                                return None
                            continue
                        value: Value = Tensor(frozenset({agreed}))
                    else:
                        value = _value(outcome.result)
                    result = value if result is None else _either(result, value)
                    if isinstance(result, Tensor) and is_anything(result.dtypes):
                        return result
    return refused if result is None else result


def _either(left: Value, right: Value) -> Value:
    """What two combinations of operands give: of tensors the dtypes of both, even where these are all floating ones, which
    are the default dtype again if they were before."""
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return Tensor(join_dtypes(left.dtypes, right.dtypes), join_symbols(left.symbol, right.symbol))
    if isinstance(left, Tuple) and isinstance(right, Tuple) and len(left.items) == len(right.items):
        return Tuple(tuple(map(_either, left.items, right.items)))
    if isinstance(left, Many) and isinstance(right, Many):
        return Many(_either(left.item, right.item))
    return join(left, right)


def _refused_however_cast(question: Question, given: Sequence[Any]) -> Refusal | None:
    """What torch says where it raises whatever dtype autocast gives the operands; None where it need not, or a GPU may not."""
    found: Refusal | None = None
    for policy, region in _CASTS:
        now = [as_cast(argument, policy, region, given) for argument in given]
        for outcome in _outcomes(question, now):
            if outcome.error is None or not _holds(outcome, question, now):
                return None
            found = Refusal(outcome.error)
    return found


_CASTS = ((None, None), *(("lower", Region(None, dtype, True)) for dtype in ("float32", "float16", "bfloat16")))
"""What autocast may do to operands: nothing, or give those that it casts one dtype."""


def _outcomes(question: Question, given: Sequence[Any]) -> Iterator[Outcome]:
    """The table's answers for the default dtypes. It was learned with float32 and float64: what these do not change, no
    other changes."""
    table, places, defaults = load(), len(question.operands) - len(question.names), question.defaults
    args, keywords = given[:places], dict(zip(question.names, given[places:], strict=True))
    if not table.heeds_default(question.op) and not any(type(one) in (float, complex) for one in given):
        yield table.call(question.op, args, keywords)
        return
    learned: list[Outcome] | None = None
    if len(defaults) > 1 and defaults >= _LEARNED:
        learned = [table.call(question.op, args, keywords, default=default) for default in sorted(_LEARNED)]
        if learned[0] == learned[1]:
            yield learned[0]
            return
    for default in sorted(defaults):
        outcome = table.call(question.op, args, keywords, default=default)
        if outcome.known or outcome.error is not None or default in _LEARNED:
            yield outcome
            continue
        if learned is None:
            learned = [table.call(question.op, args, keywords, default=other) for other in sorted(_LEARNED)]
        yield learned[0] if learned[0] == learned[1] else outcome


def is_anything(dtypes: Dtypes) -> bool:
    """Are these what is known of the result of moving what is not known: anything, quantized dtypes included?"""
    if dtypes is None or len(dtypes) <= 6:
        return False
    return {Category.INTEGER, Category.FLOAT} <= {DTYPES[dtype].category for dtype in dtypes}


_LEARNED = frozenset({"float32", "float64"})
"""The default dtypes that the table was learned with."""


def _instances(operand: Operand, chosen: dict[Atom, str]) -> tuple[Any, ...]:
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


def _holds(outcome: Outcome, question: Question, given: Sequence[Any]) -> bool:
    """Does an error hold where the operands lie? The table was learned on the CPU; of CUDA it has what lacks kernels there."""
    if not outcome.is_of_cpu or question.device == "cpu":
        return True
    if question.device not in (None, "cuda"):
        return False  # on `meta` nothing is computed
    tensors = {one[0] for one in given if isinstance(one, tuple) and len(one) == 2 and one[1] not in (NUMBER, DTYPE)}
    return len(tensors) == 1 and load().lacks_kernel(question.op, str(*tensors), None)


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


def _runs_somewhere(question: Question, atoms: list[Atom]) -> bool:
    """Does the op that raises outside autocast run in a region that the caller may have opened?"""
    chosen = dict.fromkeys(atoms, "float32")
    return any(not isinstance(_with_atoms(question, chosen, (region,)), Refusal) for region in _ANYWHERE)


def _is_touched(question: Question, found: list[tuple[dict[Atom, str], Value]]) -> bool:
    """Does the op give something else in a region that the caller may have opened?"""
    regions = [region for region in _ANYWHERE if is_listed(load(), question.op, region)]
    return any(_with_atoms(question, chosen, (region,)) != usual for chosen, usual in found for region in regions)


def _anywhere(question: Question, outside: Value) -> Value:
    """What an op gives outside autocast, where it gives one of the same dtypes in any region that the caller may have
    opened: of any floating dtype, a power has one of these. Else it holds outside alone."""
    for region in _ANYWHERE:
        inside = _with_atoms(question, {}, (region,)) if is_listed(load(), question.op, region) else outside
        if inside is None or isinstance(inside, Refusal) or _either(outside, inside) != outside:
            return _only_outside(outside)
    return outside


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
