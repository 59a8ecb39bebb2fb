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
from dtlint_rules._names import last_name, names
from dtlint_rules._needs import TORCH
from dtlint_rules._parts import below, keyword
from dtlint_rules._scripts import is_script
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["NumpyFloat64Leak"]

_TAKING = frozenset({"from_numpy", "tensor", "as_tensor", "asarray"})
"""Functions of torch that give a tensor the dtype of an array."""
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
    of a float64 array, or with such an array itself; and a layer with weights that is called with one. Whole modules
    that speak of float64 themselves are left alone.

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
    calls = frozenset({"__call__", *_TAKING})
    operators = frozenset({*_ARITHMETIC})
    of_known = True

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        for value, other in ((operation.left, operation.right), (operation.right, operation.left)):
            if _is_leak(value) and _is_lifted(other):
                message = "This float64 came with an array of NumPy: it makes the result float64, whatever the other tensor is"
                return self._found(operation.node, value, message, operation.flow)
        return ()

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.name in _TAKING:
            return self._let_out(call)
        module = call.receiver
        if not isinstance(module, Module) or call.target != "torch.nn.Module.__call__" or not call.args:
            return ()
        given, name = call.args[0], module.name.rpartition(".")[2]
        if not _is_leak(given) or (module.dtypes and "float64" in module.dtypes) or not name.startswith(_WITH_WEIGHTS):
            return ()
        return self._found(
            call.node,
            given,
            f"This float64 came with an array of NumPy: `{name}` raises where its weights are float32",
            call.flow,
        )

    def _let_out(self, call: Call) -> Iterable[Finding]:
        """`Scene(pose=torch.from_numpy(np.eye(4)))`: the tensor leaves as it is, for where others are float32."""
        flow = call.flow
        if not call.target.startswith("torch.") or "dtype" in call.keywords or len(call.node.args) != 1:
            return ()
        taker = _taker(call)
        made = _default_array(call.node.args[0], flow) if taker is not None else None
        if made is None or not _DOUBLE.isdisjoint(names(flow.tree)) or is_script(flow.tree):
            return ()
        return (
            Finding(
                call.node,
                f"The tensor is float64, the default of `{ast.unparse(made.func)}`, and {taker} gets it so",
                help="Cast it to float32: `.float()`, or `dtype=np.float32` in NumPy",
                notes=((made, "float64 since here"),) if made.lineno != call.node.lineno else (),
                fix=partial(_fix, call.node),
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


def _fix(made: ast.expr, place: Place) -> Fix:
    return Fix("Cast it to float32", (place.replace(made, f"{place.text(made)}.float()"),), Applicability.UNSAFE)


_DEFAULTS = frozenset(
    {"eye", "identity", "zeros", "ones", "empty", "linspace", "hanning", "hamming", "blackman", "kaiser", "logspace"}
    | {"random.rand", "random.randn", "random.random", "random.uniform", "random.normal", "random.standard_normal"}
)
"""Functions of NumPy whose arrays are float64 unless a dtype is asked for."""
_KEEPING = frozenset(
    {"reshape", "copy", "transpose", "squeeze", "flatten", "ravel", "repeat", "unsqueeze", "cuda", "view"}
)
"""Methods whose result has the dtype of what they are called on."""


def _taker(call: Call) -> str | None:
    """What gets a new tensor uncast: a function that is not torch's, an attribute, the caller; None where it is cast, or
    may be."""
    statement = call.flow.statement
    node: ast.AST = call.node
    for parent in (*within(call.node, call.flow), statement):
        if isinstance(parent, ast.Attribute):
            if parent.attr not in _KEEPING:
                return None
        elif isinstance(parent, ast.Call):
            if node is not parent.func:
                path = path_of(parent.func) or ""
                return None if path.partition(".")[0] in _NOT_TAKING or not path else f"`{path}`"
        elif isinstance(parent, ast.Assign):
            path = path_of(parent.targets[0]) or ""
            return f"`{path}`" if path.startswith("self.") else None
        elif isinstance(parent, ast.Return):
            return "the caller"
        elif not isinstance(parent, (ast.IfExp, ast.keyword, ast.Tuple)):
            return None
        node = parent
    return None


_NOT_TAKING = frozenset(
    {"torch", "F", "np", "numpy", "print", "len", "str", "repr", "super", "list", "tuple", "isinstance"}
)


def _default_array(node: ast.expr, flow: Flow) -> ast.Call | None:
    """The call of NumPy by whose default an array is float64: under each thing that its name is bound to, `None` aside."""
    found: ast.Call | None = None
    waiting, seen = [node], set()
    while waiting:
        part = waiting.pop()
        while isinstance(part, ast.Subscript) or below(part, _KEEPING) is not part:
            part = part.value if isinstance(part, ast.Subscript) else below(part, _KEEPING)
        if isinstance(part, ast.Name):
            bound = assignments(flow.scope).get(part.id, ())
            if part.id in seen:
                continue
            if not bound:
                return None
            seen.add(part.id)
            waiting += [value for _, value in bound if value is not None]
        elif isinstance(part, ast.Call) and _is_default(part):
            found = part
        elif not (isinstance(part, ast.Constant) and part.value is None):
            return None
    return found


def _is_default(made: ast.Call) -> bool:
    package, _, name = (path_of(made.func) or "").partition(".")
    if package not in ("np", "numpy") or name not in _DEFAULTS or keyword(made, "dtype") is not None:
        return False
    return len(made.args) < 2 or name not in ("zeros", "ones", "empty")
