"""Autocast regions as the syntax shows them, whoever makes them: torch, or a wrapper such as `maybe_autocast`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.values import Tensor, Unknown
from dtlint_rules._names import last_name, said
from dtlint_rules._parts import given
from dtlint_rules._statements import around, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.values import Autocast, Value

__all__ = ["decided_here", "half_from", "is_off", "switches_off"]

_FORCING = ("disable_autocast", "no_autocast", "force_fp32", "float32_ctx", "fp32_context", "custom_fwd")
"""In names of contexts and decorators that keep autocast out."""


def is_off(context: ast.expr) -> bool:
    """Does a context or a decorator switch autocast off: `autocast(..., enabled=False)`, `force_fp32()`?"""
    name = last_name(context).lower()
    if any(word in name for word in _FORCING):
        return True
    if not isinstance(context, ast.Call):
        return False
    off = any(keyword.arg == "enabled" and _is_false(keyword.value) for keyword in context.keywords)
    return off or ("autocast" in name and (_to_float32(context) or any(map(_is_false, context.args))))


def switches_off(scope: ast.AST) -> bool:
    """Does a function run itself, or a part of it, in float32 on purpose: by a `with`, or a decorator?"""
    entered = (node.items for node in statements(scope) if isinstance(node, (ast.With, ast.AsyncWith)))
    contexts = [item.context_expr for items in entered for item in items]
    return any(map(is_off, (*contexts, *getattr(scope, "decorator_list", ()))))


def decided_here(statement: ast.AST, tree: ast.Module) -> bool:
    """Does the program decide here whether autocast is on: by a `with`, or a decorator of a function around it?"""
    return any(_names_autocast(context) for context in _contexts(statement, tree))


def _contexts(statement: ast.AST, tree: ast.Module) -> Iterator[ast.expr]:
    for part in (statement, *around(statement, tree)):
        if isinstance(part, (ast.With, ast.AsyncWith)):
            yield from (item.context_expr for item in part.items)
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from part.decorator_list


def _names_autocast(context: ast.expr) -> bool:
    return is_off(context) or any("autocast" in word.lower() for word in said(context))


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _to_float32(context: ast.Call) -> bool:
    return any(last_name(argument) == "float32" for argument in given(context))


def half_from(value: Value) -> Autocast | None:
    """The autocast region that a value comes from in half; None where it was cast since, or nothing is cast there."""
    if not isinstance(value, (Tensor, Unknown)) or value.under is None or value.under.enabled is False:
        return None
    if value.under.dtype not in LOW_PRECISION:
        return None
    return value.under if isinstance(value, Unknown) or value.dtypes is None or value.dtypes <= LOW_PRECISION else None
