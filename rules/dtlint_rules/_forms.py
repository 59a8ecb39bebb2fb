"""What the form of an expression says: that it is a tensor, a mask, scores.

Inference knows what is proved. A library's function knows of its arguments only how they are used and named; these
readings are for the rules that judge such code, each with the words it trusts.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow
    from dtlint.infer.values import Value

__all__ = [
    "assignments",
    "is_guarded",
    "is_mask",
    "is_tensor",
    "is_used_as_tensor",
    "last_name",
    "parents_in",
    "root_of",
    "same",
    "source_of",
    "words_of",
]

_TENSOR_METHODS = frozenset(
    {
        *("unsqueeze", "masked_fill", "masked_fill_", "type_as", "expand_as", "detach", "norm", "pow", "exp", "log"),
        *(
            "sqrt",
            "rsqrt",
            "sigmoid",
            "softmax",
            "log_softmax",
            "logsumexp",
            "clamp",
            "clamp_min",
            "clamp_max",
            "float",
        ),
        *("half", "double", "bfloat16", "square", "mul", "add", "div", "sub", "permute", "contiguous", "index_select"),
        *("gather", "scatter_add", "amax", "amin", "chunk", "new_zeros", "new_ones", "expand", "log2", "log10", "bmm"),
        *(
            "matmul",
            "exp_",
            "clamp_",
            "pow_",
            "sqrt_",
            "add_",
            "mul_",
            "div_",
            "to",
            "tanh",
            "relu",
            "abs_",
            "diagonal",
        ),
    }
)
"""Methods that arrays and numbers do not have."""
_TORCH_KEYWORDS = frozenset({"dim", "keepdim", "unbiased"})
"""NumPy calls them axis, keepdims and ddof."""
_MASK = re.compile(r"(?:^|_)(?:\w*mask\w*|pad(?:ding)?|adj|adjacency|invalid|valid|keep)(?:_|$)", re.IGNORECASE)


def last_name(node: ast.AST) -> str:
    """The last name of a path or of what is called: `amax` of `x.abs().amax(-1)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def root_of(node: ast.expr) -> ast.expr:
    """What a chain of methods and subscripts begins with: `mask` of `mask[:, None].float()`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return node


def words_of(node: ast.AST) -> Iterator[str]:
    """The names that an expression mentions."""
    for part in nodes([node]):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def same(left: ast.AST, right: ast.AST) -> bool:
    """Do two expressions read alike?"""
    return ast.dump(left) == ast.dump(right)


def is_mask(node: ast.expr) -> bool:
    """Does an expression hold ones and zeros that say which entries count: `~m`, `x == 0`, `1 - mask`, `mask.float()`,
    `torch.triu(torch.ones(n, n))`, or by its name?"""
    while isinstance(node, (ast.Call, ast.Subscript)):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node.func, ast.Attribute) and path_of(node.func.value) not in ("torch", "th", "np"):
            node = node.func.value
        elif last_name(node) in ("triu", "tril", "logical_not", "logical_and", "logical_or", "eq", "ne") and node.args:
            return last_name(node) not in ("triu", "tril") or last_name(node.args[0]) in ("ones", "ones_like")
        else:
            return False
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert)
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        one = isinstance(node.left, ast.Constant) and node.left.value == 1
        return one and is_mask(node.right)
    return _MASK.search(last_name(node)) is not None


def is_tensor(node: ast.expr, value: Value, flow: Flow) -> bool:
    """Is it a tensor: by inference, by a method or keyword that only tensors have, or as a result of torch?"""
    if isinstance(value, Tensor):
        return True
    return any(_shows_tensor(part) for part in _computed(node)) or (
        isinstance(node, ast.Name) and _is_bound_to_tensor(node, flow)
    )


def is_used_as_tensor(node: ast.AST, scope: ast.AST) -> bool:
    """Is a method of tensors called on what `node` computes, or is it given to torch: `(p + eps).log()`?"""
    parent = parents_in(scope).get(node)
    if isinstance(parent, ast.Attribute):
        return parent.attr in _TENSOR_METHODS and isinstance(parents_in(scope).get(parent), ast.Call)
    return isinstance(parent, ast.Call) and (path_of(parent.func) or "").startswith(("torch.", "F.", "th."))


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
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            queue.append(part.func.value)


def _shows_tensor(part: ast.expr) -> bool:
    if not isinstance(part, ast.Call):
        return False
    path = path_of(part.func) or ""
    if path.startswith(("torch.", "F.", "th.")):
        return not path.endswith((".item", ".size", ".tolist"))
    if path.startswith(("np.", "numpy.", "math.")) or not isinstance(part.func, ast.Attribute):
        return False
    if part.func.attr in ("item", "tolist", "numpy"):
        return False
    return part.func.attr in _TENSOR_METHODS or any(keyword.arg in _TORCH_KEYWORDS for keyword in part.keywords)


def _is_bound_to_tensor(node: ast.Name, flow: Flow) -> bool:
    source = source_of(node, flow)
    return source is not None and any(_shows_tensor(part) for part in _computed(source))


def source_of(node: ast.expr, flow: Flow) -> ast.expr | None:
    """What a name was last assigned above it in the running function: by line, so that a branch's assignment counts."""
    if not isinstance(node, ast.Name):
        return None
    above = [
        value
        for line, value in assignments(flow.scope).get(node.id, ())
        if line < (flow.statement.lineno if flow.statement is not None else node.lineno)
    ]
    return above[-1] if above else None


@lru_cache(maxsize=64)
def assignments(scope: ast.AST) -> dict[str, list[tuple[int, ast.expr | None]]]:
    """For each name that a function assigns, the lines and what was assigned there; None where that is taken apart."""
    found: dict[str, list[tuple[int, ast.expr | None]]] = {}
    body = getattr(scope, "body", [])
    targets: list[ast.expr]
    value: ast.expr | None
    for node in nodes(body if isinstance(body, list) else [body], SCOPES):
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets, value = [node.target], node.value if isinstance(node, ast.AnnAssign) else None
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets, value = [node.target], None
        else:
            continue
        for target in targets:
            for name in nodes([target]):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    found.setdefault(name.id, []).append((node.lineno, value if name is target else None))
    for lines in found.values():
        lines.sort(key=lambda line: line[0])
    return found


_NEEDS_MORE_THAN_ZERO = frozenset({"log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log_", "sqrt_", "rsqrt_"})
"""Of 0 they are infinite, or have an infinite gradient."""
_DIVIDES = frozenset({"div", "div_", "true_divide", "divide"})


def is_guarded(node: ast.expr | ast.stmt, scope: ast.AST) -> bool:
    """Is what `node` computes divided by, or given to a logarithm or a root: at once, or by the name that it gets?"""
    parents = parents_in(scope)
    reached = _reached(node, parents)
    if reached is None:
        return True
    if not isinstance(reached, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return False
    targets = reached.targets if isinstance(reached, ast.Assign) else [reached.target]
    return any(_is_used_guarded(target, reached, parents) for target in targets)


def _reached(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> ast.AST | None:
    """Where a value gets through sums, products and methods; None when that is a divisor, a logarithm or a root."""
    child = node
    while True:
        parent = parents.get(child)
        if _needs_more_than_zero(parent, child):
            return None
        if isinstance(parent, ast.Attribute) and isinstance(parents.get(parent), ast.Call):
            child = parents[parent]
        elif isinstance(parent, (ast.Subscript, ast.UnaryOp)) or (
            isinstance(parent, ast.BinOp) and isinstance(parent.op, (ast.Mult, ast.Add))
        ):
            child = parent
        else:
            return child if isinstance(child, ast.stmt) else parent


def _needs_more_than_zero(parent: ast.AST | None, child: ast.AST) -> bool:
    if isinstance(parent, ast.BinOp):
        if isinstance(parent.op, ast.Div):
            return parent.right is child
        power = parent.right
        negative = isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub)
        root = isinstance(power, ast.Constant) and power.value == 0.5
        return isinstance(parent.op, ast.Pow) and parent.left is child and (negative or root)
    if isinstance(parent, ast.AugAssign):
        return isinstance(parent.op, ast.Div) and parent.value is child
    if isinstance(parent, ast.Attribute):
        return parent.attr in _NEEDS_MORE_THAN_ZERO
    if isinstance(parent, ast.Call):
        name = last_name(parent)
        return child in parent.args and (
            name in _NEEDS_MORE_THAN_ZERO or (name in _DIVIDES and parent.args[-1] is child)
        )
    return False


def _is_used_guarded(target: ast.expr, statement: ast.stmt, parents: dict[ast.AST, ast.AST]) -> bool:
    path = path_of(target)
    if path is None:
        return False
    for node in parents:
        if getattr(node, "lineno", 0) <= statement.lineno or not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        if path_of(node) == path and isinstance(node.ctx, ast.Load) and _reached(node, parents) is None:
            return True
    return False


@lru_cache(maxsize=16)
def parents_in(scope: ast.AST) -> dict[ast.AST, ast.AST]:
    """For each node of a function, the node that it is a part of."""
    return {child: parent for parent in ast.walk(scope) for child in ast.iter_child_nodes(parent)}
