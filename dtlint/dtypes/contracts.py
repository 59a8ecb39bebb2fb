"""Contracts of functions: which dtypes they take and give.

    # dtypes: (x: T, weight: float32) -> promote(T, float32)
    def scaled(x, weight): ...

A dtype is a name of torch's, several of them between `|`, or a variable that stands for one dtype wherever it stands; `promote`
is what torch makes of several, `...` is not stated.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Contract", "Term", "contract_from", "contract_of"]

_VARIABLE = re.compile(r"[A-Z][0-9]*")


@dataclass(frozen=True, slots=True)
class Term:
    """What a contract says of one tensor.

    Attributes:
        dtypes: what its dtype can be; of a promotion those beside the variables.
        variables: the variables that decide it.
        stated: is anything said of it?
        optional: may it be None as well?
    """

    dtypes: frozenset[str] = frozenset()
    variables: tuple[str, ...] = ()
    stated: bool = True
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Contract:
    """What a function takes, by parameter, and gives: one term, or one for each item of a tuple."""

    parameters: Mapping[str, Term]
    result: Term | tuple[Term, ...]
    text: str


def contract_of(node: ast.AST) -> Contract | None:
    """The contract of a function; None where it has none.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    text = node.type_comment if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    return None if text is None else contract_from(text)


def contract_from(text: str) -> Contract:
    """The contract that is written `(x: T) -> T`.

    Raises:
        ValueError: it cannot be read; the message says why.
    """
    try:
        [function] = ast.parse(f"def f{text}: ...").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"`{text}` is no signature: write it like `(x: T) -> T`") from None
    if not isinstance(function, ast.FunctionDef) or function.returns is None:
        raise ValueError(f"`{text}` is no signature: write it like `(x: T) -> T`")
    args = function.args
    terms = {
        one.arg: _term(one.annotation)
        for one in (*args.posonlyargs, *args.args, *args.kwonlyargs)
        if one.annotation is not None
    }
    returns = function.returns
    if isinstance(returns, ast.Tuple):
        return Contract(terms, tuple(map(_term, returns.elts)), text)
    return Contract(terms, _term(returns), text)


def _term(node: ast.expr) -> Term:
    if isinstance(node, ast.Constant) and node.value is ...:
        return Term(stated=False)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "promote":
        parts = [_term(one) for one in node.args]
        return Term(
            frozenset().union(*(one.dtypes for one in parts)),
            tuple(name for one in parts for name in one.variables),
            all(one.stated for one in parts),
        )
    dtypes: set[str] = set()
    variables: list[str] = []
    optional = False
    for one in _alternatives(node):
        if isinstance(one, ast.Constant) and one.value is None:
            optional = True
        elif isinstance(one, ast.Name) and one.id in DTYPES:
            dtypes.add(one.id)
        elif isinstance(one, ast.Name) and _VARIABLE.fullmatch(one.id):
            variables.append(one.id)
        elif isinstance(one, ast.Attribute) and ast.unparse(one).startswith("self."):
            variables.append(ast.unparse(one))
        elif isinstance(one, ast.Call):
            part = _term(one)
            return Term(part.dtypes, part.variables, part.stated, optional=True)
        else:
            raise ValueError(f"`{ast.unparse(one)}` is no dtype of torch, and no variable like T")
    if variables and (dtypes or len(variables) > 1):
        return Term(stated=False)
    return Term(frozenset(dtypes), tuple(variables), optional=optional)


def _alternatives(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from _alternatives(node.left)
        yield from _alternatives(node.right)
    else:
        yield node
