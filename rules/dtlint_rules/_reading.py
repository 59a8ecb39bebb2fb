"""Code read without its values: what stands around a node, who reads a name and when, what a name is used as.

Rules that judge what is *not* there (a result that nobody reads, a guard that is missing) ask here.
"""

from __future__ import annotations

import ast
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow
    from dtlint.infer.values import Value

__all__ = [
    "body_of",
    "imports",
    "known",
    "loads",
    "looks_like_tensor",
    "own_nodes",
    "parents",
    "read_later",
    "subject_of",
]

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@lru_cache(maxsize=2)
def parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """What each node of a module stands in."""
    return {child: node for node in nodes([tree]) for child in ast.iter_child_nodes(node)}


@lru_cache(maxsize=2)
def imports(tree: ast.Module) -> frozenset[str]:
    """The packages that a module imports outside of functions, by the first part of their names."""
    found: set[str] = set()
    for node in nodes(tree.body, SCOPES):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return frozenset(found)


def body_of(scope: ast.AST) -> list[ast.stmt]:
    """The statements of a function or a module; none of a lambda."""
    return [] if isinstance(scope, ast.Lambda) else scope.body  # type: ignore[attr-defined]


@lru_cache(maxsize=16)
def own_nodes(scope: ast.AST) -> tuple[ast.AST, ...]:
    """What a function runs itself: the nodes of its body, and of functions inside it only that they are there."""
    return tuple(nodes([scope.body] if isinstance(scope, ast.Lambda) else body_of(scope), SCOPES))


def subject_of(node: ast.expr) -> ast.expr:
    """What a chain of methods, attributes and subscripts begins with: `x` of `x.detach()[0].float()`."""
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return node


def known(flow: Flow, node: ast.expr) -> Value:
    """The value of a name or a dotted path just now, without evaluating anything."""
    from dtlint.infer.evidence import Kind
    from dtlint.infer.values import UNKNOWN, Module, Tensor, Unknown

    path = path_of(node)
    if path is None:
        return UNKNOWN
    value = (flow.state.names if isinstance(node, ast.Name) else flow.state.paths).get(path, UNKNOWN)
    if isinstance(value, Unknown):
        kind = _evidence(flow.scope).kind(path, node.lineno)
        if kind is not None:
            return Tensor() if kind is Kind.TENSOR else Module("torch.nn.Module", path)
    return value


@lru_cache(maxsize=16)
def _evidence(scope: ast.AST):  # type: ignore[no-untyped-def]  # Evidence, which is loaded only where it is asked for
    from dtlint.infer.evidence import gather

    return gather(scope)


_TENSOR_MEMBERS = frozenset(
    {"shape", "size", "ndim", "dim", "numel", "view", "reshape", "permute", "transpose", "expand", "chunk", "flatten"}
    | {
        "unsqueeze",
        "squeeze",
        "masked_fill",
        "softmax",
        "mean",
        "sum",
        "matmul",
        "contiguous",
        "is_cuda",
        "requires_grad",
    }
    | {"detach", "unbind", "repeat_interleave", "index_select", "gather", "argmax", "clamp", "is_contiguous", "stride"}
)
"""What arrays and tensors have and modules have not."""


def looks_like_tensor(path: str, scope: ast.AST) -> bool:
    """Does a function use a name as only tensors and arrays are used: `x.shape`, `x[:, 0]`, `x @ w`?"""
    for node in own_nodes(scope):
        if isinstance(node, ast.Attribute) and node.attr in _TENSOR_MEMBERS and path_of(node.value) == path:
            return True
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.slice, (ast.Tuple, ast.Slice))
            and path_of(node.value) == path
        ):
            return True
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.MatMult)
            and path in map(path_of, (node.left, node.right))
        ):
            return True
    return False


# -- who reads a name --------------------------------------------------------------------------------------------------


def loads(part: ast.AST, name: str) -> bool:
    """Is the name read at or below a node? `x[i] = y`, `x.a = y` and `x += y` read `x`."""
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and (isinstance(node.ctx, ast.Load) or isinstance(part, ast.AugAssign))
        for node in ast.walk(part)
    )


class _Fate(Enum):
    READ = "read"
    LOST = "bound anew, or the path is over"
    OPEN = "neither so far"


def read_later(name: str, statement: ast.stmt, scope: Scope, tree: ast.Module) -> bool:
    """May the value that a statement binds to a local name be read?

    True as well where that cannot be told: in a module, whose names others import; of a name that an inner function or
    `locals()` may reach; behind `break`.
    """
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) or _shared(name, scope):
        return True
    around = parents(tree)
    child: ast.AST = statement
    while child is not scope:
        parent = around[child]
        fate = _behind(parent, child, name)
        if fate is not _Fate.OPEN:
            return fate is _Fate.READ
        child = parent
    return False


@lru_cache(maxsize=32)
def _shared(name: str, scope: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for node in own_nodes(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if isinstance(node, SCOPES) and loads(node, name):
            return True
        if isinstance(node, ast.Call) and path_of(node.func) in ("locals", "vars", "eval", "exec"):
            return True
    return False


def _behind(parent: ast.AST, child: ast.AST, name: str) -> _Fate:
    """What becomes of a name behind `child`, inside of `parent`."""
    fate = _Fate.OPEN
    block = next((block for block in _blocks(parent) if child in block), None)
    if block is not None:
        place = next(index for index, part in enumerate(block) if part is child)
        fate = _block(block[place + 1 :], name)
        if fate is _Fate.OPEN and isinstance(parent, (ast.For, ast.AsyncFor, ast.While)) and block is parent.body:
            if isinstance(parent, ast.While) and loads(parent.test, name):
                return _Fate.READ
            if not isinstance(parent, ast.While) and _binds(parent.target, name):
                pass  # the next item takes its place
            elif _block(parent.body[: place + 1], name) is _Fate.READ:
                return _Fate.READ
            return _block(parent.orelse, name)
    if isinstance(parent, _TRIES):
        # What a handler or a `finally` reads may be what was bound anywhere on the way.
        rest = [*parent.handlers, *parent.orelse, *parent.finalbody]
        if fate is not _Fate.READ and any(part is not child and loads(part, name) for part in rest):
            return _Fate.READ
    return fate


_TRIES = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(node, field, None)
        if isinstance(block, list):
            yield block


def _block(statements: list[ast.stmt], name: str) -> _Fate:
    for statement in statements:
        fate = _statement(statement, name)
        if fate is not _Fate.OPEN:
            return fate
    return _Fate.OPEN


def _statement(node: ast.stmt, name: str) -> _Fate:
    """What a statement does first with a name."""
    if isinstance(node, ast.If):
        if loads(node.test, name):
            return _Fate.READ
        fates = {_block(node.body, name), _block(node.orelse, name)}
        return _Fate.READ if _Fate.READ in fates else fates.pop() if len(fates) == 1 else _Fate.OPEN
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        head = node.test if isinstance(node, ast.While) else node.iter
        inner = _block([*node.body, *node.orelse], name)
        bound = not isinstance(node, ast.While) and _binds(node.target, name)
        return _Fate.READ if loads(head, name) or (inner is _Fate.READ and not bound) else _Fate.OPEN
    if isinstance(node, (ast.With, ast.AsyncWith)):
        if any(loads(item.context_expr, name) for item in node.items):
            return _Fate.READ
        return _block(node.body, name)
    if isinstance(node, (ast.Break, ast.Continue)):
        return _Fate.READ  # where the path goes on is not followed
    if loads(node, name):
        return _Fate.READ
    if isinstance(node, (ast.Return, ast.Raise)):
        return _Fate.LOST
    if isinstance(node, ast.Assign) and any(_binds(target, name) for target in node.targets):
        return _Fate.LOST
    if isinstance(node, ast.AnnAssign) and node.value is not None and _binds(node.target, name):
        return _Fate.LOST
    return _Fate.OPEN


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_binds(part, name) for part in target.elts)
    return isinstance(target, ast.Name) and target.id == name
