"""DT310: an operation in place whose result does not fit the dtype of its tensor."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.infer.values import Array, Constant, Number, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import operand_text
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._operands import INTEGRAL, certain, listed, origin_note
from dtlint_rules._refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
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
    calls = _PROMOTING | _FLOATING
    triggers = ("+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", *attributes(calls))
    needs = (TORCH,)
    operators = frozenset({*_OPERATORS})
    of_known = True

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if (
            not isinstance(node, ast.AugAssign)
            or type(node.op) not in _OPERATORS
            or not isinstance(operation.left, Tensor)
        ):
            return ()
        result = max(_least(operation.right), Category.FLOAT if isinstance(node.op, ast.Div) else Category.BOOL)
        fix = partial(_out_of_place, node) if isinstance(node.target, ast.Name) else None
        return self._judged(node, operation.left, result, f"{_OPERATORS[type(node.op)]}=", fix)

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target != f"torch.Tensor.{call.method}" or not isinstance(call.receiver, Tensor) or not call.complete:
            return ()
        divides = call.method in _FLOATING or (call.method == "div_" and "rounding_mode" not in call.keywords)
        result = Category.FLOAT if divides else _least_given(call)
        return self._judged(call.node, call.receiver, result, call.method)

    def _judged(
        self,
        node: ast.expr | ast.stmt,
        tensor: Tensor,
        result: Category,
        who: str,
        fix: partial[Fix | None] | None = None,
    ) -> Iterable[Finding]:
        dtypes = certain(tensor)
        if not dtypes or not dtypes <= INTEGRAL or result <= max(DTYPES[dtype].category for dtype in dtypes):
            return ()
        return (
            Finding(
                node,
                f"`{who}` raises: a tensor of {listed(dtypes)} cannot hold {_WORDS[result]}",
                help="Do it out of place, or make the tensor floating first",
                notes=origin_note(tensor, node, f"{listed(dtypes)} since here"),
                fix=fix,
            ),
        )


_WORDS = {Category.INTEGER: "integers", Category.FLOAT: "floating numbers", Category.COMPLEX: "complex numbers"}


def _least_given(call: Call) -> Category:
    """The least category that the operands of a method have together. Factors have a part in it only where they raise:
    `addcmul_` cuts its own to the dtype of the tensor, and a bool tensor takes an integer `alpha`."""
    if call.method == "addcmul_":
        given = [_least(value) for value in (*call.args, *call.keywords.values()) if isinstance(value, Tensor)]
    else:
        given = [_least(value) for name, value in call.keywords.items() if name != "alpha"]
        given += [_least(value) for value in call.args]
        if (alpha := call.keywords.get("alpha")) is not None and (category := _least(alpha)) > Category.INTEGER:
            given.append(category)
    return max(given, default=Category.BOOL)


def _least(value: Value) -> Category:
    """The least category that an operand is certain to have."""
    if isinstance(value, Constant):
        kinds: dict[type, Category] = {
            bool: Category.BOOL,
            int: Category.INTEGER,
            float: Category.FLOAT,
            complex: Category.COMPLEX,
        }
        return kinds.get(type(value.value), Category.BOOL)
    if isinstance(value, Number):
        return value.category
    if isinstance(value, Tensor):
        if value.dtypes:
            return min(DTYPES[dtype].category for dtype in value.dtypes)
        if value.symbol is not None:
            floating = any(atom.floating for atom in value.symbol.of)
            return max(value.symbol.floor, Category.FLOAT if floating or value.symbol.met else Category.BOOL)
    if isinstance(value, Array) and value.scalar and value.dtypes:
        return min(DTYPES[dtype].category for dtype in value.dtypes)
    return Category.BOOL


def _out_of_place(node: ast.AugAssign, place: Place) -> Fix | None:
    target, value = place.text(node.target), place.text(node.value)
    if place.text(node).count("#") != value.count("#"):
        return None
    operator = _OPERATORS[type(node.op)]
    if not isinstance(node.value, ast.Constant):
        value = operand_text(place, node.value)
    text = f"{target} = {target} {operator} {value}"
    return Fix("Write it out of place", (place.replace(node, text),), Applicability.UNSAFE)
