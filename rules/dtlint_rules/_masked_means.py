"""Means over what a mask keeps, `(x * mask).sum() / mask.sum()`, in a file that knows that a mask may keep nothing."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import nodes
from dtlint_rules._assignments import source_of
from dtlint_rules._edges import Edge, is_mended, keeps
from dtlint_rules._functions import parameters
from dtlint_rules._masks import is_mask
from dtlint_rules._names import last_name, names_in
from dtlint_rules._parts import below, receiver
from dtlint_rules._statements import statements
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["masked_mean"]

_MEANS = re.compile(r"^_*(?:masked?_(?:mean|avg|average)|(?:mean|avg|average)_(?:with_|over_)?mask(?:ed)?)(?:_|$)")
_SHAPING = (
    "float",
    "double",
    "to",
    "type",
    "type_as",
    "squeeze",
    "unsqueeze",
    "view",
    "reshape",
    "expand_as",
    "expand",
)


def masked_mean(quotient: ast.BinOp, flow: Flow) -> Edge | None:
    """The quotient in a function that is named as a masked mean, whose divisor counts what a mask keeps that it is given."""
    function = flow.function
    if function is None or _MEANS.search(function.name) is None:
        return None
    count = below(quotient.right, _SHAPING)
    mask = _summed(below(source_of(count, flow) or count, _SHAPING))
    name = last_name(mask) if isinstance(mask, ast.Name) else ""
    if mask is None or not is_mask(mask) or all(each.arg != name for each in parameters(flow.scope)):
        return None
    if not _sums(quotient.left, flow) or _is_asked({name, last_name(count)} - {""}, flow) or is_mended(flow.scope):
        return None
    asked = _asked_behind(function.name, flow.tree)
    if asked is None:
        return None
    return Edge(
        f"`{short(quotient.right)}` is 0 for an empty mask: 0/0 is NaN",
        "Clamp the divisor: `.clamp(min=1)`",
        asked,
        "known to be 0 at times here",
        by_name=True,
    )


def _asked_behind(name: str, tree: ast.Module) -> ast.expr | None:
    """Where another function compares the sum of a mask with 0, too late: behind its call of this one."""
    for function in statements(tree):
        if not isinstance(function, ast.FunctionDef) or function.name == name:
            continue
        called = min((call.lineno for call in facts(function).calls if last_name(call) == name), default=None)
        for part in nodes([function]) if called is not None else ():
            if isinstance(part, ast.Compare) and part.lineno > (called or 0) and _is_sum_of_mask(part):
                return part
    return None


def _is_sum_of_mask(test: ast.Compare) -> bool:
    """Is it `mask_sum == 0`, or `mask.sum() > 0`?"""
    other = test.comparators[0]
    if not isinstance(other, ast.Constant) or other.value != 0:
        return False
    said = {word.lower() for word in names_in(test.left)}
    return any("mask" in word for word in said) and any("sum" in word for word in said)


def _summed(node: ast.expr) -> ast.expr | None:
    """`mask`, of `mask.float().sum(-1)` and `torch.sum(mask)`."""
    if not isinstance(node, ast.Call) or last_name(node) != "sum":
        return None
    of_torch = path_of(node.func) in ("torch.sum", "th.sum")
    inner = node.args[0] if of_torch and node.args else receiver(node)
    return None if inner is None else below(inner, _SHAPING)


def _sums(node: ast.expr, flow: Flow) -> bool:
    """Is it a sum, in place or by its name?"""
    made = source_of(node, flow) or node
    return isinstance(made, ast.Call) and "sum" in last_name(made)


def _is_asked(names: set[str], flow: Flow) -> bool:
    """Does a test ask what the mask holds, or is it or its sum changed? That a mask is None says nothing of it."""
    for part in nodes([flow.scope]):
        if isinstance(part, (ast.If, ast.IfExp, ast.Assert, ast.While)):
            if not names.isdisjoint(names_in(part.test)) and not _asks_for_none(part.test):
                return True
        elif isinstance(part, ast.AugAssign):
            if last_name(part.target) in names:
                return True
        elif isinstance(part, ast.Assign):
            if any(isinstance(each, ast.Subscript) and last_name(each.value) in names for each in part.targets):
                return True
            bound = {last_name(target) for target in part.targets}
            if not names.isdisjoint(bound) and any(map(keeps, nodes([part.value]))):
                return True
        elif (
            isinstance(part, ast.Call) and last_name(part).endswith("_") and last_name(receiver(part) or part) in names
        ):
            return True
    return False


def _asks_for_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))
