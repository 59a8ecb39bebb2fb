"""DT312: float64 comes along with an array of NumPy, where its default is float64 and torch's is float32."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Array, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import TORCH
from dtlint_rules._refusals import is_layer, once, operand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["NumpyFloat64Leak"]

_TAKING = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.asarray")
"""Functions of torch that give a tensor the dtype of an array."""
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
"""The operators that promote: `@` raises."""
_MOVES = frozenset({"to", "cuda", "reshape", "view", "unsqueeze", "contiguous", "squeeze", "t", "transpose"})
_FLOAT64 = frozenset({"float64"})
_SPEAKING = frozenset({"float64", "double", "set_default_dtype", "set_default_tensor_type"})
"""Names by which a file shows that it computes in float64."""


class NumpyFloat64Leak(Rule):
    """A float64 array of NumPy becomes a tensor, which then meets float32 or goes into a layer.

    ## What it does
    Reports arithmetic of a floating tensor with a tensor that `torch.from_numpy`, `torch.tensor` or `torch.as_tensor` made
    of a float64 array, or with such an array itself; and a layer with weights that is called with one. Files that speak of
    float64 themselves are left alone.

    ## Why it matters
    NumPy computes in float64 by default: `np.linspace(0, 1, 9)`, `pixels / 255.0`. Arithmetic promotes the other tensor,
    so that memory doubles and CUDA computes at a fraction of its speed, MPS raises, and the next layer raises "mat1 and
    mat2 must have the same dtype, but got Double and Float". A scalar such as `np.float64(2)` does no harm.

    ## Example
    ```python
    import numpy as np
    import torch


    def windowed(signal: torch.Tensor) -> torch.Tensor:
        window = torch.from_numpy(np.hanning(256))
        return signal.float() * window
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch


    def windowed(signal: torch.Tensor) -> torch.Tensor:
        window = torch.from_numpy(np.hanning(256)).float()
        return signal.float() * window
    ```

    ## Fix safety
    The fix casts the new tensor to float32. It is unsafe, for digits are lost if float64 was meant.

    ## References
    - [torch.from_numpy](https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT312", "numpy-float64-leak"
    fix = Applicability.UNSAFE
    triggers = ("numpy",)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if any(isinstance(node, ast.Attribute) and node.attr in _SPEAKING for node in facts.around.within(facts.tree)):
            return
        told: set[ast.AST] = set()
        for seen in facts.evaluations(ast.BinOp):
            for node, value, other in zip(
                (seen.node.left, seen.node.right), seen.operands, reversed(seen.operands), strict=True
            ):
                if not isinstance(seen.node.op, _ARITHMETIC) or seen.node in told or not _is_lifted(other):
                    continue
                made = _leak(facts, node, value)
                if made is not None:
                    told.add(seen.node)
                    text = "This float64 comes from NumPy, and makes the result float64"
                    yield _found(seen.node, made, value, text)
        for call in once(facts.operations(is_layer)):
            given, weight = operand(call.what), call.what.args[0]
            if call.behind or given is None or given.node is None or given.value == weight:
                continue
            made = _leak(facts, given.node, given.value)
            if made is not None and isinstance(weight, Tensor) and weight.dtypes != _FLOAT64:
                name = call.what.op.rpartition(".")[2]
                text = f"This float64 comes from NumPy: `{name}` raises for its float32 weights"
                yield _found(call.node, made, given.value, text)


def _found(node: ast.expr, made: ast.expr, value: Value, text: str) -> Finding:
    return Finding(
        node,
        text,
        help="Cast it to float32: `.float()`, or `.astype(np.float32)` in NumPy",
        notes=((made, "float64 since here"),) if made.lineno != node.lineno else (),
        fix=partial(_fix, made) if isinstance(value, Tensor) else None,
    )


def _leak(facts: ModuleFacts, node: ast.expr, value: Value) -> ast.expr | None:
    """Where NumPy's float64 comes in: an array, or the call that made a tensor of one."""
    if isinstance(value, Array):
        return node if value.dtypes == _FLOAT64 and value.scalar is False else None
    if not isinstance(value, Tensor) or value.dtypes != _FLOAT64 or value.rank == 0:
        return None
    made = facts.around.definition(node)
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr in _MOVES:
        made = facts.around.definition(made.func.value)
    if not isinstance(made, ast.Call):
        return None
    taken = [call for call in facts.calls_at(made) if call.name in _TAKING and "dtype" not in call.keywords]
    arrays = [call.args[0] for call in taken if call.args]
    return made if any(isinstance(one, Array) and one.scalar is False for one in arrays) else None


def _is_lifted(value: Value) -> bool:
    """Is it a floating tensor of fewer bits, or one whose dtype the program decides: weights, what a layer computes?"""
    if not isinstance(value, Tensor) or value.rank == 0:
        return False
    if value.dtypes is not None:
        return value.dtypes == FLOATING or value.dtypes <= FLOATING - _FLOAT64
    return value.symbol is not None and any(atom.floating for atom in value.symbol.of)


def _fix(made: ast.expr, place: Place) -> Fix:
    return Fix("Cast it to float32", (place.replace(made, f"{place.text(made)}.float()"),), Applicability.UNSAFE)
