"""Loops over the parameters, buffers or submodules of a module."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.facts import Guard, ModuleFacts

__all__ = ["Walk", "root_of", "walk_over"]

_KINDS = {"parameters": "parameters", "buffers": "buffers", "modules": "modules", "children": "modules"}


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop over a part of a module.

    Attributes:
        loop: the `for`.
        kind: "parameters", "buffers" or "modules".
        subject: the module, as it is written.
        variable: what is walked over; a name beside it is `name`.
        whole: does it go over all of them?
    """

    loop: ast.For | ast.AsyncFor
    kind: str
    subject: ast.expr
    variable: str
    name: str | None
    whole: bool

    def guards(self, facts: ModuleFacts, node: ast.AST) -> Sequence[Guard]:
        """The tests in the loop that hold where a node is evaluated."""
        return [one for one in facts.around.guards(node) if self.loop in facts.around.around(one.test)]


def root_of(node: ast.expr) -> ast.expr:
    """What a chain of attributes, methods and subscripts begins with: `x` of `x.data[0].float()`."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def walk_over(facts: ModuleFacts, node: ast.expr) -> Walk | None:
    """The loop whose variable an expression is, or begins with as `p.data` does; None where there is none."""
    while isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    found = facts.around.definitions(node)
    loop = found[0] if len(found) == 1 else None
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return None
    walked, target = loop.iter, loop.target
    if isinstance(walked, ast.Call) and isinstance(walked.func, ast.Name) and len(walked.args) == 1:
        walked = walked.args[0]  # `list(model.named_parameters())`
    if not isinstance(walked, ast.Call) or not isinstance(walked.func, ast.Attribute):
        return None
    kind = _KINDS.get(walked.func.attr.removeprefix("named_"))
    names: list[ast.expr] = target.elts if isinstance(target, ast.Tuple) else [target]
    last, first = names[-1], names[0]
    if kind is None or not isinstance(last, ast.Name) or last.id != node.id:
        return None
    name = first.id if len(names) == 2 and isinstance(first, ast.Name) else None
    return Walk(loop, kind, walked.func.value, node.id, name, not (walked.args or walked.keywords))
