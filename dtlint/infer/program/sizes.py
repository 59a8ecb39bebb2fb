"""Whole numbers by use: what a layer or a factory of torch takes for a size can be nothing but an int, or it raises."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of

if TYPE_CHECKING:
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["sizes_in"]

_SIZED = frozenset({f"{owner}.{layer}" for owner in ("nn", "torch.nn") for layer in ("Linear", "Embedding")})
"""Layers whose first two arguments are sizes. Seen on torch 2.13: a float among them raises a TypeError."""
_NOT_ALWAYS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def sizes_in(function: FunctionInfo) -> frozenset[str]:
    """The dotted paths, such as `config.vocab_size`, that a function hands to torch as sizes whenever it runs to its
    end, and that it does not bind itself."""
    return frozenset() if isinstance(function.node, ast.Lambda) else _sizes(function.node)


@lru_cache(maxsize=512)
def _sizes(node: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    found: set[str] = set()
    for statement in node.body:
        parts = list(ast.walk(statement))
        if isinstance(statement, ast.Return) or any(isinstance(part, ast.Return) for part in parts):
            break
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)) and not any(
            isinstance(part, _NOT_ALWAYS) for part in parts
        ):
            found.update(path for part in parts if isinstance(part, ast.Call) for path in _given_as_sizes(part))
    if not found:
        return frozenset()
    bound = {
        path_of(part) for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute)) and _is_bound(part)
    }
    return frozenset(path for path in found if not any(one and f"{path}.".startswith(f"{one}.") for one in bound))


def _is_bound(node: ast.Name | ast.Attribute) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _given_as_sizes(call: ast.Call) -> set[str]:
    if path_of(call.func) not in _SIZED:
        return set()
    return {path for arg in call.args[:2] if (path := path_of(arg)) is not None}
