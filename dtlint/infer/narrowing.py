"""What tests on dtypes say where they hold: `x.dtype == torch.float16`, `x.dtype in (...)`, `x.is_floating_point()`."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING, Category, named
from dtlint.infer.symbols import symbol_of
from dtlint.infer.values import Atom, DtypeOf, Dtypes, Items, Symbol, Tensor, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.program_state import State

__all__ = ["narrow_dtypes", "speaks_of_dtypes"]

_EQUAL = (ast.Eq, ast.Is, ast.In)
_COMPARING = frozenset({*_EQUAL, ast.NotEq, ast.IsNot, ast.NotIn})
_QUESTIONS = {"is_floating_point": FLOATING, "is_complex": COMPLEX}


def speaks_of_dtypes(test: ast.expr) -> bool:
    """Is it worth reading the test again for what it says of dtypes?"""
    if type(test) is ast.Compare:
        if len(test.ops) != 1 or type(test.ops[0]) not in _COMPARING:
            return False
        return _is_dtype_named(test.left) or _is_dtype_named(test.comparators[0])
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in _QUESTIONS


def _is_dtype_named(side: ast.expr) -> bool:
    """Does a side of a test name a dtype: `x.dtype`, `weight_dtype`, `torch.half`?"""
    if type(side) is ast.Name:
        name = side.id
    elif type(side) is ast.Attribute:
        name = side.attr
    else:
        return False
    return "dtype" in name or named(name) is not None


def narrow_dtypes(test: ast.expr, holds: bool, state: State, value: Callable[[ast.expr], Value]) -> None:
    """Make what a test says true of the names and paths of a state.

    Args:
        value: the value of an expression, evaluated without telling anybody.
    """
    if isinstance(test, ast.Compare):
        if holds is not isinstance(test.ops[0], _EQUAL):
            return
        left, right = test.left, test.comparators[0]
        known, asked = value(right), value(left)
        if not isinstance(asked, DtypeOf):
            known, asked, left = asked, known, right
        dtypes = _named(known)
        if dtypes and isinstance(asked, DtypeOf):
            _make(state, _subject(left), asked.symbol, dtypes)
        return
    assert isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute)
    subject = test.args[0] if test.args else test.func.value
    tensor = value(subject)
    if isinstance(tensor, Tensor):
        of_kind = _QUESTIONS[test.func.attr]
        if holds:
            kept = of_kind if tensor.dtypes is None else tensor.dtypes & of_kind
        else:
            kept = frozenset() if tensor.dtypes is None else tensor.dtypes - of_kind
        if kept:
            _make(state, subject, tensor.symbol, kept)


def _subject(node: ast.expr) -> ast.expr | None:
    """The tensor whose dtype is asked for: `x` of `x.dtype`."""
    return node.value if isinstance(node, ast.Attribute) and node.attr == "dtype" else None


def _named(value: Value) -> Dtypes:
    from dtlint.infer.calls import dtype_of

    if not isinstance(value, Items):
        return dtype_of(value)
    found: set[str] = set()
    for item in value.items:
        dtypes = dtype_of(item)
        if dtypes is None:
            return None
        found |= dtypes
    return frozenset(found)


def _make(state: State, subject: ast.expr | None, symbol: Symbol | None, dtypes: frozenset[str]) -> None:
    """The subject has one of these dtypes, and so has all that is known to have the dtype of the same thing."""
    from dtlint.infer.names import path_of

    path = None if subject is None else path_of(subject)
    atom = symbol.sole if symbol is not None and symbol.exact else None
    for known in (state.names, state.paths):
        for name, value in known.items():
            if name == path or (atom is not None and _follows(value, atom, dtypes)):
                known[name] = _with(value, dtypes)


def _follows(value: Value, atom: Atom, dtypes: frozenset[str]) -> bool:
    if isinstance(value, Unknown):
        return value.atom == atom
    if not isinstance(value, (Tensor, DtypeOf)) or value.symbol is None or not value.symbol.exact:
        return False
    return value.symbol.sole == atom and (value.symbol.floor is Category.BOOL or dtypes <= FLOATING)


def _with(value: Value, dtypes: frozenset[str]) -> Value:
    if isinstance(value, (Tensor, DtypeOf)):
        kept = dtypes if value.dtypes is None else value.dtypes & dtypes or dtypes
        return replace(value, dtypes=kept)  # it keeps its symbol, for where the paths meet again
    if isinstance(value, Unknown):
        return Tensor(dtypes, under=value.under, scaled=value.scaled, symbol=symbol_of(value))
    return value
