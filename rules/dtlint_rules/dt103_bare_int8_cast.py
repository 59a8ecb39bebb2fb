"""DT103: a float tensor cast to a small integer dtype as it is."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING, Category
from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts, is_module
from dtlint_rules._cut import cut_weights
from dtlint_rules._module_walks import root_of
from dtlint_rules._names import last_name
from dtlint_rules._needs import SMALL
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.dtypes.dtype import Info
    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint_rules._cast_calls import Cast

__all__ = ["BareInt8Cast"]

_BECOMES = {
    "int8": "200.0 becomes -56",
    "uint8": "300.0 becomes 44 and -1.0 becomes 255",
    "int16": "40000.0 becomes -25536",
}
"""What a value out of range becomes; seen on torch 2.13, CPU."""


class BareInt8Cast(Rule):
    """Float tensor cast to int8, uint8 or int16 without scale, round and clamp.

    ## What it does
    Reports a cast of a floating tensor to `int8`, `uint8` or `int16` (`.to`, `.type`, `.char()`, `.byte()`,
    `.short()`) whose values were neither scaled nor rounded nor clamped before; and a cast to `int8` of a tensor that is
    given, a parameter of the function, where the result is kept, handed on or multiplied, as quantized weights are, and
    the function does not ask for its dtype, look at its bits or choose by it, as with masks and codes.

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        yield from cut_weights(facts)
        for cast in casts(facts):
            target = min(cast.dtypes) if len(cast.dtypes) == 1 else ""
            if target not in _BECOMES or cast.of == "module":
                continue
            known = _floating(facts, cast)
            given = target == "int8" and known is None and _is_given(cast.value) and not _is_whole(facts, cast)
            if not (known or given) or _holds(DTYPES[target], cast.value) or _is_prepared(facts, cast.subject):
                continue
            what = f"The cast from {known} to {target} truncates, and on a CPU wraps around: 0.9 becomes 0"
            if given:
                what = f"`{short(cast.subject)}` is cast to int8 as it is given: where it is floating, 0.9 becomes 0"
            low, high = DTYPES[target].min, DTYPES[target].max
            yield Finding(
                cast.node,
                f"{what}, {_BECOMES[target]}",
                help=f"Scale to the range of {target}, and then `.round().clamp({low}, {high})`, before the cast",
            )


def _floating(facts: ModuleFacts, cast: Cast) -> str | None:
    """The floating dtype that is cast, as a message names it; empty where the dtype is another, None if it is not known."""
    value, node = cast.value, cast.subject
    if isinstance(value, Tensor) and value.dtypes:
        known = value.dtypes <= FLOATING
        return (min(value.dtypes) if len(value.dtypes) == 1 else "a float") if known else ""
    if isinstance(value, Tensor) and value.symbol is not None and all(atom.floating for atom in value.symbol.of):
        return "a float"
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPYING:
        node = node.func.value
    if isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    if isinstance(node, ast.Attribute) and node.attr == "weight":  # of a module that is a parameter
        return "a float" if is_module(facts, node.value, facts.value(node.value)) else None
    return None


def _holds(target: Info, value: Value) -> bool:
    """Are the elements known, and such that the dtype holds them? The cast drops the fraction first."""
    return isinstance(value, Tensor) and value.range.low > target.min - 1 and value.range.high < target.max + 1


def _is_given(value: Value) -> bool:
    """Is it a parameter of the function, or a view of it, and not computed? Modules refuse int8: what is cast is a tensor."""
    symbol = value.symbol if isinstance(value, (Tensor, Unknown)) and value.dtypes is None else None
    return symbol is not None and len(symbol.of) == 1 and not symbol.met and symbol.least == Category.BOOL


def _is_prepared(facts: ModuleFacts, node: ast.expr) -> bool:
    """Was something scaled, rounded or clamped, written into, or made by code that is not seen, on the way?"""
    for part in facts.around.made_of(node):
        if isinstance(part, ast.Call):
            last = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            seen = last in _COPYING or all(call.name.startswith("torch.") for call in facts.calls_at(part))
            if last.rstrip("_") in _PREPARING or not seen or any(map(_casts_unknown, facts.calls_at(part))):
                return True
        elif (
            (isinstance(part, ast.BinOp) and isinstance(part.op, (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)))
            or isinstance(part, (ast.AugAssign, ast.IfExp))
            or (isinstance(part, ast.Name) and _is_written_into(facts, part))
        ):
            return True
    return False


_COPYING = frozenset({"detach", "clone", "contiguous", "cpu", "cuda"})


def _casts_unknown(call: Call) -> bool:
    """Is it a cast of what may hold whole numbers: `labels.float()`?"""
    is_cast = call.method in ("float", "double", "half", "bfloat16", "to", "type")
    return is_cast and not getattr(call.receiver, "dtypes", None) and getattr(call.result, "dtypes", None) is not None


_PREPARING = frozenset(
    {
        "round",
        "floor",
        "ceil",
        "trunc",
        "fix",
        "clamp",
        "clip",
        "clamp_min",
        "clamp_max",
        "mul",
        "div",
        "sign",
        "heaviside",
    }
    | {"arange", "linspace", "randint"}
    | {"true_divide", "floor_divide", "multiply", "divide", "remainder", "fmod", "bernoulli", "quantize_per_tensor"}
)
"""What sees to the range, or leaves whole numbers."""


def _is_written_into(facts: ModuleFacts, name: ast.Name) -> bool:
    """Does the function write into a tensor, `w[w > 127] = 127`, `w.clamp_(-128, 127)`?"""
    for node in facts.around.within(facts.around.scope(name)):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            written: ast.expr = node.value
        elif isinstance(node, ast.Attribute) and node.attr.endswith("_"):
            written = node.value
        else:
            continue
        root = root_of(written)
        if isinstance(root, ast.Name) and root.id == name.id:
            return True
    return False


def _is_whole(facts: ModuleFacts, cast: Cast) -> bool:
    """Does the function ask for the dtype of what is cast, check its values, or use it as no floating tensor is used: its
    bits, as an index, as a test? Or is the result used at once, as masks are?"""
    root = root_of(cast.subject)
    if not isinstance(root, ast.Name) or _is_used_as_mask(facts, cast.node):
        return True
    inside = facts.around.within(facts.around.scope(root))
    return any(_uses_whole(node, root.id) for node in inside) or any(
        isinstance(part, ast.Name) and part.id == root.id
        for node in inside
        for operand in _of_bits(node)
        for part in facts.around.made_of(operand)
    )


def _is_used_as_mask(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is what was cast counted, compared or handed to torch at once, as masks are, and not kept, handed on or multiplied?"""
    parent = facts.around.parent(node)
    if isinstance(parent, ast.Attribute) and parent.attr in _COPYING | _VIEWS:
        outer = facts.around.parent(parent)
        return _is_used_as_mask(facts, outer if isinstance(outer, ast.Call) else parent)
    if isinstance(parent, ast.keyword):
        parent = facts.around.parent(parent)
    if isinstance(parent, ast.Call):
        by_torch = any(call.name.startswith("torch.") for call in facts.calls_at(parent))
        return by_torch and ast.unparse(parent.func).rpartition(".")[2] not in _KEEPING
    if isinstance(parent, ast.BinOp):
        return not isinstance(parent.op, ast.MatMult)
    return not isinstance(parent, (ast.Assign, ast.AnnAssign, ast.Return, ast.Tuple, ast.List, ast.Dict))


_VIEWS = frozenset({"t", "T", "mT", "transpose", "permute", "view", "reshape", "flatten", "numpy"})
_KEEPING = frozenset({"Parameter", "register_buffer", "matmul", "mm", "bmm", "linear", "save"})
"""What torch does with weights."""


def _of_bits(node: ast.AST) -> tuple[ast.expr, ...]:
    """The operands of an operator on bits, which floating tensors do not have."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _BITS):
        return node.left, node.right
    if isinstance(node, ast.Call) and last_name(node.func).startswith("bitwise_"):
        return (node.func.value, *node.args) if isinstance(node.func, ast.Attribute) else tuple(node.args)
    return ()


_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)


def _uses_whole(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _ASKING and path_of(node.value) == name
    if isinstance(node, ast.Call):
        called, _, function = ast.unparse(node.func).rpartition(".")
        return function == "is_floating_point" and name in (called, *map(path_of, node.args))
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, (ast.Invert, ast.Not)) and path_of(node.operand) == name
    if isinstance(node, ast.Subscript):
        return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.slice))
    if not isinstance(node, (ast.If, ast.IfExp, ast.Assert)):
        return False
    raises = isinstance(node, ast.Assert) or (isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise))
    return path_of(node.test) == name or (raises and any(_compares(part, name) for part in ast.walk(node.test)))


def _compares(test: ast.AST, name: str) -> bool:
    """`w < -128`, `w.max() <= 127`: is it about the values of a tensor, and not about its shape?"""
    if not isinstance(test, ast.Compare) or not any(isinstance(one, _ORDERS) for one in test.ops):
        return False
    for side in (test.left, *test.comparators):
        while isinstance(side, ast.Call) and isinstance(side.func, ast.Attribute) and side.func.attr in _OF_RANGE:
            side = side.func.value
        if isinstance(side, ast.Name) and side.id == name:
            return True
    return False


_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_OF_RANGE = frozenset({"min", "max", "amin", "amax", "abs", "item"})
"""Methods that give what the range of a tensor is told from."""
_ASKING = frozenset({"dtype", "is_floating_point", "any", "all", "nonzero", "bool", "logical_not", "masked_fill"})
