"""The edge at which a function ends, and what keeps a value from there.

Beyond it the function is NaN, and at the edge itself its gradient is infinite.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import assignments
from dtlint_rules._names import last_name, names_in
from dtlint_rules._parts import receiver, same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow

__all__ = ["Edge", "behind", "is_called_epsilon", "is_compared", "is_kept", "is_mended", "is_one", "is_tested", "keeps"]

_KEEPING = re.compile(
    r"clamp|clip|safe|stable|^(?:min|max|amin|amax|minimum|maximum|where|tanh|hardtanh|nan_to_num|masked_fill)_?$"
)
"""Calls that keep a value from the edge."""
_EPSILON = re.compile(r"(?:^|_)(?:eps|epsilon|tiny|delta|tol)(?:_|$|\d)")
_MENDING = frozenset(
    {"where", "masked_fill", "masked_fill_", "nan_to_num", "nan_to_num_", "isnan", "isinf", "isfinite", "nanmean"}
)
"""Calls that replace what is NaN, or ask for it."""
_NOT_VALUES = frozenset({"self", "torch", "th", "F"})
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class Edge:
    """What happens at the edge, what to write instead, and where the value comes from."""

    happens: str
    help: str
    made: ast.expr | None = None
    why: str = "computed here"
    """What stands there."""
    by_name: bool = False
    """Does no more than a name say what the value is?"""


def is_kept(node: ast.expr, flow: Flow, *, above: bool = False) -> bool:
    """Is a value kept from the edge by a clamp, an epsilon or a test, here or where the names in it were assigned?"""
    return any(map(keeps, behind(node, flow, above=above))) or is_tested(node, flow, above=above)


def is_tested(node: ast.expr, flow: Flow, *, above: bool = False) -> bool:
    """Does a test ask for a name that a value is made of, or is one of them changed in place?"""
    names = {part.id for part in behind(node, flow, above=above) if isinstance(part, ast.Name)} - _NOT_VALUES
    for part in nodes([flow.scope]):
        if isinstance(part, (ast.If, ast.IfExp, ast.Assert, ast.While)):
            if not names.isdisjoint(names_in(part.test)):
                return True
        elif isinstance(part, ast.Call):
            if last_name(part).endswith("_") and last_name(receiver(part) or part) in names:
                return True
        elif isinstance(part, ast.AugAssign):
            if last_name(part.target) in names:
                return True
        elif isinstance(part, ast.Assign) and any(
            isinstance(target, ast.Subscript) and last_name(target.value) in names for target in part.targets
        ):
            return True
    return False


def is_compared(node: ast.expr, flow: Flow) -> bool:
    """Is a name compared with anything, if only for a flag or a mask: `out[total == 0] = 0`?"""
    path = path_of(node)
    return path is not None and any(
        isinstance(part, ast.Compare) and path in (path_of(part.left), *map(path_of, part.comparators))
        for part in nodes([flow.scope])
    )


def is_mended(scope: ast.AST, above: ast.expr | None = None) -> bool:
    """Does a function replace the NaN behind the edge: by `torch.where`, or by `h[torch.isnan(h)] = 0`? A choice of what
    lies `above` something, `torch.where(cosine > 0, phi, cosine)`, takes what lies beyond the edge as well."""
    return any(
        last_name(call) in _MENDING and not (above is not None and _takes_greater(call, above))
        for call in facts(scope).calls
    )


def _takes_greater(call: ast.Call, than: ast.expr) -> bool:
    asked = call.args[0] if last_name(call) == "where" and len(call.args) == 3 else None
    return isinstance(asked, ast.Compare) and isinstance(asked.ops[0], (ast.Gt, ast.GtE)) and same(asked.left, than)


def behind(node: ast.expr, flow: Flow, *, above: bool = False) -> Iterator[ast.AST]:
    """The parts of an expression, and of all that the names in it are assigned; `above` the expression alone, if it is no
    loop that may bring what stands below."""
    last = node.lineno if above and not flow.loops else sys.maxsize
    waiting, asked = [node], set[str]()
    while waiting:
        for part in nodes([waiting.pop()]):
            yield part
            if isinstance(part, ast.Name) and part.id not in asked and len(asked) < _MOST_NAMES:
                asked.add(part.id)
                bound = assignments(flow.scope).get(part.id, ())
                waiting += [value for line, value in bound if value is not None and line <= last]


def keeps(part: ast.AST) -> bool:
    """Does a part of an expression keep it from the edge: a clamp, an epsilon, a small number, `x[x > 0]`?"""
    if isinstance(part, ast.Call):
        return _KEEPING.search(last_name(part)) is not None
    if isinstance(part, (ast.Name, ast.Attribute)):
        return is_called_epsilon(part)
    if isinstance(part, ast.Constant):
        # 1e-6 and 0.9999 move a value from the edge; 1, 2 and 0.5 belong to the formula
        return isinstance(part.value, float) and part.value % 0.5 != 0
    return isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Compare)


def is_called_epsilon(node: ast.AST) -> bool:
    return _EPSILON.search(last_name(node).lower()) is not None


def is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
