"""Autocast and its absence the wrong way round: `nullcontext() if use_amp else autocast(...)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from dtlint.infer.names import path_of
from dtlint_rules._functions import own_nodes
from dtlint_rules._imports import imports
from dtlint_rules._names import last_name, said
from dtlint_rules._statements import statements
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["ABSENT", "Swapped", "swapped"]

ABSENT = ("nullcontext", "ExitStack", "suppress")
"""The contexts that do nothing, as contextlib has them: the last two where they are given nothing."""

_ON = frozenset(
    {
        *("amp", "use_amp", "is_amp", "enable_amp", "amp_enabled", "with_amp"),
        *("autocast", "enable_autocast", "use_autocast", "autocast_enabled"),
        *("mixed_precision_enabled", "use_mixed_precision"),
    }
)
"""What a switch is called that says that mixed precision is on."""
_MIXES_ITSELF = frozenset({"apex", "deepspeed"})
"""Packages that run in mixed precision without autocast: with them on, autocast has to be off."""
_FULL = frozenset({"float32", "float", "float64", "double"})
"""The dtypes with which autocast is off."""
_TURNS = ("is_autocast", "no_", "not_", "disable", "skip", "off", "apex", "deepspeed")
"""What a switch is not computed from, if it is to say that autocast is wanted here."""


@dataclass(slots=True, eq=False)
class Swapped:
    """The autocast context that is entered only where its switch is off, and the test of that."""

    context: ast.expr
    test: ast.expr
    switch: str


def swapped(node: ast.Name | ast.Attribute, flow: Flow) -> Swapped | None:
    """Is autocast, named here, what is taken where a switch that asks for it is off, and no context where it is on?"""
    known = parents_in(flow.scope)
    context: ast.AST = node
    parent = known.get(node)
    is_made = isinstance(parent, ast.Call) and parent.func is node
    if is_made:
        assert isinstance(parent, ast.Call)
        if _is_told(parent):
            return None
        context, parent = parent, known.get(parent)
    assert isinstance(context, ast.expr)
    if isinstance(parent, ast.IfExp):
        if parent.test is context:
            return None
        holds = parent.body is context
        other: ast.expr | None = parent.orelse if holds else parent.body
        test = parent.test
    else:
        branched = _branched(context, parent, known)
        if branched is None:
            return None
        test, other, holds = branched
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        switch, holds = test.operand, not holds
    else:
        switch = test
    if holds or other is None or not _is_absent(other, is_made) or not _is_switch(switch, flow):
        return None
    return Swapped(context, test, ast.unparse(switch))


def _branched(
    context: ast.expr, parent: ast.AST | None, known: dict[ast.AST, ast.AST]
) -> tuple[ast.expr, ast.expr | None, bool] | None:
    """The test of the `if` statement in whose branches the same statement has autocast and something else: that, and
    whether autocast is in the branch where the test holds."""
    statement = known.get(parent) if isinstance(parent, ast.withitem) else parent
    if not isinstance(statement, (ast.Assign, ast.With, ast.Return)) or _role(statement) is None:
        return None
    if isinstance(statement, ast.With) and statement.items[0].context_expr is not context:
        return None
    if not isinstance(statement, ast.With) and statement.value is not context:
        return None
    outer = known.get(statement)
    if not isinstance(outer, ast.If):
        return None
    holds = statement in outer.body
    role = _role(statement)
    others = [_value(each) for each in (outer.orelse if holds else outer.body) if _role(each) == role]
    return (outer.test, others[0], holds) if len(others) == 1 else None


def _role(statement: ast.AST) -> str | None:
    """What a statement does with a context: which name it binds, that it enters it, or returns it."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return path_of(statement.targets[0])
    if isinstance(statement, ast.With):
        return "with" if len(statement.items) == 1 else None
    return "return" if isinstance(statement, ast.Return) else None


def _value(statement: ast.AST) -> ast.expr | None:
    if isinstance(statement, ast.With):
        return statement.items[0].context_expr
    return statement.value if isinstance(statement, (ast.Assign, ast.Return)) else None


def _is_told(call: ast.Call) -> bool:
    """Is autocast told itself whether it is on, or may it be?"""
    for keyword in call.keywords:
        if keyword.arg is None:
            return True
        if keyword.arg == "enabled" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True):
            return True
        if keyword.arg == "dtype" and last_name(keyword.value) in _FULL:
            return True
    for argument in call.args:
        if last_name(argument) in _FULL:
            return True
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            continue
        if not any(part in ast.unparse(argument).lower() for part in ("device", "type", "float16", "half")):
            return True
    return False


def _is_absent(node: ast.expr, is_made: bool) -> bool:
    """Is it a context that does nothing; or the class of one, beside autocast's?"""
    if is_made:
        return isinstance(node, ast.Call) and last_name(node) in ABSENT and not node.args and not node.keywords
    return not isinstance(node, ast.Call) and last_name(node) == ABSENT[0]


def _is_switch(node: ast.expr, flow: Flow) -> TypeGuard[ast.Name | ast.Attribute]:
    """Does it say that mixed precision is on, by its name and by all that it is bound to? Not where the file has another
    way to mix, or asks whether autocast is on already."""
    path = path_of(node)
    if path is None or last_name(node) not in _ON or not _MIXES_ITSELF.isdisjoint(imports(flow.tree)):
        return False
    if any(part in path for part in ("apex", "deepspeed")):
        return False
    places = own_nodes(flow.scope) if isinstance(node, ast.Name) else ()
    for statement in (*statements(flow.tree), *(place for place in places if isinstance(place, ast.NamedExpr))):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name) == path for alias in statement.names):
                return False
            continue
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, (ast.AnnAssign, ast.NamedExpr)) and statement.value is not None:
            targets = [statement.target]
        else:
            continue
        if any(path_of(target) == path for target in targets) and _turns(statement.value):
            return False
    return True


def _turns(value: ast.expr | None) -> bool:
    """May a switch that is bound to this say the opposite, or that autocast is on already?"""
    if value is None:
        return False
    if any(isinstance(part, (ast.Not, ast.NotEq, ast.NotIn, ast.IsNot)) for part in ast.walk(value)):
        return True
    return any(part in name.lower() for name in said(value) for part in _TURNS)
