"""The value of a name or a path at a place, as inference knows it there, or by all that the function does with it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import UNKNOWN, Module, Tensor, Unknown
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from dtlint.infer.events import Flow
    from dtlint.infer.evidence import Evidence
    from dtlint.infer.values import Value

__all__ = ["is_looped_tensor", "known"]


def known(flow: Flow, node: ast.expr) -> Value:
    """The value of a name or a dotted path just now, without evaluating anything."""
    from dtlint.infer.evidence import Kind

    path = path_of(node)
    if path is None:
        return UNKNOWN
    value = (flow.state.names if isinstance(node, ast.Name) else flow.state.paths).get(path, UNKNOWN)
    if isinstance(value, Unknown):
        kind = _evidence(flow.scope).kind(path, node.lineno)
        if kind is not None:
            return Tensor() if kind is Kind.TENSOR else Module("torch.nn.Module", path)
    return value


def is_looped_tensor(node: ast.expr, flow: Flow) -> bool:
    """Is it the variable of a loop over parameters or buffers, `for name, p in model.named_parameters()`, whatever the
    model is? Not that of their names."""
    for loop in flow.loops if isinstance(node, ast.Name) else ():
        target, method = loop.node.target, last_name(loop.node.iter)
        if method.startswith("named_"):
            if not isinstance(target, ast.Tuple) or len(target.elts) != 2:
                continue
            target, method = target.elts[1], method.removeprefix("named_")
        if method in ("parameters", "buffers") and path_of(target) == path_of(node):
            return True
    return False


@kept
def _evidence(scope: ast.AST) -> Evidence:
    from dtlint.infer.evidence import gather

    return gather(scope)
