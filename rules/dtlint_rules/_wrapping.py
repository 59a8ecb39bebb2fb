"""Sums and differences of uint8 tensors that are used as if they could not wrap around."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor
from dtlint_rules._attained import found, last_name_of, one_number, only

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["wrapped"]

_UINT8 = frozenset({"uint8"})
_SIZES = frozenset({"abs", "absolute", "pow", "square"})
"""What asks how large a difference is."""
_LARGEST = frozenset({"max", "amax", "maximum"})
_SMALLEST = frozenset({"min", "amin", "minimum"})
_VIEWS = frozenset({"unsqueeze", "squeeze", "view", "reshape", "expand", "expand_as", "repeat", "clone", "contiguous"})
_PARTS = frozenset({"div", "floor_divide", "bitwise_right_shift", "true_divide"})
"""What takes the mean of a sum."""


_SAME = frozenset({"eq", "ne", "bool"})
"""What asks of a difference only whether there is one, which wrapping around does not change."""


def wrapped(facts: ModuleFacts) -> Iterator[Finding]:
    """The sizes of differences and the means of sums of uint8; where the caller's tensors are assumed to be uint8, also the
    differences themselves, and squares."""
    is_assumed = facts.assumption is not None and facts.assumption.inputs == "uint8"

    def said(one: Operation) -> str | None:
        return (_leaves(one) or _uses_sum(one)) if is_assumed else (_uses_difference(one) or _uses_sum(one))

    wrapping = list(facts.operations(lambda one: said(one) is not None))
    tree = ast.walk(facts.tree) if wrapping else ()
    asked = {id(one) for node in tree for one in _of_size(_only_compared(node))}
    for seen in wrapping:
        text = said(seen.what)
        if text is not None and id(seen.node) not in asked and not _is_from_largest(facts, seen.node):
            yield found(seen, text, "Cast to int16 or float first")


def _only_compared(node: ast.AST) -> Iterator[ast.expr]:
    """What a node only asks to be 0, or to be the same as something else."""
    if isinstance(node, ast.Compare) and all(isinstance(one, (ast.Eq, ast.NotEq)) for one in node.ops):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        yield node.func.value


def _of_size(nodes: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """The same, and what they are the size of: `x` of `x.abs()`."""
    for node in nodes:
        yield node
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SIZES:
            node = node.func.value
            yield node


def _is_from_largest(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is it a difference of what is at least as large: `x.amax() - x`, `x - x.amin()`?"""
    operands = [node.left, node.right] if isinstance(node, ast.BinOp) else getattr(node, "args", ())
    return len(operands) == 2 and any(
        _maker_of(facts, one) in names for one, names in zip(operands, (_LARGEST, _SMALLEST), strict=True)
    )


def _maker_of(facts: ModuleFacts, node: ast.expr) -> str:
    """The method or the function that made a tensor, behind variables and views of it."""
    for _ in range(8):
        if isinstance(node, ast.Name):
            made = facts.around.definitions(node)
            one = made[0] if len(made) == 1 else None
            if isinstance(getattr(one, "ctx", None), ast.Store) and one is not None:
                statement = facts.around.statement(one)
                one = statement.value if isinstance(statement, ast.Assign) else None
            if not isinstance(one, ast.expr):
                return ""
            node = one
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _VIEWS:
                return node.func.attr
            node = node.func.value
        else:
            return ""
    return ""


def _leaves(operation: Operation) -> str | None:
    """What an operation does that leads out of uint8 for many of the numbers that an image holds."""
    name = last_name_of(operation)
    if not operation.args or not all(only(one, _UINT8) for one in (operation.args[0], operation.result)):
        return None
    if any(isinstance(one, Tensor) and any(kind == "wraps" for kind, _ in one.extra) for one in operation.args):
        return None  # that is said of what went before
    other = operation.args[1] if len(operation.args) > 1 else None
    number = one_number(other)
    from_number = isinstance(operation.node, ast.BinOp) and not isinstance(operation.node.right, ast.Constant)
    if name == "sub" and (only(other, _UINT8) or (number is not None and number >= 2 and not from_number)):
        return "A difference of uint8 wraps around below 0: 1 - 2 is 255"
    if name == "neg":
        return "A negative of uint8 wraps around: -1 is 255"
    if name == "square" or (name == "pow" and number is not None and number >= 2):
        return "A power of uint8 wraps around beyond 255: 16 squared is 0"
    return None


def _uses_difference(operation: Operation) -> str | None:
    if _is_from(operation, "sub") and last_name_of(operation) in _SIZES:
        return "A difference of uint8 tensors wraps around below 0: 1 - 2 is 255"
    return None


def _uses_sum(operation: Operation) -> str | None:
    if not _is_from(operation, "add") or last_name_of(operation) not in _PARTS:
        return None
    is_mean = (one_number(operation.args[-1]) or 0) >= 1
    return "A sum of uint8 tensors wraps around beyond 255: 200 + 100 is 44" if is_mean else None


def _is_from(operation: Operation, name: str) -> bool:
    """Is its operand the result of another of that name that may have wrapped around?"""
    first = operation.args[0] if operation.args else None
    return isinstance(first, Tensor) and ("wraps", name) in first.extra
