"""Torch's ops as they stand in a module, whether their operands are known to be tensors or not.

`facts.operations` tells of those that certainly are. What nobody has cast yet is told here: what it would be in half is
conditional.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import TOP, Tensor, Unknown
from dtlint_rules._attained import one_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts

__all__ = [
    "Use",
    "is_callers",
    "is_edge",
    "is_half",
    "is_in_place",
    "is_mended",
    "is_open",
    "is_rest",
    "is_settled",
    "maker",
    "number_at",
    "peeled",
    "uses",
]

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_divide",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}
_WIDE = frozenset({"float32", "float64"})


@dataclass(frozen=True, slots=True)
class Use:
    """An op where it stands.

    Attributes:
        node: the call, the operator, or the target that is written.
        name: `masked_fill`, whether it is a method or a function, in place or not; `__setitem__` of what is written.
        values, nodes: the operands, a method's receiver first, and their expressions.
        keywords: the arguments by name.
        result: what it gives.
        region: the autocast region in force.
    """

    node: ast.expr | ast.stmt
    name: str
    values: tuple[Value, ...]
    nodes: tuple[ast.expr, ...]
    keywords: Mapping[str, tuple[ast.expr, Value]]
    result: Value
    region: Value = TOP

    def given(self, position: int, name: str = "") -> tuple[ast.expr | None, Value | None]:
        """An operand by its position, or by its name, and its value."""
        if position < len(self.nodes):
            return self.nodes[position], self.values[position]
        return self.keywords.get(name, (None, None))


def uses(facts: ModuleFacts, *names: str) -> Iterator[Use]:
    """The uses of some ops, by the last parts of their names."""
    known = _all(facts)
    for name in names:
        yield from known.get(name, ())


@lru_cache(maxsize=1)
def _all(facts: ModuleFacts) -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = {}
    for call in facts.calls():
        use = _of_call(call)
        if use is not None:
            found.setdefault(use.name, []).append(use)
    for seen in facts.evaluations(ast.BinOp, ast.AugAssign):
        node = seen.node
        name = _OPERATORS.get(type(node.op))
        if name is not None and len(seen.operands) == 2:
            nodes = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
            found.setdefault(name, []).append(Use(node, name, seen.operands, nodes, {}, seen.result, seen.region))
    for seen in facts.assignments():
        node = seen.node
        if not isinstance(node, ast.Subscript) or len(seen.operands) != 2:
            continue
        statement = facts.around.statement(node)
        if isinstance(statement, ast.Assign):
            parts = (node.value, node.slice, statement.value)
            use = Use(statement, "__setitem__", (*seen.operands, seen.result), parts, {}, seen.operands[0])
            found.setdefault("__setitem__", []).append(use)
    return found


def _of_call(call: Call) -> Use | None:
    """A function of torch, a method of a tensor or of what may be one, or a layer."""
    node, last = call.node, call.name.rpartition(".")[2]
    if any(isinstance(one, ast.Starred) for one in node.args) or len(call.args) != len(node.args):
        return None
    values, nodes = call.args, tuple(node.args)
    keywords = {one.arg: (one.value, call.keywords.get(one.arg, TOP)) for one in node.keywords if one.arg is not None}
    result = TOP if call.result is None else call.result
    if not nodes and "input" in keywords:
        nodes, values = (keywords["input"][0],), (keywords["input"][1],)
    if call.name.startswith("torch.nn.") and last == "__call__":
        return Use(node, call.name.split(".")[-2], values, nodes, keywords, result, call.region)
    if (
        isinstance(node.func, ast.Attribute)
        and isinstance(call.receiver, (Tensor, Unknown))
        and not call.name.startswith("torch.nn")
    ):
        values, nodes, last = (call.receiver, *values), (node.func.value, *nodes), call.method
    elif not call.name.startswith("torch."):
        return None
    return Use(node, last if last.startswith("_") else last.rstrip("_"), values, nodes, keywords, result, call.region)


def is_open(value: Value | None) -> bool:
    """Is it up to a caller whether this is half: a tensor whose dtype is that of a parameter or a weight, or anything?"""
    if not isinstance(value, (Tensor, Unknown)) or value.dtypes is not None:
        return False
    return isinstance(value, Unknown) if value.symbol is None else not value.symbol.met & _WIDE


def is_half(value: Value | None, dtypes: frozenset[str] = LOW_PRECISION) -> bool:
    """Is it certainly half, if it is a tensor: `x.half()`, whatever x is?"""
    return isinstance(value, (Tensor, Unknown)) and bool(value.dtypes) and (value.dtypes or frozenset()) <= dtypes


def is_callers(value: Value | None) -> bool:
    """Is it of the dtype of a parameter or of a weight, and may that be half?"""
    return is_open(value) and isinstance(value, (Tensor, Unknown)) and value.symbol is not None


def is_rest(node: ast.expr) -> ast.expr | None:
    """`mask`, of `1 - mask`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub) or not isinstance(node.left, ast.Constant):
        return None
    return node.right if node.left.value == 1 else None


def is_settled(facts: ModuleFacts, node: ast.AST) -> bool:
    """Does a test that holds here ask for a dtype, or do calls in view give the function float32?"""
    function = facts.around.function(node)
    if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name.startswith("_"):
        given = (value for call in facts.methods(function.name) for value in call.args)
        if any(isinstance(one, (Tensor, Unknown)) and one.dtypes and one.dtypes <= _WIDE for one in given):
            return True
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("dtype", "is_floating_point")
        for guard in facts.around.guards(node)
        for part in ast.walk(guard.test)
    )


def number_at(facts: ModuleFacts, node: ast.expr | None, value: Value | None = None) -> float | None:
    """The number that an expression is; of a parameter the one that it has by default."""
    if node is None:
        return None
    known = one_number(facts.value(node) if value is None else value)
    if known is not None:
        return known
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number_at(facts, node.operand)
        return None if inner is None else -inner
    default = _default(facts, node) if isinstance(node, ast.Name) else None
    return None if default is None else one_number(facts.value(default))


def _default(facts: ModuleFacts, name: ast.Name) -> ast.expr | None:
    bound = facts.around.definitions(name)
    function = facts.around.function(name)
    if len(bound) != 1 or not isinstance(bound[0], ast.arg) or function is None:
        return None
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(positional), reversed(given.defaults), strict=False)]
    pairs += [
        (one, default) for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is not None
    ]
    return next((default for one, default in pairs if one is bound[0]), None)


_MOVES = frozenset(
    {
        "view",
        "reshape",
        "expand",
        "expand_as",
        "unsqueeze",
        "squeeze",
        "contiguous",
        "transpose",
        "permute",
        "detach",
        "clone",
    }
    | {"float", "double", "half", "bfloat16", "to", "type", "type_as", "repeat", "flatten", "cuda", "cpu"}
)


def peeled(facts: ModuleFacts, node: ast.expr) -> ast.expr:
    """What made the elements of a tensor: behind variables, subscripts and methods that move or cast them."""
    for _ in range(8):
        inner = facts.around.definition(node)
        if isinstance(inner, ast.Subscript):
            inner = inner.value
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in _MOVES:
            inner = inner.func.value
        if inner is node:
            break
        node = inner
    return node


def maker(facts: ModuleFacts, node: ast.expr) -> Use | None:
    """The op that made the elements of a tensor."""
    made = peeled(facts, node)
    if isinstance(made, ast.Call):
        return next(filter(None, map(_of_call, facts.calls_at(made))), None)
    if isinstance(made, ast.BinOp):
        return next((use for use in uses(facts, _OPERATORS.get(type(made.op), "")) if use.node is made), None)
    return None


_EDGED = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal"})
"""What is undefined at zero, or has no slope there."""


def is_edge(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is something divided by an expression, or given to what has no value or no slope at zero?"""
    parent = facts.around.parent(node)
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div):
        return parent.right is node
    call = parent if isinstance(parent, ast.Call) else facts.around.parent(parent) if parent is not None else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    power = number_at(facts, call.args[-1]) if call.func.attr == "pow" and call.args else None
    return call.func.attr in _EDGED or (power is not None and power < 1)


_MENDING = frozenset({"where", "isnan", "isinf", "isfinite", "nan_to_num", "nan_to_num_"})


def is_in_place(node: ast.AST) -> bool:
    """Does it change its first operand: `x.sub_(m)`, `x -= m`?"""
    return isinstance(node, ast.AugAssign) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_")
    )


def is_mended(facts: ModuleFacts, node: ast.AST) -> bool:
    """Does the function around it look for NaN and infinities, or choose among values?"""
    scope = facts.around.scope(node)
    return any(isinstance(part, ast.Attribute) and part.attr in _MENDING for part in facts.around.within(scope))
