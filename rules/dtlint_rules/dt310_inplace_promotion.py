"""DT310: an operation in place whose result does not fit the dtype of its tensor."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.domain.values import Const, Number, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import INTEGRAL, listed
from dtlint_rules._fixes import operand_text
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._refusals import finding, is_refused, once, operand, short_op

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["InplacePromotion"]

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
_PROMOTING = frozenset(
    {"add_", "sub_", "mul_", "div_", "pow_", "clamp_", "clamp_min_", "clamp_max_", "addcmul_", "remainder_"}
)
_FLOATING = frozenset(
    {
        "exp_",
        "exp2_",
        "expm1_",
        "log_",
        "log2_",
        "log10_",
        "log1p_",
        "sqrt_",
        "rsqrt_",
        "sigmoid_",
        "tanh_",
        "sin_",
        "cos_",
    }
    | {
        "reciprocal_",
        "erf_",
        "normal_",
        "uniform_",
        "exponential_",
        "log_normal_",
        "cauchy_",
        "true_divide_",
        "addcdiv_",
    }
)
"""Methods whose result is floating, whatever they are given."""


_BOUNDED = frozenset({"clamp_", "clamp_min_", "clamp_max_"})


class InplacePromotion(Rule):
    """An integer tensor is changed in place by what makes it floating.

    ## What it does
    Reports `n += 0.5`, `n /= 2`, `n.mul_(scale)`, `n.clamp_(0, limit)`, `n.exp_()` and `n.normal_()` where `n` is an
    integer or bool tensor and the result is floating; and arithmetic with integers in a bool tensor.

    ## Why it matters
    The result has nowhere to go: "result type Float can't be cast to the desired output type Long". Out of place the same
    operation promotes: `n = n + 0.5` is float32.

    ## Example
    ```python
    import torch

    counts = torch.zeros(3, dtype=torch.long)
    counts /= 2
    ```

    ## Use instead
    ```python
    import torch

    counts = torch.zeros(3, dtype=torch.long)
    counts = counts / 2
    ```

    ## Fix safety
    The fix writes the operation out of place. It is unsafe, for the name then holds another tensor: who else holds the old
    one does not see the change.

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT310", "inplace-promotion", Severity.ERROR
    fix = Applicability.UNSAFE
    triggers = ("+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", *attributes(_PROMOTING | _FLOATING))
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in once(facts.operations(lambda one: _is_wrong(one) or is_refused(one, self.code))):
            node, tensor = seen.what.node, operand(seen.what)
            if tensor is None or not tensor.dtypes or not tensor.dtypes <= INTEGRAL:
                continue
            changed = isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS
            who = f"{_OPERATORS[type(node.op)]}=" if changed else short_op(seen.what)
            yield finding(
                seen,
                None,
                f"`{who}` raises: a tensor of {listed(tensor.dtypes)} cannot hold the result",
                "Do it out of place, or make the tensor floating first",
                fix=partial(_out_of_place, node) if changed and isinstance(node.target, ast.Name) else None,
            )


def _is_wrong(operation: Operation) -> bool:
    """Is it a method whose result is floating, or one bounded by a number that is, of integers?"""
    op, tensor = short_op(operation), operand(operation)
    if (
        not operation.op.startswith("torch.Tensor.")
        or tensor is None
        or not tensor.dtypes
        or not tensor.dtypes <= INTEGRAL
    ):
        return False
    bounds = (*operation.args[1:], *(value for _, value in operation.keywords))
    return op in _FLOATING or (op in _BOUNDED and any(map(_is_floating, bounds)))


def _is_floating(value: Value) -> bool:
    if isinstance(value, Tensor):
        return bool(value.dtypes) and all(DTYPES[dtype].category >= Category.FLOAT for dtype in value.dtypes or ())
    if isinstance(value, Const):
        return isinstance(value.value, float)
    return isinstance(value, Number) and value.category == Category.FLOAT


def _out_of_place(node: ast.AugAssign, place: Place) -> Fix | None:
    target, value = place.text(node.target), place.text(node.value)
    if place.text(node).count("#") != value.count("#"):
        return None
    operator = _OPERATORS[type(node.op)]
    if not isinstance(node.value, ast.Constant):
        value = operand_text(place, node.value)
    text = f"{target} = {target} {operator} {value}"
    return Fix("Write it out of place", (place.replace(node, text),), Applicability.UNSAFE)
