"""A loss that was scaled for the backward pass, and is then told as if it were the loss."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.survey import facts
from dtlint.infer.values import UNKNOWN, Tensor, Unknown
from dtlint.rule import Finding
from dtlint_rules._assignments import source_of
from dtlint_rules._names import last_name, said, words
from dtlint_rules._parts import receiver
from dtlint_rules._texts import short
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["told_scaled"]

_PLAIN = frozenset({"detach", "cpu", "mean", "sum", "clone", "data", "float"})
"""What is done to a loss before it is told, and leaves its scale."""
_ASKING = frozenset({"isfinite", "isinf", "isnan"})


def told_scaled(call: Call) -> Iterator[Finding]:
    """`scaler.scale(loss).item()`, and `loss.item()` behind `loss = scaler.scale(loss)`.

    Who computes with the number, asks whether it is finite, or speaks of a scaled loss, means it.
    """
    held, value = receiver(call.node), call.receiver
    while isinstance(held, ast.Call) and last_name(held) in _PLAIN and receiver(held) is not None:
        held = receiver(held)
        value = call.flow.state.names.get(held.id, UNKNOWN) if isinstance(held, ast.Name) else UNKNOWN
    if not isinstance(value, (Tensor, Unknown)) or value.scaled is None:
        return
    scale = source_of(held, call.flow) if isinstance(held, ast.Name) else held
    if held is None or not isinstance(scale, ast.Call) or last_name(scale) != "scale" or not scale.args:
        return
    if "gradscaler" not in words(call.flow.tree) or _is_computed_with(call):
        return  # a scaler of data scales, too
    if any("scale" in word.lower() for word in _told_as(held, call)):
        return
    yield Finding(
        call.node,
        f"This is the scaled loss: `{short(scale.args[0])}` times 65536 at first",
        help="Read the loss before it is scaled",
        notes=((scale, "scaled here"),) if scale.lineno != call.node.lineno else (),
        severity=Severity.WARNING,
    )


def _is_computed_with(call: Call) -> bool:
    """Is the number divided, compared, or asked whether it is finite, here or where the function has the scale in hand?"""
    if any(last_name(each) == "get_scale" for each in facts(call.flow.scope).calls):
        return True
    return any(
        isinstance(part, (ast.BinOp, ast.Compare)) or (isinstance(part, ast.Call) and last_name(part) in _ASKING)
        for part in within(call.node, call.flow)
    )


def _told_as(held: ast.expr, call: Call) -> Iterator[str]:
    """What the number is called: the name that is scaled, and what it is bound to, or told together with."""
    if isinstance(held, ast.Name):
        yield held.id
    statement = call.flow.statement
    for target in statement.targets if isinstance(statement, ast.Assign) else ():
        yield from said(target)
    for part in within(call.node, call.flow):
        if isinstance(part, (ast.JoinedStr, ast.Dict, ast.keyword)):
            yield from said(part)
        elif isinstance(part, ast.Call):
            yield from (word for given in part.args if isinstance(given, ast.Constant) for word in said(given))
