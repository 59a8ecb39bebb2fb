"""DT118: `x.is_floating_point` without the parentheses, which is true of every tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity, Span
from dtlint.infer.domain.values import Ref, Tensor
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["UncalledDtypePredicate"]

PREDICATES = frozenset({"is_floating_point", "is_complex", "is_signed"})
"""What tensors have as methods, and dtypes as attributes."""


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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for node, name in facts.names(*(f"torch.{name}" for name in PREDICATES)):
            if _is_tested(node, facts.around.parent(node)):
                yield _found(node, f"The function `{name}` is not called", f"{name}(x)", fixable=False)
        for read in facts.around.of_kind(ast.Attribute):
            if read.attr not in PREDICATES:
                continue
            if _is_tensor(facts.value(read.value)) and _is_tested(read, facts.around.parent(read)):
                path = ast.unparse(read)
                yield _found(read, f"The method `{path}` is not called", f"{path}()", fixable=True)


def _found(node: ast.expr, what: str, instead: str, *, fixable: bool) -> Finding:
    return Finding(
        node, f"{what}: the test is always true", help=f"Call it: `{instead}`", fix=_called if fixable else None
    )


def _is_tensor(value: Value) -> bool:
    """Is it a tensor, or a parameter or buffer of a module?"""
    return isinstance(value, Tensor) or (isinstance(value, Ref) and value.address.kind in _WEIGHTS)


_WEIGHTS = ("torch.nn.Parameter", "torch.nn.Buffer")


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
