"""DT103: a float tensor cast to a small integer dtype as it is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor, Trait
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._cut import cut_weights
from dtlint_rules._functions import own_nodes
from dtlint_rules._masks import is_named_mask
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import SMALL
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.dtypes.dtype import Info
    from dtlint.infer.events import Call, Flow
    from dtlint.infer.facts import ModuleFacts

__all__ = ["BareInt8Cast"]

_BECOMES = {
    "int8": "200.0 becomes -56",
    "uint8": "300.0 becomes 44 and -1.0 becomes 255",
    "int16": "40000.0 becomes -25536",
}
"""What a value out of range becomes; seen on torch 2.13, CPU."""

_THOUGHT_THROUGH = Trait.CLAMPED | Trait.ROUNDED | Trait.SCALED
"""Whoever scaled, rounded or clamped has seen to the range."""


class BareInt8Cast(Rule):
    """Float tensor cast to int8, uint8 or int16 without scale, round and clamp.

    ## What it does
    Reports a cast of a floating tensor to `int8`, `uint8` or `int16` (`.to`, `.type`, `.char()`, `.byte()`,
    `.short()`) whose values were neither scaled nor rounded nor clamped before; and a cast to `int8` of a tensor that is
    given, `weight: torch.Tensor`, where the result is returned or kept, as quantized weights are, and the function does
    not ask for its dtype, look at its bits or choose by it, as with masks and codes.

    ## Why it matters
    The cast is no quantization. It drops the fraction, so that everything between -1 and 1 becomes 0, and it does not
    saturate: on a CPU a value out of range wraps modulo 256 (200.0 becomes -56 in int8, 300.0 becomes 44 in uint8), and
    NaN becomes 0. On other devices a value out of range becomes whatever the hardware makes of it. Nothing is raised.

    ## Example
    ```python
    import torch

    weight = torch.randn(256, 256)
    quantized = weight.to(torch.int8)
    ```

    ## Use instead
    ```python
    import torch

    weight = torch.randn(256, 256)
    scale = weight.abs().max() / 127
    quantized = (weight / scale).round().clamp(-128, 127).to(torch.int8)
    ```

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [torch.quantize_per_tensor](https://docs.pytorch.org/docs/stable/generated/torch.quantize_per_tensor.html)
    """

    code, name = "DT103", "bare-int8-cast"
    triggers = SMALL
    calls = CAST_METHODS

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return cut_weights(facts)

    def on_call(self, call: Call) -> Iterator[Finding]:
        from dtlint.dtypes.dtype import DTYPES, FLOATING

        tensor, (is_cast, dtypes) = call.receiver, call.cast
        if not is_cast or dtypes is None or len(dtypes) != 1:
            return
        if not isinstance(tensor, Tensor) or tensor.traits & _THOUGHT_THROUGH:
            return
        (target,) = dtypes
        if target not in _BECOMES or _is_written_for(tensor, DTYPES[target]):
            return
        low, high = DTYPES[target].min, DTYPES[target].max
        if not tensor.dtypes:
            given = _given(tensor)
            if target == "int8" and given and _is_kept(call) and not _is_of_whole_numbers(given, call.flow):
                yield Finding(
                    call.node,
                    f"`{given}` is cast to int8 as it is given: where it is floating, 0.9 becomes 0, {_BECOMES[target]}",
                    help=f"Scale to the range of int8 first, then `.round().clamp({low}, {high})` before the cast",
                )
            return
        if not tensor.dtypes <= FLOATING:
            return
        source = next(iter(tensor.dtypes)) if len(tensor.dtypes) == 1 else "a float"
        yield Finding(
            call.node,
            f"The cast from {source} to {target} truncates, and on a CPU wraps around: 0.9 becomes 0, {_BECOMES[target]}",
            help=f"Scale, and then `.round().clamp({low}, {high})`, before the cast",
            notes=() if tensor.origin is None else ((tensor.origin, f"{source} comes from here"),),
        )


def _given(tensor: Tensor) -> str:
    """The parameter of the function that a tensor is, or is a view of; "" where something was computed."""
    symbol = tensor.symbol
    atom = symbol.sole if symbol is not None and symbol.exact and symbol.floor == Category.BOOL else None
    return atom.text if atom is not None and atom.parameter and not atom.is_dtype and atom.text.isidentifier() else ""


def _is_kept(call: Call) -> bool:
    """Is the result returned, bound to a name or made a parameter of a module, and not computed with at once?"""
    around = [part for part in within(call.node, call.flow) if not isinstance(part, (ast.Tuple, ast.Dict))]
    if not around:
        return isinstance(call.flow.statement, (ast.Assign, ast.AnnAssign, ast.Return))
    outermost = around[-1]
    return len(around) == 1 and isinstance(outermost, ast.Call) and last_name(outermost) in _HOLDING


def _is_of_whole_numbers(name: str, flow: Flow) -> bool:
    """Is it a mask, or does the function ask for its dtype, or use it as no floating tensor is used: its bits, as an
    index, as a test?"""
    return is_named_mask(name) or any(_uses_whole(node, name) for node in own_nodes(flow.scope))


def _uses_whole(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _ASKING and path_of(node.value) == name
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
        return isinstance(node.op, _OF_BITS) and name in map(path_of, sides)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.Not)) and path_of(node.operand) == name
    if isinstance(node, ast.Subscript):
        return name in names_in(node.slice)
    if isinstance(node, ast.Call):
        return last_name(node) in _CHOOSING and bool(node.args) and path_of(node.args[0]) == name
    return isinstance(node, (ast.If, ast.IfExp)) and path_of(node.test) == name


_HOLDING = frozenset({"Parameter", "register_buffer"})
_ASKING = frozenset({"dtype", "is_floating_point", "any", "all", "nonzero", "bool", "logical_not"})
_CHOOSING = frozenset({"where", "is_floating_point", "any", "all", "nonzero", "bincount", "one_hot", "masked_fill"})
"""Methods and functions that are asked of masks and whole numbers, or tell floating tensors apart."""
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


def _is_written_for(tensor: Tensor, target: Info) -> bool:
    """Is the tensor made of numbers that the source writes out, and that the dtype holds as far as they are known?"""
    if Trait.CONSTANT not in tensor.traits:
        return False
    # The cast drops the fraction first.
    return tensor.span is None or (tensor.span[0] > target.min - 1 and tensor.span[1] < target.max + 1)
