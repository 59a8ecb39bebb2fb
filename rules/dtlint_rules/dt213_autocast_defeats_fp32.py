"""DT213: a matrix product that is meant to be float32 runs in half under autocast."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bound_once
from dtlint_rules._imports import imports_torch
from dtlint_rules._names import last_name, names, said
from dtlint_rules._regions import decided_here

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End, Flow, Operation
    from dtlint.infer.scopes import FunctionInfo
    from dtlint.infer.values import Value

__all__ = ["AutocastDefeatsFp32"]

_PRODUCTS = frozenset(
    f"torch.{name}" for name in ("matmul", "mm", "bmm", "mv", "baddbmm", "addmm", "addbmm", "linalg.multi_dot")
) | {"torch.nn.functional.linear"}
"""Products that autocast casts to half, whatever their inputs are; but for float64, as seen on torch 2.13."""
_METHODS = frozenset({"matmul", "mm", "bmm", "mv", "baddbmm", "addmm"})
_EINSUM = "torch.einsum"

_POSITION = re.compile(
    r"(?:^|_)(?:pos|position|positions|timesteps?|t|seq|grid|coords?|coordinates|pid)(?:_|$)|pos_?ids?|position_?ids"
)
_FREQUENCY = re.compile(r"freq|omega|(?:^|_)inv_?timescale|(?:^|_)bands?(?:_|$)")
_FLOAT32, _FLOAT64 = frozenset({"float32"}), frozenset({"float64"})
_MADE_ONCE = re.compile(r"__init__|reset_param|_init_weights|post_init|compute_default|precompute|_init_rope")
"""Functions that run before any autocast: they fill tables."""


class AutocastDefeatsFp32(Rule):
    """A matrix product on values that are kept in float32 runs in half under autocast.

    ## What it does
    Reports products of positions and frequencies, as rotary and sinusoidal embeddings make them by `@`, `matmul` or
    `einsum`, where nothing switches autocast off; and products of two operands that were cast to float32, inside an
    autocast region of the same function.

    Conditional, and so reported with `--preview` only: products of positions and frequencies, which only their
    names tell of.

    ## Why it matters
    Autocast casts the inputs of a matrix product to half even where they were cast to float32 one line before; the
    result is half. bfloat16 holds whole numbers exactly up to 256, float16 up to 2048: positions beyond fall together,
    and the angles of the embedding with them. Elementwise products are not cast: `position[:, None] * inv_freq` is what
    the product computes, and stays float32.

    An `einsum` that sums nothing is computed elementwise, too, and is not reported.

    ## Example
    ```python
    import torch
    from torch import nn

    class Rotary(nn.Module):
        def forward(self, position_ids: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
            angles = inv_freq[:, None].float() @ position_ids[None, :].float()
            return angles.cos()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    class Rotary(nn.Module):
        def forward(self, position_ids: torch.Tensor, inv_freq: torch.Tensor) -> torch.Tensor:
            with torch.autocast(position_ids.device.type, enabled=False):
                angles = inv_freq[:, None].float() @ position_ids[None, :].float()
            return angles.cos()
    ```

    ## References
    - [CUDA ops that autocast to float16](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-can-autocast-to-float16)
    """

    code, name = "DT213", "autocast-defeats-fp32"
    triggers = ("*freq*", "*omega*", "*timescale*", "*autocast*")
    needs = (("*torch*",),)
    calls = frozenset({*(name.rpartition(".")[2] for name in (*_PRODUCTS, _EINSUM)), *_METHODS})
    operators = frozenset({ast.MatMult})

    def __init__(self) -> None:
        self.found: list[tuple[ast.expr, ast.stmt]] = []
        """Products of positions and frequencies, with their statements."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        node = call.node
        if call.target == _EINSUM or call.target in _PRODUCTS:
            einsum = call.target == _EINSUM
            operands, values = node.args[einsum:], call.args[einsum:]
        elif call.method in _METHODS and isinstance(call.receiver, Tensor) and isinstance(node.func, ast.Attribute):
            einsum = False
            operands, values = [node.func.value, *node.args], [call.receiver, *call.args]
        else:
            return ()
        if len(operands) < 2 or (einsum and _sums_nothing(node.args[0])):
            return ()
        return self._judged(node, operands[-2:], values[-2:], call.flow)

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        if not isinstance(operation.operator, ast.MatMult) or not isinstance(operation.node, ast.BinOp):
            return ()
        node = operation.node
        return self._judged(node, [node.left, node.right], [operation.left, operation.right], operation.flow)

    def on_end(self, end: End) -> Iterable[Finding]:
        return self._not_decided(end.flow.tree) if end.flow.function is None and self.found else ()

    def _not_decided(self, tree: ast.Module) -> Iterator[Finding]:
        if not imports_torch(tree) and "torch" not in " ".join(names(tree)):
            return
        for node, statement in self.found:
            if not decided_here(statement, tree):
                yield Finding(
                    node,
                    "Under autocast this product of positions and frequencies runs in half",
                    help="Multiply elementwise, or use `torch.autocast(x.device.type, enabled=False)`",
                    conditional=True,
                )

    def _judged(self, node: ast.expr, operands: list[ast.expr], values: list[Value], flow: Flow) -> Iterator[Finding]:
        region = flow.autocast
        if region is not None and region.enabled and region.dtype in ("float16", "bfloat16", None):
            casts = [_cast_to_float32(value) for value in values]
            if all(cast is not None for cast in casts):
                yield Finding(
                    node,
                    f"Autocast casts both float32 operands back to {region.dtype or 'half'}",
                    help="Compute this under `torch.autocast(..., enabled=False)`",
                    notes=tuple(
                        (cast, "cast to float32 here") for cast in casts if cast is not None and cast is not node
                    ),
                )
            return
        function = flow.function
        if function is None or flow.contexts or _MADE_ONCE.search(function.name):
            return
        left, right = (_names_of(operand, function.node) for operand in operands)
        if not _is_position_by_frequency(left, right) or _is_of_init_alone(function):
            return
        if not _is_float64(function.node, values):
            self.found.append((node, flow.statement))


def _is_of_init_alone(function: FunctionInfo) -> bool:
    """Is it a method that `__init__` calls, and no other method of its class? Models are made outside autocast."""
    body = function.owner.node.body if function.owner is not None else []
    calling = {
        method.name
        for method in body
        if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in nodes([method])
        if isinstance(node, ast.Attribute) and path_of(node) == f"self.{function.name}"
    }
    return calling == {"__init__"}


def _cast_to_float32(value: Value) -> ast.expr | None:
    """The cast that made a value float32."""
    if not isinstance(value, Tensor) or value.dtypes != _FLOAT32 or not isinstance(value.origin, ast.Call):
        return None
    function = value.origin.func
    return value.origin if isinstance(function, ast.Attribute) and function.attr in ("float", "to") else None


def _sums_nothing(equation: ast.expr) -> bool:
    """Does every index of an einsum stand in its result?"""
    if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
        return False
    inputs, arrow, output = equation.value.replace(" ", "").partition("->")
    return bool(arrow) and set(inputs) - {","} <= set(output)


def _is_position_by_frequency(left: list[str], right: list[str]) -> bool:
    """Is one operand called a position and the other a frequency?"""
    for one, other in ((left, right), (right, left)):
        positions = {name for name in one if _POSITION.search(name)}
        frequencies = {name for name in other if _FREQUENCY.search(name)}
        if frequencies and positions and not any(_FREQUENCY.search(name) for name in one):
            return positions != {"t"} or any("inv" in name for name in frequencies)
    return False


def _names_of(node: ast.expr, scope: ast.AST) -> list[str]:
    """What an operand is called, and what it is made of where it is a name that the function binds once."""
    found = _subject(node)
    if found is None:
        return []
    name = last_name(found).lower()
    if isinstance(found, ast.Name):
        bound = bound_once(found.id, scope)
        of = None if bound is None else _subject(bound)
        return [name] if of is None else [name, last_name(of).lower()]
    return [name]


def _subject(node: ast.expr) -> ast.Name | ast.Attribute | None:
    """What an operand is, without the methods that shape or cast it and what it is indexed with."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            named = last_name(node.func.value) == "torch" and node.args
            node = node.args[0] if named else node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node if isinstance(node, (ast.Name, ast.Attribute)) else None


def _is_float64(function: ast.AST, values: list[Value]) -> bool:
    """Is the arithmetic float64, which autocast leaves alone?"""
    if any(isinstance(value, Tensor) and value.dtypes == _FLOAT64 for value in values):
        return True
    return not {"float64", "double"}.isdisjoint(said(function))
