"""What a name stands for, whether it was assigned alone or as one of a pair: `std, mean = torch.std_mean(x)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["named"]

_PAIRS = {"std_mean": ("std", "mean"), "var_mean": ("var", "mean"), "aminmax": ("min", "max")}
"""What computes two reductions at once, and which."""


def named(node: ast.expr, flow: Flow) -> ast.expr:
    """The expression behind a name that was assigned in the running function."""
    return source_of(node, flow) or _of_pair(node, flow) or node


def _of_pair(node: ast.expr, flow: Flow) -> ast.expr | None:
    """`x.std()`, of the first of the names that are bound by `std, mean = torch.std_mean(x)`."""
    if not isinstance(node, ast.Name) or facts(flow.scope).called.isdisjoint(_PAIRS):
        return None
    if all(value is not None for _, value in assignments(flow.scope).get(node.id, ())):
        return None
    for statement in statements(flow.scope):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        pair, target = _PAIRS.get(last_name(statement.value)), statement.targets[0]
        if pair is None or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            continue
        call = statement.value
        of_torch = (path_of(call.func) or "").rpartition(".")[0] in ("torch", "th")
        subject = call.args[0] if of_torch and call.args else receiver(call)
        for name, reduction in zip(target.elts, pair, strict=True):
            if isinstance(name, ast.Name) and name.id == node.id and subject is not None:
                made = ast.Call(ast.Attribute(subject, reduction, ast.Load()), [], [])
                return ast.fix_missing_locations(ast.copy_location(made, call))
    return None
