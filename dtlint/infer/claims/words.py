"""What decides a dtype that is not known, in words: "the dtype of `x`, if that is floating, outside autocast"."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.interproc.signatures import parameter_key
from dtlint.infer.walk import nodes, parts
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from dtlint.infer.domain.values import Symbol

__all__ = ["Scopes", "in_words"]

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def in_words(symbol: Symbol, function: _Function) -> str | None:
    """What decides, as a function calls it; None where it has no name there for all of that."""
    given = set(map(parameter_key, named_parameters(function)))
    if not all(atom.key in given or atom.text.startswith("self.") for atom in symbol.of):
        return None
    bound = _bound_in(function)
    names = sorted(f"`{atom.text}`" + " as given" * (atom.text in bound) for atom in symbol.of) + sorted(symbol.met)
    where = ", outside autocast" if symbol.outside else ""
    return f"{_names(names, len(symbol.of))}{_condition(symbol)}{where}"


@lru_cache(maxsize=1024)
def _bound_in(function: _Function) -> frozenset[str]:
    """The names that a function assigns."""
    return frozenset(
        part.id for part in nodes([function]) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )


def _names(names: list[str], atoms: int) -> str:
    if len(names) == 1:
        return f"the dtype of {names[0]}"
    if atoms == 1:
        return f"the dtype of {names[0]} promoted with {' and '.join(names[1:])}"
    return f"the dtypes of {', '.join(names[:-1])} and {names[-1]} promoted"


def _condition(symbol: Symbol) -> str:
    """Where another dtype would come out: an integer is lifted by `x * 0.5`, a truth by `x + 1`."""
    if symbol.least is Category.BOOL or all(atom.floating for atom in symbol.of):
        return ""
    several = len(symbol.of) > 1
    if symbol.least is Category.INTEGER:
        return f", unless {'one' if several else 'that'} is bool"
    return ", if all are floating" if several else ", if that is floating"


class Scopes:
    """The functions of a file, by what they hold: of those in one another the outermost."""

    def __init__(self, tree: ast.Module) -> None:
        self._of: dict[ast.AST, _Function] = {}
        waiting: list[ast.AST] = [tree]
        while waiting:
            for node in parts(waiting.pop()):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    self._of.update((part, node) for statement in node.body for part in nodes([statement]))
                else:
                    waiting.append(node)

    def around(self, node: ast.AST) -> _Function | None:
        """The function whose body an expression is in."""
        return self._of.get(node)
