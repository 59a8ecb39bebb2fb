"""DT109: a cast back to the dtype of a name that was itself upcast on the way."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.conditions import exclusive
from dtlint.infer.names import path_of
from dtlint.infer.values import Module
from dtlint.infer.walk import SCOPES
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bindings, source_of
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name
from dtlint_rules._needs import attributes
from dtlint_rules._parts import keyword, subject_of
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Condition

__all__ = ["CastBackToSelf"]

_WIDE = {"float": "float32", "double": "float64"}
_ORIGINAL = re.compile(r"^(?:orig(?:inal)?|old|prev(?:ious)?|input|in|initial|source|src)_?d?type$")
"""How the dtype is called that a tensor had before it was cast."""


class CastBackToSelf(Rule):
    """A result cast back to the dtype of its input, which has been rebound to its own upcast.

    ## What it does
    Reports `return f(x).type_as(x)` and `.to(x.dtype)` behind `x = x.float()`, where `x` is a parameter of the
    function and the result is computed from it; and `original_dtype = x.dtype` behind the cast of `x`.

    ## Why it matters
    Behind `x = x.float()` the name `x` means the float32 tensor, so the cast back is to float32: it does nothing, and
    a half model goes on in float32 from here, at twice the memory, or raises `mat1 and mat2 must have the same dtype`
    in the next layer.

    ## Example
    ```python
    import torch

    def rms_norm(x, weight):
        x = x.float()
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * weight).type_as(x)
    ```

    ## Use instead
    ```python
    import torch

    def rms_norm(x, weight):
        dtype = x.dtype
        x = x.float()
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * weight).to(dtype)
    ```

    ## References
    - [torch.Tensor.type_as](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type_as.html)
    """

    code, name = "DT109", "cast-back-to-self"
    calls = frozenset({"to", "type_as", "float", "double", "type"})
    triggers = (".type_as", ".dtype")
    values = frozenset({ast.Attribute})
    needs = (attributes(calls),)

    def __init__(self) -> None:
        self.upcasts: dict[tuple[ast.AST, str], tuple[ast.Assign, list[Condition]]] = {}
        """By scope and name, the statement that rebound a parameter to its own upcast last, and in which branches."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        is_cast, dtypes = call.cast
        if not is_cast or isinstance(call.receiver, Module):
            return ()
        to = _source(call)
        if to is not None:
            return self._judge(call, to)
        if dtypes is not None and len(dtypes) == 1 and next(iter(dtypes)) in ("float32", "float64"):
            self._upcast(call)
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        """`original_dtype = x.dtype`, of what has been cast already."""
        asked = assign.expression
        if not isinstance(asked, ast.Attribute) or asked.attr != "dtype":
            return ()
        if not _ORIGINAL.search((path_of(assign.target) or "").rpartition(".")[2]):
            return ()
        return self._kept_late(assign, asked)

    def _kept_late(self, assign: Assign, asked: ast.Attribute) -> Iterator[Finding]:
        cast = source_of(asked.value, assign.flow)
        if isinstance(cast, ast.Call) and last_name(cast) in _WIDE and not cast.args:
            name = ast.unparse(asked.value)
            yield Finding(
                asked,
                f"`{path_of(assign.target)}` is read after `{name}` was cast to {_WIDE[last_name(cast)]}",
                help=f"Read `{name}.dtype` before the cast",
                notes=((cast, "cast here"),),
            )

    def _upcast(self, call: Call) -> None:
        """`x = x.float()`, of a parameter."""
        statement, flow = call.flow.statement, call.flow
        if not isinstance(statement, ast.Assign) or statement.value is not call.node:
            return
        subject = path_of(subject_of(call.node))
        bound = any(isinstance(target, ast.Name) and target.id == subject for target in statement.targets)
        if bound and subject is not None and any(parameter.arg == subject for parameter in parameters(flow.scope)):
            self.upcasts[flow.scope, subject] = (statement, list(flow.conditions))

    def _judge(self, call: Call, to: str) -> Iterator[Finding]:
        upcast = self.upcasts.get((call.flow.scope, to))
        if upcast is None or exclusive(upcast[1], call.flow.conditions) or not _is_returned(call):
            return
        assert isinstance(call.node.func, ast.Attribute)
        given = call.node.func.value
        if not _mentions(given, _computed_from(to, upcast[0], call)) or any(
            isinstance(node, (ast.Compare, ast.BoolOp, ast.Not)) for node in ast.walk(given)
        ):
            return
        yield Finding(
            call.node,
            f"The cast to the dtype of `{to}` does nothing: `{to}` was cast up itself",
            help=f"Save `{to}.dtype` before the upcast, and cast back to that",
            notes=((upcast[0], f"`{to}` is bound to its own upcast here"),),
        )


def _computed_from(name: str, upcast: ast.Assign, call: Call) -> set[str]:
    """The names that hold what is computed from an upcast where a call stands; none where it is bound anew until there."""
    computed = {name}
    for statement in sorted(statements(call.flow.scope, SCOPES), key=_place_of):
        if not _place_of(upcast) < _place_of(statement) < _place_of(call.flow.statement):
            continue
        for target, value in bindings(statement):
            if _mentions(value, computed):
                computed.add(target)
            elif target == name:
                return set()
    return computed


def _place_of(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _is_returned(call: Call) -> bool:
    """Is the result returned, at once or by way of a name? A result that is used on may need the wide dtype."""
    statement = call.flow.statement
    if isinstance(statement, ast.Return):
        return True
    if not isinstance(statement, ast.Assign) or statement.value is not call.node:
        return False
    names = {path_of(target) for target in statement.targets}
    following = call.flow.block[call.flow.block.index(statement) + 1 :][:1] if statement in call.flow.block else []
    return any(isinstance(node, ast.Return) and path_of(node.value or statement) in names for node in following)


def _source(call: Call) -> str | None:
    """The name whose dtype the cast takes: `.type_as(x)`, `.to(x.dtype)`, `.to(dtype=x.dtype)`, `.to(x)`."""
    if call.method == "type_as" and call.node.args:
        given: ast.expr | None = call.node.args[0]
        return given.id if isinstance(given, ast.Name) else None
    if call.method not in ("to", "type"):
        return None
    for given in (*call.node.args, keyword(call.node, "dtype")):
        if isinstance(given, ast.Attribute) and given.attr == "dtype" and isinstance(given.value, ast.Name):
            return given.value.id
    return None


def _mentions(expression: ast.expr, names: set[str]) -> bool:
    """Does an expression take its values from one of the names, and not just their shape or dtype?"""
    asked = {
        id(node.value)
        for node in ast.walk(expression)
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "device", "ndim", "size")
    }
    return any(
        isinstance(node, ast.Name) and node.id in names and id(node) not in asked for node in ast.walk(expression)
    )
