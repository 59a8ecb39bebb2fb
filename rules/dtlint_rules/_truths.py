"""Where `or` gives a bool in place of the dtype behind it: `dtype = x is None or torch.float16`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._functions import own_nodes
from dtlint_rules._meanings import written_dtype
from dtlint_rules._names import last_name
from dtlint_rules._parts import same
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Truth", "bools_for_dtypes"]

_ASKING = frozenset({"isinstance", "issubclass", "hasattr", "callable", "bool"})
_TAKE = frozenset({"to", "type", "autocast", "astype"})
"""What is called with a dtype by position."""


@dataclass(slots=True, eq=False)
class Truth:
    """The `or`, what in front of the dtype is a bool, and the `a` of `a and a != b`, where it is that."""

    whole: ast.BoolOp
    asked: ast.expr
    meant: ast.expr | None


def bools_for_dtypes(scope: ast.AST) -> Iterator[Truth]:
    """Each `or` of a function that is used for a value, whose last side is a dtype, and of which another side is a bool."""
    for whole in own_nodes(scope):
        if type(whole) is not ast.BoolOp or type(whole.op) is not ast.Or or written_dtype(whole.values[-1]) is None:
            continue
        for side in whole.values[:-1]:
            if _is_bool(side) and not _compares_dtypes(side) and _is_given(whole, parents_in(scope)):
                yield Truth(whole, side, _meant(side) if len(whole.values) == 2 else None)
                break


def _is_given(whole: ast.BoolOp, known: dict[ast.AST, ast.AST]) -> bool:
    """Is it bound to a name, returned, or given for a dtype?"""
    parent = known.get(whole)
    if isinstance(parent, ast.IfExp):
        if parent.test is whole:
            return False
        parent = known.get(parent)
    if isinstance(parent, (ast.Assign, ast.AnnAssign)):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return any("type" in last_name(target).lower() for target in targets)
    if isinstance(parent, ast.keyword):
        return parent.arg is not None and parent.arg.endswith("dtype")
    return isinstance(parent, ast.Call) and whole in parent.args and last_name(parent) in _TAKE


def _is_bool(node: ast.expr) -> bool:
    """Is it True or False, where it is true?"""
    if isinstance(node, ast.BoolOp):
        return isinstance(node.op, ast.And) and _is_bool(node.values[-1])
    if isinstance(node, ast.Compare):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    return isinstance(node, ast.Call) and path_of(node.func) in _ASKING


def _compares_dtypes(node: ast.expr) -> bool:
    """`x.dtype == torch.float16`, where another dtype is forgotten to be compared with: a bool is meant."""
    if not isinstance(node, ast.Compare):
        return False
    return written_dtype(node.comparators[-1]) is not None


def _meant(node: ast.expr) -> ast.expr | None:
    """The `a` of `a and a != "auto"`."""
    if not isinstance(node, ast.BoolOp) or len(node.values) != 2:
        return None
    first, asked = node.values
    if not isinstance(asked, ast.Compare) or len(asked.ops) != 1 or not same(asked.left, first):
        return None
    is_path = path_of(first) is not None
    return first if is_path and isinstance(asked.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn)) else None
