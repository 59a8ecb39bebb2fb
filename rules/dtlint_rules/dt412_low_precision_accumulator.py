"""DT412: a running total kept in half."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._half import is_half
from dtlint_rules._names import last_name
from dtlint_rules._needs import HALF
from dtlint_rules._totals import running_totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.facts import ModuleFacts

__all__ = ["LowPrecisionAccumulator"]

_MAKERS = frozenset({"zeros", "tensor", "zeros_like", "new_zeros", "new_tensor", "full"})


_FROM_NUMBER = "Add Python floats, `total += x.item()`, or tensors of float32, `total += x.float()`"
_FROM_TENSOR = "Begin with a total of float32"


class LowPrecisionAccumulator(Rule):
    """A running total is kept in float16 or bfloat16.

    ## What it does
    Reports `total += x` in a loop, where `total` is a number-like tensor of half that was made outside of it, or begins
    as a Python number and becomes half with the first tensor that is added.

    ## Why it matters
    A total stops growing once it is so large that what is added is less than half of the gap to the next number. Ten
    thousand times 0.7 add up to 2048 in float16 and to 256 in bfloat16, instead of 7000.

    ## Example
    ```python
    import torch

    total = torch.zeros((), dtype=torch.bfloat16)
    for loss in torch.rand(1000):
        total += loss
    ```

    ## Use instead
    ```python
    import torch

    total = torch.zeros((), dtype=torch.float32)
    for loss in torch.rand(1000):
        total += loss
    ```

    ## References
    - [Numerical accuracy](https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html)
    """

    code, name = "DT412", "low-precision-accumulator"
    triggers = HALF
    needs = (("+=", ".add_"), ("for",))
    calls = frozenset({"add_"})
    operators = frozenset({ast.Add})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return running_totals(facts)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(node, ast.AugAssign) or not isinstance(operation.operator, ast.Add):
            return ()
        return self._judged(node, node.target, operation.left, operation.right, operation.flow)

    def on_call(self, call: Call) -> Iterator[Finding]:
        if call.method == "add_" and isinstance(call.node.func, ast.Attribute) and call.args:
            yield from self._judged(call.node, call.node.func.value, call.receiver, call.args[0], call.flow)

    def _judged(
        self, node: ast.expr | ast.stmt, target: ast.expr, total: object, added: object, flow: Flow
    ) -> Iterator[Finding]:
        if not flow.loops or not isinstance(target, ast.Name) or not isinstance(total, Tensor) or not is_half(total):
            return
        loop = flow.loops[0].node
        before = [value for line, value in assignments(flow.scope).get(target.id, []) if line < loop.lineno]
        inside = [value for line, value in assignments(flow.scope).get(target.id, []) if line >= loop.lineno and value]
        if not before or before[-1] is None or inside:
            return
        first = before[-1]
        begins_as_number = isinstance(first, ast.Constant)
        if not begins_as_number and not (_is_single(first) and last_name(first) in _MAKERS):
            return
        if begins_as_number and not (isinstance(added, Tensor) and added.zero_dim):
            return
        half = ", ".join(sorted((total.dtypes or frozenset()) & LOW_PRECISION))
        stops = "2048 in float16" if "float16" in half else "256 in bfloat16"
        yield Finding(
            node,
            f"`{path_of(target)}` adds up in {half}, where a count stops growing at {stops}",
            help=_FROM_NUMBER if begins_as_number else _FROM_TENSOR,
            notes=((first, "the total begins here"),),
        )


def _is_single(node: ast.expr) -> bool:
    """`torch.zeros(())`, `torch.zeros(1)`, `torch.tensor(0.0)`: a total of one number."""
    if not isinstance(node, ast.Call) or not node.args:
        return False
    size = node.args[0]
    if last_name(node) in ("tensor", "new_tensor"):
        return isinstance(size, ast.Constant)
    if isinstance(size, (ast.Tuple, ast.List)):
        return all(isinstance(part, ast.Constant) and part.value == 1 for part in size.elts)
    return isinstance(size, ast.Constant) and size.value == 1 and len(node.args) == 1
