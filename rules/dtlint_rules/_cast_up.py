"""Values that a function casts to float32 where they are half, and what is computed from them but not cast with them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import FLOAT32
from dtlint_rules._names import said
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["left_half"]

_HALF = frozenset({"float16", "half", "bfloat16"})


def left_half(operand: ast.expr, scope: ast.AST, *, on_cpu_too: bool) -> ast.expr | None:
    """The cast that shows that an operand may be half: one of what it was computed from, made where that is half, and not
    of the operand; or, unless what follows has half kernels on other devices, one that is made on the CPU alone.

    `if w.dtype in (torch.float16, torch.bfloat16): w = w.float()`, and `merged`, of `merged = w + delta` before that.
    """
    found = list(_casts(scope))
    if not found:
        return None
    origins = origins_of(scope)
    roots = origins[operand]
    cast_up = any(root.kind == Kind.CAST and root.text in FLOAT32 for root in roots)
    for cast, name, alone in found:
        if (cast_up or not roots & origins[name]) and not (alone and on_cpu_too and roots & origins[cast]):
            continue
        if operand.lineno > cast.lineno:
            return cast
    return None


def _casts(scope: ast.AST) -> Iterator[tuple[ast.Call, ast.Name, bool]]:
    """The casts to float32 behind a test for half, each with what is cast, and whether the test asks for the CPU, too."""
    for statement in statements(scope):
        if not isinstance(statement, ast.If):
            continue
        test = statement.test
        asked = _switch(test.id, scope) if isinstance(test, ast.Name) else test
        if asked is None or _HALF.isdisjoint(said(asked)):
            continue
        if any(isinstance(part, (ast.Not, ast.NotEq, ast.NotIn, ast.Or)) for part in ast.walk(asked)):
            continue
        for inner in statement.body:
            cast = inner.value if isinstance(inner, ast.Assign) else None
            if isinstance(cast, ast.Call) and (name := _cast_itself(cast)) is not None:
                yield (
                    cast,
                    name,
                    any(isinstance(part, ast.Constant) and part.value == "cpu" for part in ast.walk(asked)),
                )


def _switch(name: str, scope: ast.AST) -> ast.expr | None:
    """What a switch is set to, but for a constant that it has before."""
    values = [value for _, value in assignments(scope).get(name, ()) if not isinstance(value, ast.Constant)]
    return values[0] if len(values) == 1 else None


def _cast_itself(cast: ast.Call) -> ast.Name | None:
    """`x`, of `x.float()` and `x.to(torch.float32)`."""
    if not isinstance(cast.func, ast.Attribute) or not isinstance(cast.func.value, ast.Name):
        return None
    told = {path_of(argument) for argument in given(cast)}
    up = (cast.func.attr == "float" and not told) or (cast.func.attr in ("to", "type") and bool(told & {*FLOAT32}))
    return cast.func.value if up else None
