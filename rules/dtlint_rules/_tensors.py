"""Is it a tensor, by how the code uses it?

Inference knows what is proved. A library's function knows of its arguments only how they are used; these readings are
for the rules that judge such code, each with the methods that it trusts.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._functions import own_nodes
from dtlint_rules._names import last_name
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow
    from dtlint.infer.values import Value

__all__ = ["is_reckoned_with", "is_tensor", "is_used_as_tensor", "looks_like_tensor"]

_METHODS = frozenset(
    {
        *("unsqueeze", "masked_fill", "masked_fill_", "type_as", "expand_as", "detach", "norm", "pow", "exp", "log"),
        *("sqrt", "rsqrt", "sigmoid", "softmax", "log_softmax", "logsumexp", "clamp", "clamp_min", "clamp_max"),
        *("float", "half", "double", "bfloat16", "square", "mul", "add", "div", "sub", "permute", "contiguous"),
        *("index_select", "gather", "scatter_add", "amax", "amin", "chunk", "new_zeros", "new_ones", "expand"),
        *("log2", "log10", "bmm", "matmul", "exp_", "clamp_", "pow_", "sqrt_", "add_", "mul_", "div_", "to", "tanh"),
        *("relu", "abs_", "diagonal"),
    }
)
"""Methods that arrays and numbers do not have."""
_KEYWORDS = frozenset({"dim", "keepdim", "unbiased"})
"""NumPy calls them axis, keepdims and ddof."""
_MEMBERS = frozenset(
    {
        *("shape", "size", "ndim", "dim", "numel", "view", "reshape", "permute", "transpose", "expand", "chunk"),
        *("flatten", "unsqueeze", "squeeze", "masked_fill", "softmax", "mean", "sum", "matmul", "contiguous"),
        *("is_cuda", "requires_grad", "detach", "unbind", "repeat_interleave", "index_select", "gather", "argmax"),
        *("clamp", "is_contiguous", "stride"),
    }
)
"""What arrays and tensors have and modules have not."""
_SIZES = frozenset({"shape", "ndim"})
_COMPUTING = frozenset(
    {"size", "numel", "mean", "sum", "unsqueeze", "squeeze", "view", "reshape", "permute", "transpose", "expand"}
    | {"norm", "masked_fill", "softmax", "matmul", "contiguous", "gather", "index_select", "clamp", "pow", "sqrt"}
    | {"rsqrt", "abs"}
)
"""What tensors have and modules have not, by its name and its call: sizes, and methods that compute."""
_ARITHMETIC = (ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)
"""Modules can be joined by `+` and `|`."""
_QUESTIONS = frozenset({"isinstance", "hasattr", "callable", "type"})
_OF_TORCH = ("torch.", "F.", "th.")
_LEAVING = frozenset({"item", "tolist", "numpy"})
"""Methods of tensors that give none."""


def is_tensor(node: ast.expr, value: Value, flow: Flow) -> bool:
    """Is it a tensor: by inference, by a method or keyword that only tensors have, or as a result of torch?"""
    if isinstance(value, Tensor) or any(map(_shows_tensor, _computed(node))):
        return True
    source = source_of(node, flow)
    return source is not None and any(map(_shows_tensor, _computed(source)))


def is_used_as_tensor(node: ast.AST, flow: Flow) -> bool:
    """Is a method of tensors called on what `node` computes, or is it given to torch: `(p + eps).log()`?"""
    around = parents_at(node, flow)
    parent = around.get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _METHODS and isinstance(around.get(parent), ast.Call)
    return isinstance(parent, ast.Call) and (path_of(parent.func) or "").startswith(_OF_TORCH)


def looks_like_tensor(path: str, scope: ast.AST) -> bool:
    """Does a function use a name as only tensors and arrays are used: `x.shape`, `x[:, 0]`, `x @ w`?"""
    return any(_uses_as_tensor(node, path) for node in own_nodes(scope))


def is_reckoned_with(name: str, line: int, scope: ast.AST) -> bool:
    """Does a function compute with what a name stands for on a line as nobody does with a module: `x * y`, `x.shape`,
    `x.mean()`? What stands behind the next binding of the name is of something else. Where the function asks what it has,
    `isinstance(x, Module)`, nothing is said."""
    bound = [at for at, _ in assignments(scope).get(name, ())]
    first = max((at for at in bound if at < line), default=0)
    last = min((at for at in bound if at > line), default=sys.maxsize)
    reckons = False
    for node in own_nodes(scope):
        if isinstance(node, ast.Call) and last_name(node) in _QUESTIONS and node.args and path_of(node.args[0]) == name:
            return False
        if not reckons and first < getattr(node, "lineno", 0) <= last:
            reckons = _reckons_with(node, name)
    return reckons


def _reckons_with(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _SIZES and path_of(node.value) == name
    if isinstance(node, ast.Call):
        return (
            isinstance(node.func, ast.Attribute) and node.func.attr in _COMPUTING and path_of(node.func.value) == name
        )
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, _ARITHMETIC)
        and name in (path_of(node.left), path_of(node.right))
    )


def _uses_as_tensor(node: ast.AST, path: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _MEMBERS and path_of(node.value) == path
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, (ast.Tuple, ast.Slice)) and path_of(node.value) == path
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.MatMult)
        and path in (path_of(node.left), path_of(node.right))
    )


def _computed(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and what its arithmetic and its chains of methods are made of, but not their arguments."""
    queue = [node]
    while queue:
        part = queue.pop()
        yield part
        if isinstance(part, ast.BinOp):
            queue += [part.left, part.right]
        elif isinstance(part, ast.UnaryOp):
            queue.append(part.operand)
        elif isinstance(part, ast.Subscript):
            queue.append(part.value)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr not in _LEAVING:
            queue.append(part.func.value)


def _shows_tensor(part: ast.expr) -> bool:
    if not isinstance(part, ast.Call):
        return False
    path = path_of(part.func) or ""
    if path.startswith(_OF_TORCH):
        return not path.endswith((".item", ".size", ".tolist"))
    if path.startswith(("np.", "numpy.", "math.")) or not isinstance(part.func, ast.Attribute):
        return False
    if part.func.attr in _LEAVING:
        return False
    return part.func.attr in _METHODS or any(keyword.arg in _KEYWORDS for keyword in part.keywords)
