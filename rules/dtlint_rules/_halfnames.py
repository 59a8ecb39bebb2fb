"""Names that hold half, as one function hands it on: from a cast, through models and arithmetic, to a loss.

What a model returns is unknown to inference. But `latents = vae.encode(x.to(weight_dtype)).sample()` computes in
`weight_dtype`, whatever `vae` is, and so does what is made of `latents`, until somebody writes `.float()`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.calls import dtype_of
from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint_rules._half import is_half
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from dtlint.infer.events import Assign, Call, Flow
    from dtlint.infer.values import Value

__all__ = ["CASTS", "HalfNames"]

CASTS = frozenset({"half", "bfloat16", "float", "double", "to", "type"})
"""The methods that a rule has to hand on for this, besides what it asks about itself."""

_NO_TENSOR = frozenset(
    {"shape", "device", "dtype", "size", "item", "dim", "ndim", "numel", "tolist", "config", "long", "int"}
)
"""What a half tensor tells of itself is no half."""
_WIDE = frozenset({"float", "double"})


class HalfNames:
    """Follows half through the names of each function, in the order in which it runs. A rule hands on what it hears."""

    def __init__(self) -> None:
        self.casts: set[ast.Call] = set()
        """Calls that cast to what is half on some path."""
        self.widened: set[ast.Call] = set()
        """Calls that cast to float32 or float64."""
        self.names: dict[tuple[ast.AST, str], ast.expr] = {}
        """By scope and path, the cast from which they have it."""
        self.scopes: set[ast.AST] = set()
        """The functions in which anything is half."""

    def hear(self, call: Call) -> None:
        """A call: is it a cast to half?"""
        if call.method in ("half", "bfloat16") and not call.node.args:
            self._cast(call)
        elif call.method in _WIDE and not call.node.args:
            self.widened.add(call.node)
        elif call.method in ("to", "type"):
            given = [*call.args, *(call.keywords[name] for name in ("dtype",) if name in call.keywords)]
            named = [dtypes for value in given if (dtypes := dtype_of(value))]
            if any(dtypes & LOW_PRECISION for dtypes in named):
                self._cast(call)
            elif named:
                self.widened.add(call.node)

    def _cast(self, call: Call) -> None:
        self.casts.add(call.node)
        self.scopes.add(call.flow.scope)

    def bind(self, assign: Assign) -> None:
        """An assignment: does the target hold half now?"""
        scope = assign.flow.scope
        if not (scope in self.scopes or is_half(assign.value)):
            return
        path = path_of(assign.target)
        if path is None or assign.expression is None:
            return
        origin = self.origin(assign.expression, assign.value, assign.flow)
        if origin is not None:
            self.names[scope, path] = origin
            self.scopes.add(scope)
        elif (scope, path) in self.names and path not in _paths_in(assign.expression):
            del self.names[scope, path]

    def origin(self, node: ast.expr, value: Value, flow: Flow) -> ast.expr | None:
        """The place from which an expression's value may have half; None where it has none, or is cast to float32."""
        if is_half(value):
            return getattr(value, "origin", None) or node
        if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes & LOW_PRECISION:
            return None
        return self._from(node, flow.scope)

    def _from(self, node: ast.AST, scope: ast.AST) -> ast.expr | None:
        if isinstance(node, ast.Call):
            if node in self.casts:
                return node
            if (
                node in self.widened
                or last_name(node) in _NO_TENSOR
                or last_name(node) in ("len", "range", "isinstance")
            ):
                return None
            if any(keyword.arg == "dtype" for keyword in node.keywords):
                return None
        elif isinstance(node, ast.Attribute):
            known = self.names.get((scope, path_of(node) or ""))
            if known is not None or node.attr in _NO_TENSOR:
                return known
        elif isinstance(node, ast.Name):
            return self.names.get((scope, node.id))
        elif isinstance(node, (ast.Lambda, ast.Compare)):
            return None
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.keyword)):
                found = self._from(child, scope)
                if found is not None:
                    return found
        return None


def _paths_in(node: ast.expr) -> set[str | None]:
    return {path_of(part) for part in nodes([node]) if isinstance(part, (ast.Name, ast.Attribute))}
