"""Dtype signatures: what a function gives for any arguments, by the dtypes of its parameters.

Where files are read for what anybody may give their functions, most calls are told nothing of dtypes: such a call is not
followed. The function is read once, for parameters whose dtypes are symbols, and its result is that of this reading, with the
dtypes of the arguments in the place of the symbols. What it does to objects is not told then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Array,
    Atom,
    Const,
    Device,
    Dtype,
    External,
    Many,
    Number,
    ProjectClass,
    Region,
    Symbol,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
    choices,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["instantiated", "parameter_key", "tells_of_dtypes"]


def parameter_key(parameter: ast.arg) -> str:
    """The key of the atom that stands for a parameter."""
    return f"{parameter.arg}@{parameter.lineno}:{parameter.col_offset}"


def tells_of_dtypes(values: Iterable[Value]) -> bool:
    """Is a dtype known of one of some arguments, so that a call is worth following?"""
    return any(_tells(one) for value in values for one in choices(value))


def _tells(value: Value) -> bool:
    if isinstance(value, (Tensor, Unknown)):
        return bool(value.dtypes)
    if isinstance(value, Dtype):
        return value.dtypes is not None
    if isinstance(value, (Array, Region)):
        return True
    if isinstance(value, Tuple):
        return any(_tells(item) for item in value.items)
    if isinstance(value, Many):
        return _tells(value.item)
    return False


def instantiated(result: Value, atoms: Mapping[str, Value], *, of_itself: bool = False) -> Value:
    """The result of a signature for some arguments.

    Args:
        result: what the function gives where its parameters are symbols.
        atoms: the arguments, by the keys of the atoms that stand for their parameters.
        of_itself: is the call one of a method on the object that the signature is of? Then its weights are the caller's.
    """
    if of_itself:
        named = _atoms_in(result)
        atoms = {**{atom.key: Unknown(None, Symbol(frozenset({atom}))) for atom in named}, **atoms}
    if isinstance(result, Tensor):
        symbol = _symbol(result.symbol, atoms)
        return Tensor(result.dtypes, symbol, result.rank, result.range)
    if isinstance(result, Unknown):
        return Unknown(result.dtypes, _symbol(result.symbol, atoms)) if result.symbol is not None else result
    if isinstance(result, Dtype):
        return Dtype(result.dtypes, _symbol(result.symbol, atoms))
    if isinstance(result, Tuple):
        return Tuple(tuple(instantiated(item, atoms) for item in result.items), result.names)
    if isinstance(result, Many):
        return Many(instantiated(result.item, atoms))
    if isinstance(result, Union):
        return join_all(instantiated(one, atoms) for one in choices(result)) or TOP
    if isinstance(result, (Array, Const, Device, External, Number, ProjectClass, Region)):
        return result
    return TOP  # an object that it has made, a closure: these are not told of


def _atoms_in(value: Value) -> Iterator[Atom]:
    """The atoms that decide the dtypes of a value."""
    if isinstance(value, (Tensor, Unknown, Dtype)):
        if value.symbol is not None:
            yield from value.symbol.of
    elif isinstance(value, Tuple):
        for item in value.items:
            yield from _atoms_in(item)
    elif isinstance(value, Many):
        yield from _atoms_in(value.item)
    else:
        for one in choices(value) if isinstance(value, Union) else ():
            yield from _atoms_in(one)


def _symbol(symbol: Symbol | None, atoms: Mapping[str, Value]) -> Symbol | None:
    """The symbol in the caller's terms; None where an argument is not known to have a dtype that is decided by one thing."""
    if symbol is None:
        return None
    of: set[Atom] = set()
    least, outside, reshaped = symbol.least, symbol.outside, symbol.reshaped
    met = set(symbol.met)
    for atom in symbol.of:
        given = atoms.get(atom.key)
        inner = given.symbol if isinstance(given, (Tensor, Unknown, Dtype)) else None
        if inner is None:
            return None
        of |= inner.of
        met |= inner.met
        least = max(least, inner.least)
        outside, reshaped = outside or inner.outside, reshaped or inner.reshaped
    return Symbol(frozenset(of), frozenset(met), least, outside, reshaped)
