"""Why a tensor has its dtype: what happens in each expression, and the one that its dtype comes from. Such links, one after
the other, are the steps back to an origin (account.py).

They are rebuilt from the facts: a step's reason is read off its own syntax and off the dtypes of the tensors in it, so
that nothing is said which the reading has not shown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ALIASES, DTYPES
from dtlint.infer.claims.account import shown
from dtlint.infer.claims.bindings import Bindings
from dtlint.infer.names import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.claims.reading import Reading
    from dtlint.infer.domain.values import Dtypes, Symbol

__all__ = ["Derivations", "Link"]

_CASTS = {
    "to",
    "type",
    "type_as",
    *ALIASES,
    *DTYPES,
    "chalf",
    "cfloat",
    "cdouble",
    "char",
    "byte",
    "short",
    "long",
    "int",
}


@dataclass(frozen=True, slots=True)
class Link:
    """How a tensor expression got its dtype.

    Attributes:
        symbolic: what decides the dtype where it is not known.
        reason: what happens there, as the end of a sentence that begins with the expression.
        cause: the expression that decided about this one.
        passes: does it only pass on what the other has, as a name does?
    """

    dtypes: Dtypes
    symbolic: str | None
    reason: str
    cause: ast.expr | None
    passes: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a tensor expression: its dtypes, or what decides it."""

    dtypes: Dtypes
    symbolic: str | None
    symbol: Symbol | None

    @property
    def text(self) -> str:
        return shown(self.dtypes) if self.symbolic is None else self.symbolic

    def has_dtype_of(self, other: _Known) -> bool:
        """Is it of the other's dtype? Of those that have a name: does the same decide both, whatever lifts one of them?"""
        if self.symbol is None or other.symbol is None:
            return self.symbol is other.symbol and self.dtypes == other.dtypes
        return self.symbol.of == other.symbol.of and self.symbol.met == other.symbol.met


class Derivations:
    """The derivations of a reading's tensor expressions."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._bindings: dict[ast.Module, Bindings] = {}

    def link(self, node: ast.expr) -> Link:
        """How a tensor expression of the reading got its dtype.

        Raises:
            KeyError: the reading knows of no tensor there.
        """
        known = self._known(node)
        if known is None:
            raise KeyError(node)
        cause, reason = self._cause(node, known)
        return Link(known.dtypes, known.symbolic, reason, cause, isinstance(node, ast.Name) and cause is not None)

    def _known(self, node: ast.expr) -> _Known | None:
        reading = self._reading
        if node not in reading.tensors:
            return None
        return _Known(reading.tensors[node][1], reading.symbolic.get(node), reading.symbol(node))

    def _cause(self, node: ast.expr, known: _Known) -> tuple[ast.expr | None, str]:
        """The expression that decided about this one, and how."""
        if isinstance(node, ast.Name):
            origin = self._origin(node, known)
            if origin is not None:
                return origin, "it has had that dtype since"
        if isinstance(node, ast.Attribute) and self._known(node.value) is not None:
            return node.value, "keeps the dtype of its operand"  # `x.T`
        if isinstance(node, (ast.Name, ast.Attribute)):
            return None, "as the program gives it" if known.symbol is None else _who_decides(node, known.symbol)
        if isinstance(node, ast.Compare):
            return None, "a comparison gives bool"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
            return None, "cast here"
        if isinstance(node, ast.Call) and any(keyword.arg == "dtype" for keyword in node.keywords):
            return None, "the argument `dtype` decides"
        if known.symbol is not None and isinstance(node, ast.Call) and _is_of_layer(node, known.symbol):
            return None, "the layer's weights decide"
        return self._by_operands(node, known)

    def _by_operands(self, node: ast.expr, known: _Known) -> tuple[ast.expr | None, str]:
        operands = [(child, operand) for child in self._operands(node) if (operand := self._known(child)) is not None]
        if not operands:
            return None, "made here"
        texts = " and ".join(sorted({operand.text for _, operand in operands}))
        same = [child for child, operand in operands if operand.has_dtype_of(known)]
        if len(same) == len(operands):
            return same[0], "keeps the dtype of its operand" if len(operands) == 1 else "its operands have one dtype"
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return same[-1] if same else None, "the operands of a product must have one dtype"
        if same:
            return same[-1], f"promoted from {texts}"
        if known.symbol is not None and (len(known.symbol.of) > 1 or known.symbol.met):
            return None, "its operands are promoted"
        # what decided is no tensor in sight: weights, autocast, the operation's own rule
        return None, f"what this operation gives for {texts}"

    def _operands(self, node: ast.expr) -> Iterator[ast.expr]:
        """The tensors that an expression is made of, the outermost ones."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.keyword):
                child = child.value
            if not isinstance(child, ast.expr):
                continue
            if child in self._reading.tensors:
                yield child
            else:
                yield from self._operands(child)

    def _origin(self, name: ast.Name, known: _Known) -> ast.expr | None:
        """The expression of its dtype that a name was bound to, or that a call gives for a parameter."""
        tree = self._reading.module_of(name)
        if tree is None:
            return None
        bindings = self._bindings.get(tree)
        if bindings is None:
            bindings = self._bindings[tree] = Bindings(tree)
        given = bindings.reaching(name)
        if not given and known.symbol is None:
            parameter = bindings.parameter(name)
            given = [] if parameter is None else list(self._arguments(*parameter))
        for value in given:
            other = self._known(value)
            if other is not None and known.has_dtype_of(other):
                return value
        return None

    def _arguments(self, function: ast.AST, parameter: ast.arg) -> Iterator[ast.expr]:
        """What calls in view give for a parameter."""
        arguments: ast.arguments = function.args  # type: ignore[attr-defined]
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        for call, bound in self._reading.facts.calls_of(function):
            if any(isinstance(one, ast.Starred) for one in call.args):
                continue
            place = names.index(parameter.arg) - bound if parameter.arg in names else -1
            if 0 <= place < len(call.args):
                yield call.args[place]
            yield from (keyword.value for keyword in call.keywords if keyword.arg == parameter.arg)


def _who_decides(node: ast.Name | ast.Attribute, symbol: Symbol) -> str:
    weights = isinstance(node, ast.Attribute) and all(atom.floating for atom in symbol.of)
    return "whoever has the module may have cast it" if weights else "the caller decides"


def _is_of_layer(node: ast.Call, symbol: Symbol) -> bool:
    """Is it a layer that is called, or several in a row, in whose weights' dtype its result is?"""
    path = path_of(node.func)
    return path is not None and any(atom.text.startswith((f"{path}.", f"{path}[")) for atom in symbol.of)
