"""Parameters that are operands by what a function does with them: in a signature they are floating tensors, of whatever dtype.
A number in the place of one changes no dtype.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.interproc.other_parameters import no_floating_tensors
from dtlint.infer.models.unknown_tensors import is_of_tensors
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["operand_parameters"]


@lru_cache(maxsize=4096)
def operand_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """The parameters of a function that it reckons with, or calls methods on that tensors have, whatever else it asks of
    them; numbers by their defaults, sizes, indices, dtypes and devices aside."""
    if isinstance(function, ast.Lambda):
        return frozenset()
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    without = plain[: len(plain) - len(args.defaults)]
    optional = zip((*plain[len(without) :], *args.kwonlyargs), (*args.defaults, *args.kw_defaults), strict=True)
    without += [one for one, default in optional if default is None or _is_none(default)]
    names = {one.arg for one in without}
    used = names.intersection(name for node in nodes(function.body) for name in _operands(node))
    return frozenset(used - no_floating_tensors(function))


def _is_none(default: ast.expr) -> bool:
    return isinstance(default, ast.Constant) and default.value is None


def _operands(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        yield from (one.id for one in (node.left, node.right) if isinstance(one, ast.Name))
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and is_of_tensors(called.attr):
        yield called.value.id
