"""Which options of a program are tried: those first of which its precision hangs, as its text shows."""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from dtlint.dtypes.dtype import DTYPES, named
from dtlint.infer.domain.values import Const, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Deciding", "deciding_options"]

_Pair = tuple[str, Value]
_AMP = frozenset({"autocast", "GradScaler", "Accelerator", "mixed_precision", "half", "set_default_dtype"})
"""Names of torch's and accelerate's that switch a precision, beside those of dtypes."""
_PRECISIONS = frozenset({"fp16", "bf16", "fp32", "fp64"})
"""How the frameworks' options spell precisions, beside torch's own names."""


class Deciding(NamedTuple):
    """Options with a value that each may be instead of what it is by default."""

    of_precision: list[_Pair]
    of_others: list[_Pair]

    def together(self) -> Iterator[tuple[_Pair, _Pair]]:
        """A switch of which the precision hangs and the name of a precision, as in `--amp --amp-dtype bfloat16`: the one may
        decide whether the other is asked for."""
        switches = [one for one in self.of_precision if isinstance(one[1], Const) and isinstance(one[1].value, bool)]
        return product(switches, filter(lambda one: _is_precision(one[1]), self.of_precision))


def deciding_options(tree: ast.Module, options: Mapping[str, Mapping[Value, None]]) -> Deciding:
    """The options to try: in the order of their definition, but values that name a precision first.

    Args:
        tree: the program.
        options: by name, the constants that each may be instead of what it is by default.
    """
    compared: dict[str, dict[Value, None]] = {}
    near: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for name, value in _compared(node):
                compared.setdefault(name, {})[value] = None
        elif isinstance(node, (ast.If, ast.IfExp)):
            body = node.body if isinstance(node.body, list) else [node.body]
            if _speaks_of_precision(*body):
                near |= _attributes(node.test)
        elif isinstance(node, ast.Call) and _speaks_of_precision(node):
            near.update(*(_attributes(one) for one in (*node.args, *(given.value for given in node.keywords))))
    found = Deciding([], [])
    for name, values in options.items():
        for value in values or compared.get(name, {}):
            decides = name in near or _is_precision(value)
            (found.of_precision if decides else found.of_others).append((name, value))
    found.of_precision.sort(key=lambda pair: not _is_precision(pair[1]))
    return found


def _compared(node: ast.Compare) -> Iterator[_Pair]:
    """The names of attributes, with the texts that they are compared with: what the program tests for can be given."""
    sides = [node.left, *node.comparators]
    texts = [
        part for side in sides for part in (side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side])
    ]
    for side in sides:
        if isinstance(side, ast.Attribute):
            for part in texts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield side.attr, Const(part.value)


def _attributes(node: ast.AST) -> set[str]:
    return {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def _speaks_of_precision(*nodes: ast.AST) -> bool:
    """Does code name a dtype, or what switches one, itself? What it calls or defines is not looked at."""
    for node in nodes:
        for part in ast.walk(node):
            name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else None
            name = part.arg if isinstance(part, ast.keyword) else name
            if name is not None and (name in DTYPES or name in _AMP):
                return True
    return False


def _is_precision(value: Value) -> bool:
    text = value.value if isinstance(value, Const) else None
    return isinstance(text, str) and (text in _PRECISIONS or named(text) is not None)
