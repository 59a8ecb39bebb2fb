"""Whole numbers by use: what a layer of torch takes for a size can be nothing but an int, or it raises."""

from __future__ import annotations

import ast
from functools import lru_cache

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes

__all__ = ["sizes_in"]

_SIZED = frozenset({f"{owner}.{layer}" for owner in ("nn", "torch.nn") for layer in ("Linear", "Embedding")})
"""Layers whose first two arguments are sizes."""
_NOT_ALWAYS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@lru_cache(maxsize=512)
def sizes_in(node: ast.AST) -> frozenset[str]:
    """The dotted paths, as `config.vocab_size`, that a function hands to torch as sizes whenever it runs to its end, and
    that it does not bind itself."""
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return frozenset()
    found: set[str] = set()
    for statement in node.body:
        parts = list(nodes([statement]))
        if any(isinstance(part, ast.Return) for part in parts):
            break
        plain = isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr))
        if plain and not any(isinstance(part, _NOT_ALWAYS) for part in parts):
            found.update(path for part in parts if isinstance(part, ast.Call) for path in _given_as_sizes(part))
    if not found:
        return frozenset()
    bound = {
        path_of(part)
        for part in nodes([node])
        if isinstance(part, (ast.Name, ast.Attribute)) and not isinstance(part.ctx, ast.Load)
    }
    return frozenset(path for path in found if not any(one and f"{path}.".startswith(f"{one}.") for one in bound))


def _given_as_sizes(call: ast.Call) -> set[str]:
    if path_of(call.func) not in _SIZED:
        return set()
    return {path for argument in call.args[:2] if (path := path_of(argument)) is not None}
