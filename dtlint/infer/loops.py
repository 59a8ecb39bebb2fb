"""Loops over what a module holds: its parameters, its buffers, its submodules, with or without their names."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.conditions import atoms
from dtlint.infer.names import path_of
from dtlint.infer.values import Iteration, Key

if TYPE_CHECKING:
    from dtlint.infer.events import Condition, Flow

__all__ = ["Walk", "walk_over"]

_METHODS = "torch.nn.Module."


@dataclass(slots=True)
class Walk:
    """A `for` loop over a module's parameters, buffers, modules or children.

    Attributes:
        node: the loop.
        kind: what it goes over: `parameters`, `buffers`, `modules`, `children`.
        name: the variable that holds the dotted name, where the loop asks for it.
        of: the module.
        guards: the tests inside the loop under which the program is just now.
    """

    node: ast.For | ast.AsyncFor
    kind: str
    name: str | None
    of: Key | None
    guards: list[Condition]

    @property
    def subject(self) -> ast.expr | None:
        """The expression of the module, where the loop stands over the method's result itself."""
        call = self.node.iter
        return call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None


def walk_over(flow: Flow, item: str) -> Walk | None:
    """The innermost running loop that binds the variable `item` to what a module holds."""
    for loop in reversed(flow.loops):
        bound = {node.id for node in ast.walk(loop.node.target) if isinstance(node, ast.Name)}
        if item not in bound:
            continue
        source = loop.over.source if isinstance(loop.over, Iteration) else ""
        if not source.startswith(_METHODS):
            return None
        method = source.removeprefix(_METHODS)
        name, variable = _variables(loop.node.target) if method.startswith("named_") else (None, loop.node.target)
        if path_of(variable) != item:
            return None
        of = loop.over.of if isinstance(loop.over, Iteration) else None
        kind = method.removeprefix("named_")
        return Walk(loop.node, kind, path_of(name) if name is not None else None, of, _inside(loop.node, flow))
    return None


def _inside(loop: ast.For | ast.AsyncFor, flow: Flow) -> list[Condition]:
    first, last = loop.body[0].lineno, loop.end_lineno or loop.lineno
    return list(atoms(condition for condition in flow.conditions if first <= condition.test.lineno <= last))


def _variables(target: ast.expr) -> tuple[ast.expr | None, ast.expr]:
    """The variables of `for name, item in ...`."""
    if isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) == 2:
        return target.elts[0], target.elts[1]
    return None, ast.Constant(None)
