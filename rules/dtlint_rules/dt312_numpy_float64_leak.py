"""DT312: float64 comes along with an array of NumPy, where its default is float64 and torch's is float32."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import DTYPES, FLOATING, Category
from dtlint.infer.names import path_of
from dtlint.infer.values import Array, Module, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._effects import TORCH as TORCHES
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._known import known
from dtlint_rules._names import last_name, names, names_in
from dtlint_rules._needs import TORCH
from dtlint_rules._origins import origins_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeGuard

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["NumpyFloat64Leak"]

_TAKING = frozenset({"from_numpy", "tensor", "as_tensor", "asarray"})
"""Functions of torch that give a tensor the dtype of an array."""
_FILLING = frozenset({"ones", "zeros", "full", "eye", "linspace", "array", "hanning", "hamming", "blackman"})
"""Functions of NumPy that make an array from sizes and numbers."""
_WITH_WEIGHTS = (
    "Linear",
    "Bilinear",
    "Conv",
    "LayerNorm",
    "BatchNorm",
    "GroupNorm",
    "LSTM",
    "GRU",
    "RNN",
    "Sequential",
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
"""The operators that promote: `@` raises."""
_FLOAT64 = frozenset({"float64"})
_DOUBLE = frozenset({"double", "set_default_dtype", "float64"})
"""Names by which a module shows that it computes in float64."""


class NumpyFloat64Leak(Rule):
    """A float64 array of NumPy becomes a tensor, which then meets float32 or goes into a layer.

    ## What it does
    Reports arithmetic of a floating tensor with a tensor that `torch.from_numpy`, `torch.tensor` or `torch.as_tensor` made
    of a float64 array, or with such an array itself; and a layer with weights that is called with one; and an array that
    stands in for a parameter that is said to be a tensor, `if weights is None: weights = np.ones(n)`, where that meets
    tensors. Whole modules that speak of float64 themselves are left alone.

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
    calls = frozenset({"__call__", *_FILLING})
    operators = frozenset({*_ARITHMETIC})
    of_known = True

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        for value, other in ((operation.left, operation.right), (operation.right, operation.left)):
            if _is_leak(value) and _is_lifted(other):
                message = "This float64 comes from NumPy, and makes the result float64"
                return self._found(operation.node, value, message, operation.flow)
        return ()

    def on_call(self, call: Call) -> Iterable[Finding]:
        module = call.receiver
        if isinstance(call.result, Array):
            wide = call.result.dtypes == _FLOAT64 and call.result.scalar is not True
            return self._in_place_of_tensor(call) if wide else ()
        if not isinstance(module, Module) or call.target != "torch.nn.Module.__call__" or not call.args:
            return ()
        given, name = call.args[0], module.name.rpartition(".")[2]
        if not _is_leak(given) or (module.dtypes and "float64" in module.dtypes) or not name.startswith(_WITH_WEIGHTS):
            return ()
        return self._found(
            call.node,
            given,
            f"This float64 comes from NumPy: `{name}` raises for its float32 weights",
            call.flow,
        )

    def _in_place_of_tensor(self, call: Call) -> Iterable[Finding]:
        """`if weights is None: weights = np.ones(x.shape[-1])`, and `(x * weights).sum()` below."""
        statement, flow = call.flow.statement, call.flow
        name = path_of(statement.targets[0]) if isinstance(statement, ast.Assign) else None
        if not isinstance(statement, ast.Assign) or name is None or len(assignments(flow.scope).get(name, ())) != 1:
            return ()
        said = [ast.unparse(each.annotation) for each in parameters(flow.scope) if each.arg == name and each.annotation]
        if not said or "Tensor" not in said[0] or "rray" in said[0]:
            return ()
        if not _is_chosen(call.node, statement.value, name, flow):
            return ()
        met = next((node for node in own_nodes(flow.scope) if _meets_tensor(node, name, flow)), None)
        if met is None or not _DOUBLE.isdisjoint(names_in(flow.scope)):
            return ()
        return (
            Finding(
                call.node,
                f"The default of `{name}` is a float64 NumPy array, not a tensor",
                help=f"Use `torch.{last_name(call.node)}` with a dtype and device",
                notes=((met, "meets a tensor here"),),
            ),
        )

    def _found(self, node: ast.expr | ast.stmt, value: Value, message: str, flow: Flow) -> Iterable[Finding]:
        if not _DOUBLE.isdisjoint(names(flow.tree)):
            return ()
        origin = getattr(value, "origin", None)
        made = origin if isinstance(value, Tensor) else None
        return (
            Finding(
                node,
                message,
                help="Cast it to float32: `.float()`, or `.astype(np.float32)` in NumPy",
                notes=((origin, "float64 since here"),) if origin is not None and origin.lineno != node.lineno else (),
                fix=partial(_fix, made) if made is not None else None,
            ),
        )


def _is_leak(value: Value) -> bool:
    """Is it a float64 array, or a tensor with dimensions that was made of one?"""
    if isinstance(value, Array):
        return value.dtypes == _FLOAT64 and value.scalar is False
    if not isinstance(value, Tensor) or value.dtypes != _FLOAT64 or value.zero_dim is not False:
        return False
    origin = value.origin
    return (
        isinstance(origin, ast.Call)
        and last_name(origin) in _TAKING
        and not any(key.arg == "dtype" for key in origin.keywords)
    )


def _is_lifted(value: Value) -> bool:
    """Is it a floating tensor of fewer bits, or one whose dtype the program decides: weights, what a layer computes?"""
    if not isinstance(value, Tensor) or value.zero_dim:
        return False
    if value.dtypes is not None:
        return value.dtypes >= FLOATING or (
            value.dtypes <= FLOATING and all(DTYPES[dtype].bits <= 32 for dtype in value.dtypes)
        )
    symbol = value.symbol
    return symbol is not None and (symbol.floor >= Category.FLOAT or any(atom.floating for atom in symbol.of))


def _is_chosen(array: ast.Call, value: ast.expr, name: str, flow: Flow) -> bool:
    """Is an array taken where a parameter is None, by an `if` or by a conditional expression?"""
    if isinstance(value, ast.IfExp):
        chosen = value.body if _is_none(value.test, name, ast.Is) else value.orelse
        return chosen is array and (_is_none(value.test, name, ast.Is) or _is_none(value.test, name, ast.IsNot))
    held = flow.conditions[-1] if flow.conditions else None
    return value is array and held is not None and held.holds and _is_none(held.test, name, ast.Is)


def _is_none(test: ast.expr, name: str, operator: type[ast.cmpop]) -> bool:
    """`name is None`."""
    if not isinstance(test, ast.Compare) or path_of(test.left) != name or not isinstance(test.ops[0], operator):
        return False
    other = test.comparators[0]
    return isinstance(other, ast.Constant) and other.value is None


def _meets_tensor(node: ast.AST, name: str, flow: Flow) -> TypeGuard[ast.expr]:
    """Is it arithmetic of a name and a tensor, or does a function of torch take it that does not take arrays?"""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        sides = ((node.left, node.right), (node.right, node.left))
        return any(path_of(side) == name and _is_of_tensor(other, name, flow) for side, other in sides)
    if (
        not isinstance(node, ast.Call)
        or path_of(node.func.value if isinstance(node.func, ast.Attribute) else node) not in TORCHES
    ):
        return False
    return last_name(node) not in _TAKING and bool(node.args) and path_of(node.args[0]) == name


def _is_of_tensor(node: ast.expr, name: str, flow: Flow) -> bool:
    """Is an expression computed by torch, or of another parameter that is said to be a tensor?"""
    if isinstance(known(flow, node), Tensor):
        return True
    tensors = {
        each.arg for each in parameters(flow.scope) if each.annotation and "Tensor" in ast.unparse(each.annotation)
    }
    parts = (part for root in origins_of(flow.scope)[node] for part in root.closure())
    texts = {part.text for part in parts}
    return any(text.startswith(("torch.", "F.")) or text in tensors - {name} for text in texts)


def _fix(made: ast.expr, place: Place) -> Fix:
    return Fix("Cast it to float32", (place.replace(made, f"{place.text(made)}.float()"),), Applicability.UNSAFE)
