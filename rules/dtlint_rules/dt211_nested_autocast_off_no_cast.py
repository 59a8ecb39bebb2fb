"""DT211: what autocast computed in half goes uncast into a region that switches autocast off."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Module, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._einsum import contracts
from dtlint_rules._functions import parameters
from dtlint_rules._kept import kept
from dtlint_rules._meanings import counts
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._regions import half_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.values import Value
    from dtlint_rules._origin import Roots

__all__ = ["NestedAutocastOffNoCast"]

_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        *("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
        *("GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell", "MultiheadAttention"),
    )
)
"""Layers that do not promote, and raise where input and weight differ in dtype."""

_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "linear", "conv1d", "conv2d", "conv3d"})
"""Functions that do not promote either."""
_Operand = tuple[ast.expr, "Value"]


class NestedAutocastOffNoCast(Rule):
    """A half result of autocast enters a layer where autocast is switched off.

    ## What it does
    Reports a linear, convolutional or recurrent layer that is called under `torch.autocast(..., enabled=False)` on what
    an enabled autocast region of the same function computed with such a layer, without a cast between; and a matrix
    product of what a module is given with a tensor of its own, or a layer on it, in a method or a `with` that switches
    autocast off, where nothing casts the one or the other.

    Conditional, and so reported with `--preview` only: the input of a method, which only an autocast outside of it
    makes half.

    ## Why it matters
    `enabled=False` only stops autocast from casting. The input is still half, the weight float32, and the layer raises
    "mat1 and mat2 must have the same dtype". The input has to be cast by hand: `h.float()`.

    ## Example
    ```python
    import torch

    body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = body(torch.randn(4, 8))
        with torch.autocast("cpu", enabled=False):
            y = head(h)
    ```

    ## Use instead
    ```python
    import torch

    body, head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = body(torch.randn(4, 8))
        with torch.autocast("cpu", enabled=False):
            y = head(h.float())
    ```

    ## References
    - [torch.autocast: subregions with enabled=False](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name, severity = "DT211", "nested-autocast-off-no-cast", Severity.ERROR
    triggers = ("*autocast*",)

    calls = frozenset({"__call__", *_PRODUCTS})
    operators = frozenset({ast.MatMult})

    def on_call(self, call: Call) -> Iterable[Finding]:
        contexts = call.flow.contexts
        if not contexts or contexts[-1].enabled is not False or not call.args:
            return ()
        name = last_name(call.node)
        if name in _PRODUCTS and call.target.startswith("torch.") and call.complete:
            return self._multiplied(call.node, call.flow, *_operands(call))
        return self._called(call)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node, contexts = operation.node, operation.flow.contexts
        if not contexts or contexts[-1].enabled is not False or not isinstance(node, ast.BinOp):
            return ()
        return self._multiplied(node, operation.flow, (node.left, operation.left), (node.right, operation.right))

    def _multiplied(self, node: ast.expr, flow: Flow, *operands: _Operand) -> Iterator[Finding]:
        """`x @ self.weight`, where the whole method, or a `with` of it, keeps autocast out and `x` is as it was given."""
        region = _begun_here(flow)
        if region is None or len(operands) != 2:
            return
        origins = origins_of(flow.scope)
        for (given, value), (own, other) in (operands, operands[::-1]):
            weight = _weight(other, origins[own])
            name = _given(value, origins[given], flow)
            if weight is None or name is None or _asks_for_dtype(flow.scope):
                continue
            yield Finding(
                node,
                f"This product raises if an outer autocast makes `{name}` half: `{weight}` is float32",
                help=f"Cast it first: `{name} = {name}.float()`",
                notes=((region, "autocast is switched off here"),),
                conditional=True,
            )
            return

    def _called(self, call: Call) -> Iterator[Finding]:
        layer = call.receiver
        if not isinstance(layer, Module) or layer.name not in _LAYERS or not call.target.endswith("__call__"):
            return
        region = half_from(call.args[0])
        path = path_of(call.node.func) or ""
        if region is None and layer.dtypes is None and path.startswith("self.") and call.node.args:
            yield from self._multiplied(
                call.node, call.flow, (call.node.args[0], call.args[0]), (call.node.func, layer)
            )
        if region is not None and (layer.dtypes is None or layer.dtypes == frozenset({"float32"})):
            yield Finding(
                call.node,
                f"The layer raises: its input is {region.dtype or 'half'} from autocast, its weight float32",
                help="Cast the input with `.float()`",
                notes=() if region.made is None else ((region.made, "computed under this autocast"),),
            )


def _operands(call: Call) -> list[_Operand]:
    """The two factors of a product."""
    operands = list(zip(call.node.args, call.args, strict=False))
    if call.target.startswith("torch.Tensor.") and isinstance(call.node.func, ast.Attribute):
        operands.insert(0, (call.node.func.value, call.receiver))
    if last_name(call.node) == "einsum":
        return operands[1:] if contracts(call.node) else []
    return operands[:2]


def _begun_here(flow: Flow) -> ast.expr | None:
    """The region that switches autocast off, where the running method of a module begins it, or is decorated with it."""
    function, inner = flow.function, flow.contexts[-1]
    if function is None or function.owner is None or not function.owner.is_module or len(flow.contexts) != 1:
        return None
    decorated = inner.made is not None and inner.made in function.decorators
    return inner.made if decorated or inner.made in facts(function.node).calls else None


def _weight(value: Value, roots: Roots) -> str | None:
    """The attribute of the module that a factor is, as it is kept, where its dtype is not known to be half."""
    if isinstance(value, Module):
        return f"{value.name.rpartition('.')[2]}.weight"
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes & {"float32", "float64"}:
        return None
    (origin,) = roots if len(roots) == 1 else (None,)
    if origin is None or not origin.text.startswith("self.") or counts(origin):
        return None
    return origin.text if origin.kind == Kind.GIVEN else None


def _given(value: Value, roots: Roots, flow: Flow) -> str | None:
    """The parameter whose dtype a factor has, with no cast between."""
    names = {parameter.arg for parameter in parameters(flow.scope)} - {"self"}
    if isinstance(value, Tensor) and value.dtypes is not None:
        return None
    (origin,) = roots if len(roots) == 1 else (None,)
    if origin is not None and origin.kind == Kind.GIVEN and not counts(origin) and origin.text in names:
        return origin.text
    sole = value.symbol.sole if isinstance(value, Tensor) and value.symbol is not None else None
    return sole.text if sole is not None and sole.parameter and sole.text in names else None


@kept
def _asks_for_dtype(scope: ast.AST) -> bool:
    """Does a function compare dtypes, or ask whether autocast is on?"""
    return bool(facts(scope).dtype_tests) or any(
        last_name(call) in ("is_autocast_enabled", "is_floating_point") for call in facts(scope).calls
    )
