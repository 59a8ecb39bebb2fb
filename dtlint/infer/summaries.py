"""What a function gives that was read for anybody, as one call gets it: the names of its parameters stand for arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.symbols import symbol_of
from dtlint.infer.values import (
    UNKNOWN,
    Atom,
    Conversion,
    Dtype,
    DtypeOf,
    Either,
    Items,
    Iteration,
    Symbol,
    Tensor,
    Unknown,
    Value,
    join,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from dtlint.infer.calls import Arguments
    from dtlint.infer.scopes import FunctionInfo
    from dtlint.infer.values import Key

__all__ = ["instantiated", "parameter_atom"]


def parameter_atom(argument: ast.arg) -> Atom:
    """The name of a parameter's dtype."""
    name = argument.arg
    return Atom(f"{name}@{argument.lineno}:{argument.col_offset}", name, True)  # `_key`, for all parameters there are


def _key(argument: ast.arg) -> Key:
    return f"{argument.arg}@{argument.lineno}:{argument.col_offset}"


def instantiated(value: Value, function: FunctionInfo, bound: bool, arguments: Arguments, path: str = "") -> Value:
    """The result of a function, for the arguments of a call.

    Args:
        bound: is the first parameter the instance, which is not among the arguments?
        path: where a module is called, the path to it: its weights are called by that path here.
    """
    if not _has_symbols(value):
        return value
    return _Call(_given(function, bound, arguments), path).of(value)


def _has_symbols(value: Value) -> bool:
    if isinstance(value, (Tensor, DtypeOf)):
        return value.symbol is not None or (isinstance(value, Tensor) and value.cast is not None)
    if isinstance(value, Unknown):
        return value.atom is not None
    if isinstance(value, (Items, Either)):
        return any(map(_has_symbols, value.items if isinstance(value, Items) else value.choices))
    return isinstance(value, Iteration) and _has_symbols(value.item)


def _given(function: FunctionInfo, bound: bool, arguments: Arguments) -> dict[Key, Value]:
    """What each parameter is given, by the key of its atom; Unknown where that is not seen."""
    parameters = function.node.args
    positional = [*parameters.posonlyargs, *parameters.args][int(bound) :]
    given: dict[Key, Value] = {}
    for position, argument in enumerate((*positional, *parameters.kwonlyargs)):
        value = arguments.get(position if position < len(positional) else None, argument.arg)
        given[_key(argument)] = value if value is not None and arguments.complete else UNKNOWN
    return given


class _Call:
    """One call: what stands for the parameters of the function."""

    def __init__(self, given: Mapping[Key, Value], path: str) -> None:
        self.given, self.path = given, path

    def of(self, value: Value) -> Value:
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, DtypeOf):
            dtypes, symbol = self.decided(value.dtypes, value.symbol)
            if dtypes is not None and len(dtypes) == 1:
                return Dtype(next(iter(dtypes)))
            return UNKNOWN if dtypes is None and symbol is None else DtypeOf(symbol, dtypes)
        if isinstance(value, Unknown):
            if value.atom is None:
                return value
            actual = self.given.get(value.atom.key)
            return replace(value, atom=None) if actual is None or isinstance(actual, Unknown) else actual
        if isinstance(value, Items):
            return Items(tuple(map(self.of, value.items)))
        if isinstance(value, Iteration):
            return Iteration(self.of(value.item), value.source, value.of)
        if isinstance(value, Either):
            choices = [self.of(choice) for choice in value.choices]
            result = choices[0]
            for choice in choices[1:]:
                result = join(result, choice)
            return result
        return value

    def tensor(self, value: Tensor) -> Tensor:
        dtypes, symbol = self.decided(value.dtypes, value.symbol)
        cast = value.cast
        if cast is not None:
            cast = Conversion(cast.node, *self.decided(cast.dtypes, cast.symbol))
        return value.but(dtypes=dtypes, symbol=symbol, cast=cast)

    def decided(
        self, dtypes: frozenset[str] | None, symbol: Symbol | None
    ) -> tuple[frozenset[str] | None, Symbol | None]:
        """A dtype, with what is given in the place of parameters."""
        if symbol is None or (dtypes is not None and len(dtypes) == 1):
            return dtypes, None
        sole = symbol.sole
        if sole is not None and symbol.exact and sole.key in self.given:
            return _lifted(self.given[sole.key], symbol)
        atoms: set[Atom] = set()
        made = symbol
        for atom in symbol.of:
            if not self.is_of_parameter(atom):
                atoms.add(self.renamed(atom))
                continue
            actual = symbol_of(self.given.get(atom.key, UNKNOWN))
            if actual is None or not actual.exact:
                return dtypes if dtypes is not None and not self.has_parameters(symbol) else None, None
            atoms |= actual.of
            made = _lifted_by(made, actual)
        return dtypes, made.but(of=frozenset(atoms))

    def has_parameters(self, symbol: Symbol) -> bool:
        return any(map(self.is_of_parameter, symbol.of))

    def is_of_parameter(self, atom: Atom) -> bool:
        """Is it a parameter, or something inside one: `config.dtype`?"""
        return any(atom.key == key or atom.key.startswith(f"{key}.") for key in self.given)

    def renamed(self, atom: Atom) -> Atom:
        """A weight of a module, as the caller calls it: `self.attn.proj.weight`."""
        if not self.path or not atom.text.startswith("self."):
            return atom
        return replace(atom, key=f"{self.path}:{atom.key}", text=f"{self.path}{atom.text.removeprefix('self')}")


def _lifted_by(symbol: Symbol, by: Symbol) -> Symbol:
    """A symbol, with what was done to another besides."""
    floor = max(symbol.floor, by.floor)
    return symbol.but(floor=floor, widens=symbol.widens or by.widens, reduced=symbol.reduced or by.reduced)


def _lifted(value: Value, by: Symbol) -> tuple[frozenset[str] | None, Symbol | None]:
    """The dtype of an argument, where the function lifts integers to floats."""
    floor = by.floor
    symbol, dtypes = symbol_of(value), value.dtypes if isinstance(value, (Tensor, DtypeOf)) else None
    if isinstance(value, Dtype):
        dtypes = frozenset({value.name})
    if dtypes is not None and len(dtypes) == 1:
        return (dtypes if DTYPES[next(iter(dtypes))].category >= floor else None), None
    if symbol is None:
        return (dtypes if floor is Category.BOOL else None), None
    return dtypes, _lifted_by(symbol, by)
