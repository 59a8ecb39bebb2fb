"""DT118: `x.is_floating_point` without the parentheses, which is true of every tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity, Span
from dtlint.infer.names import path_of
from dtlint.infer.survey import PREDICATES, facts
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name
from dtlint_rules._tensors import looks_like_tensor
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import End
    from dtlint.source.place import Place

__all__ = ["UncalledDtypePredicate"]

_CASTS = frozenset({"to", "float", "half", "double", "bfloat16", "type", "dtype", "data", "is_cuda", "cpu", "cuda"})
"""What tensors are used for and dtypes not."""


class UncalledDtypePredicate(Rule):
    """`is_floating_point`, `is_complex` or `is_signed` of a tensor, tested without being called.

    ## What it does
    Reports `if x.is_floating_point:` and the like, where `x` is used as a tensor. Of a dtype,
    `x.dtype.is_floating_point`, it is an attribute and right as it stands.

    ## Why it matters
    A method is true, whatever it would return: `x if x.is_floating_point else x.float()` never casts. torch has made
    a trap of it, for `torch.Tensor.is_floating_point` is a method and `torch.dtype.is_floating_point` an attribute.

    ## Example
    ```python
    import torch

    def as_float(x: torch.Tensor):
        return x if x.is_floating_point else x.float()
    ```

    ## Use instead
    ```python
    import torch

    def as_float(x: torch.Tensor):
        return x if x.is_floating_point() else x.float()
    ```

    ## Fix safety
    The fix calls the method. It is unsafe, for the other branch then comes to run.

    ## References
    - [torch.Tensor.is_floating_point](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_floating_point.html)
    """

    code, name = "DT118", "uncalled-dtype-predicate"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    triggers = tuple(f"{before}.{name}" for name in sorted(PREDICATES) for before in ("", "self"))

    def on_end(self, end: End) -> Iterator[Finding]:
        scope = end.flow.scope
        for node in facts(scope).predicates:
            parent = parents_in(scope).get(node)
            if isinstance(parent, ast.Call) or not _is_tested(node, parent):
                continue
            path = path_of(node.value)
            if path == "torch" or (path is not None and self._is_tensor(path, scope)):
                subject = "The function `torch" if path == "torch" else f"The method `{path}"
                yield Finding(
                    node,
                    f"{subject}.{node.attr}` is not called: the test is always true",
                    help=f"Call it: `{path}.{node.attr}({'x' if path == 'torch' else ''})`",
                    fix=None if path == "torch" else _called,
                )

    def _is_tensor(self, path: str, scope: ast.AST) -> bool:
        if path.rpartition(".")[2].endswith(("dtype", "type")):
            return False
        for parameter in parameters(scope):
            if parameter.arg == path and parameter.annotation is not None:
                return last_name(parameter.annotation) in ("Tensor", "Parameter")
        used = any(
            isinstance(node, ast.Attribute) and node.attr in _CASTS and path_of(node.value) == path
            for node in nodes([scope])
        )
        return used or looks_like_tensor(path, scope)


def _is_tested(node: ast.expr, parent: ast.AST | None) -> bool:
    """Does the program ask whether it is true?"""
    if isinstance(parent, ast.BoolOp):
        return True
    if isinstance(parent, ast.UnaryOp):
        return isinstance(parent.op, ast.Not)
    if isinstance(parent, ast.comprehension):
        return node in parent.ifs
    return isinstance(parent, (ast.If, ast.IfExp, ast.While, ast.Assert)) and parent.test is node


def _called(place: Place) -> Fix:
    span = place.source.span(place.abstract)
    end = Span(span.end_line, span.end_column, span.end_line, span.end_column)
    return Fix("Call the method", (Edit(end, "()"),), Applicability.UNSAFE)
