"""Ones and zeros that are cast to float32 by hand, and then multiplied with a tensor of any dtype.

`x * (labels == other).float()` is float32 whatever `x` is: the mask has no digits to keep, and takes its dtype along.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.rule import Finding
from dtlint_rules._assignments import assignments, bound_once
from dtlint_rules._effects import FLOAT32, TORCH
from dtlint_rules._masks import inverted, is_mask
from dtlint_rules._names import last_name
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given, receiver
from dtlint_rules._sinks import escapes
from dtlint_rules._texts import as_operand, short
from dtlint_rules._widths import is_uncast
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import End

__all__ = ["cast_flags", "casts_flags", "is_scaled", "of_masks"]

_GIVING_FLAGS = frozenset(
    {
        *("one_hot", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"),
        *("logical_not", "logical_xor", "isin", "bool"),
    }
)
_VIEWS = frozenset(
    {"unsqueeze", "squeeze", "view", "reshape", "expand", "expand_as", "repeat", "permute", "transpose"}
    | {"contiguous", "flatten", "t", "detach", "clone"}
)
_KEEPING_FLAGS = _VIEWS | {"to", "cuda", "cpu", "int", "long"}
"""Methods behind which ones and zeros are ones and zeros still."""
_TELLING = (ast.Call, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Subscript)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)
_ADDING_UP = frozenset({"sum", "mean"})


def casts_flags(scope: ast.AST) -> bool:
    """Does a function cast flags to float32? Ask it before origins are read."""
    floats = facts(scope).floats
    if any(node.attr == "float" and _are_flags(node.value, scope) for node in floats):
        return True
    names_it = any(node.attr == "float32" or path_of(node.value) in TORCH for node in floats)
    return names_it and any(_is_cast_of_flags(call, scope) for call in facts(scope).telling)


def cast_flags(mask: ast.expr, scope: ast.AST) -> ast.Call | None:
    """The cast by which flags became float32, here or where the name is bound; None where it is more than that."""
    node = _below_views(mask)
    if not isinstance(node, ast.Name):
        return node if isinstance(node, ast.Call) and _is_cast_of_flags(node, scope) else None
    made = [(line, value and _below_views(value)) for line, value in assignments(scope).get(node.id, ())]
    made = [(line, value) for line, value in made if not (isinstance(value, ast.Name) and value.id == node.id)]
    casts = [(line, value) for line, value in made if isinstance(value, ast.Call) and _is_cast_of_flags(value, scope)]
    above = [cast for line, cast in casts if line <= node.lineno]
    return above[-1] if above and len(casts) == len(made) else None


def is_scaled(mask: ast.expr, scope: ast.AST) -> bool:
    """Is it a mask that is added to scores, `(1.0 - m) * -1e4`, here or where the name that stands here is bound?"""
    made = [value for _, value in assignments(scope).get(mask.id, ())] if isinstance(mask, ast.Name) else [mask]
    return any(isinstance(value, ast.BinOp) and _scaled(value) is not None for value in made)


def _below_views(node: ast.expr) -> ast.expr:
    """What is put in another form: `m` of `m[:, None].expand(n, 4)`, `F.interpolate(m, size=8)`, `(1.0 - m) * -1e4`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp):
            kept = inverted(node) or _scaled(node)
            if kept is None:
                return node
            node = kept
        elif isinstance(node, ast.Call) and last_name(node) == "interpolate" and node.args:
            node = node.args[0]
        elif isinstance(node, ast.Call) and last_name(node) in _VIEWS and (held := receiver(node)) is not None:
            node = held
        else:
            return node


def _scaled(node: ast.BinOp) -> ast.expr | None:
    """What is multiplied with a number: `m`, of `m * -1e4`, of `m * torch.finfo(dtype).min`."""
    if not isinstance(node.op, ast.Mult):
        return None
    for number, other in ((node.right, node.left), (node.left, node.right)):
        of_range = isinstance(number, ast.Attribute) and last_name(number.value) == "finfo"
        inner = number.operand if isinstance(number, ast.UnaryOp) else number
        if of_range or isinstance(inner, ast.Constant):
            return other
    return None


def _is_cast_of_flags(node: ast.Call, scope: ast.AST) -> bool:
    name, held = last_name(node), receiver(node)
    if held is None or name not in ("float", "to", "type"):
        return False
    if name == "float" and (node.args or node.keywords):
        return False
    told = [path_of(part) for part in given(node)]
    return (name == "float" or (len(told) == 1 and told[0] in FLOAT32)) and _are_flags(held, scope)


def _are_flags(node: ast.expr, scope: ast.AST, *, named: bool = False) -> bool:
    """Does an expression give flags, or ones and zeros, as far as it reads? A name is followed to its value, once."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _BITS):
        return _are_flags(node.left, scope, named=named) or _are_flags(node.right, scope, named=named)
    if isinstance(node, ast.Call) and last_name(node) in _GIVING_FLAGS:
        return True
    if not isinstance(node, (ast.Call, ast.Subscript)) and is_mask(node):
        return True
    if isinstance(node, ast.Name) and not named:
        made = bound_once(node.id, scope)
        return made is not None and isinstance(made, _TELLING) and _are_flags(made, scope, named=True)
    if isinstance(node, ast.Subscript):
        return _are_flags(node.value, scope, named=named)
    inner = receiver(node) if last_name(node) in _KEEPING_FLAGS else None
    return inner is not None and _are_flags(inner, scope, named=named)


def of_masks(end: End) -> Iterator[Finding]:
    """`x * (labels == other).float()`, which comes out of the function or goes into a layer."""
    origins = origins_of(end.node)
    told: set[ast.expr] = set()
    for node in reversed([node for node in origins.of if isinstance(node, (ast.BinOp, ast.Call))]):
        sides = _multiplied(node)
        for mask, other in (sides, sides[::-1]) if sides else ():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and not is_scaled(mask, end.node):
                continue
            cast = cast_flags(mask, end.node)
            if cast is None or cast in told or not is_uncast(other, origins[other]):
                continue
            if _is_summed(node, end.node) or not escapes(node, end.node, end.flow.tree):
                continue
            told.add(cast)
            yield Finding(
                cast,
                f"`{short(cast)}` promotes a half `{short(other)}` to float32",
                help=f"Cast the mask with `.to({as_operand(other)}.dtype)`",
                notes=((node, "they meet here"),) if node.lineno != cast.lineno else (),
                conditional=True,
            )


def _multiplied(node: ast.BinOp | ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The two factors of a product, or what is added up: `x * mask`, `x.mul(mask)`, `scores + (1.0 - mask) * -1e4`."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right) if isinstance(node.op, (ast.Mult, ast.Add)) else None
    if last_name(node) in ("mul", "multiply") and node.args:
        held = receiver(node)
        of_torch = held is not None and path_of(held) in TORCH
        factors = node.args if of_torch or held is None else [held, *node.args]
        return (factors[0], factors[1]) if len(factors) == 2 else None
    return None


def _is_summed(node: ast.expr, scope: ast.AST) -> bool:
    """Is a product added up where it stands, as in the mean over tokens? A sum is well kept in float32."""
    around = parents_in(scope)
    parent = around.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _ADDING_UP
    return (
        isinstance(parent, ast.Call)
        and last_name(parent) in _ADDING_UP
        and bool(parent.args)
        and parent.args[0] is node
    )
