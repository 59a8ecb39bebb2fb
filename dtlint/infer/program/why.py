"""Why a tensor has its dtype: what happens in each expression, and the one that its dtype comes from. Such links, one after
the other, are the steps back to an origin (told.py).

The reading (claims.py) has what each expression was. A step's reason is read off its own syntax and off the dtypes of the
tensors in it, so that nothing is said which the reading has not shown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.calls import Arguments, cast_target
from dtlint.infer.names import path_of
from dtlint.infer.program.told import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.program.claims import Reading
    from dtlint.infer.program.decided import Decided
    from dtlint.infer.values import Dtypes

__all__ = ["Link", "link"]


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


def link(reading: Reading, node: ast.expr) -> Link:
    """How a tensor expression of a reading got its dtype.

    Raises:
        KeyError: the reading knows of no tensor there.
    """
    known = _known(reading, node)
    if known is None:
        raise KeyError(node)
    cause, reason = _cause(reading, node, known)
    symbolic = None if known.decided is None else known.decided.text
    return Link(known.dtypes, symbolic, reason, cause, isinstance(node, ast.Name) and cause is not None)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a tensor expression: its dtypes, or what decides it."""

    dtypes: Dtypes
    decided: Decided | None
    origin: ast.expr | None

    @property
    def text(self) -> str:
        return shown(self.dtypes) if self.decided is None else self.decided.text

    def has_dtype_of(self, other: _Known) -> bool:
        """Is it of the other's dtype? Of those that have a name: does the same decide both, whatever lifts one of them?"""
        if self.decided is None or other.decided is None:
            return self.decided is other.decided and self.dtypes == other.dtypes
        one, two = self.decided.symbol, other.decided.symbol
        return one.of == two.of and one.met == two.met


def _known(reading: Reading, node: ast.expr) -> _Known | None:
    value = reading.tensors[node][1] if node in reading.tensors else None
    decided = None if reading.knows(node) else reading.decided.get(node)
    if decided is not None:
        return _Known(None if value is None else value.dtypes, decided, decided.origin)
    return None if value is None else _Known(value.dtypes, None, value.origin)


def _cause(reading: Reading, node: ast.expr, known: _Known) -> tuple[ast.expr | None, str]:
    """The expression that decided about this one, and how."""
    if known.origin is not None and known.origin is not node:
        return known.origin, "it has had that dtype since"
    if isinstance(node, ast.Attribute) and _known(reading, node.value) is not None:
        return node.value, "keeps the dtype of its operand"  # `x.T`
    if isinstance(node, (ast.Name, ast.Attribute)):
        return None, "as the program gives it" if known.decided is None else _who_decides(node, known.decided)
    if isinstance(node, ast.Compare):
        return None, "a comparison gives bool"
    if isinstance(node, ast.Call) and _is_cast(node):
        return None, "cast here"
    if isinstance(node, ast.Call) and any(keyword.arg == "dtype" for keyword in node.keywords):
        return None, "the argument `dtype` decides"
    if known.decided is not None and isinstance(node, ast.Call) and _is_of_layer(node, known.decided):
        return None, "the layer's weights decide"
    operands = [
        (child, operand) for child in _operands(reading, node) if (operand := _known(reading, child)) is not None
    ]
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
    if known.decided is not None and (len(known.decided.symbol.of) > 1 or known.decided.symbol.met):
        return None, "its operands are promoted"
    # what decided is no tensor in sight: weights, autocast, the operation's own rule
    return None, f"what this operation gives for {texts}"


def _who_decides(node: ast.Name | ast.Attribute, decided: Decided) -> str:
    weights = isinstance(node, ast.Attribute) and all(atom.floating for atom in decided.symbol.of)
    return "whoever has the module may have cast it" if weights else "the caller decides"


def _is_of_layer(node: ast.Call, decided: Decided) -> bool:
    """Is it a layer that is called, or several in a row, in whose weights' dtype its result is?"""
    path = path_of(node.func)
    return path is not None and any(atom.text.startswith((f"{path}.", f"{path}[")) for atom in decided.symbol.of)


def _operands(reading: Reading, node: ast.expr) -> Iterator[ast.expr]:
    """The tensors that an expression is made of, the outermost ones."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword):
            child = child.value
        if not isinstance(child, ast.expr):
            continue
        if child in reading.tensors or child in reading.decided:
            yield child
        else:
            yield from _operands(reading, child)


def _is_cast(node: ast.Call) -> bool:
    """Is it `x.half()` or `x.to(dtype)`? Which dtype does not matter here."""
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("to", "type", "type_as"):
        return True
    return cast_target(node.func.attr, Arguments(node, [], {}, None))[0]
