"""Who reads what a statement binds to a name: in what order a function's statements read it and bind it anew."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import SCOPES, nodes
from dtlint_rules._functions import own_nodes
from dtlint_rules._kept import kept
from dtlint_rules._statements import around, block_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.events import Flow

__all__ = ["read_later"]


def _loads(part: ast.AST, name: str) -> bool:
    """Is the name read at or below a node? `x[i] = y`, `x.a = y` and `x += y` read `x`."""
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and (isinstance(node.ctx, ast.Load) or isinstance(part, ast.AugAssign))
        for node in nodes([part])
    )


class _Fate(Enum):
    READ = "read"
    LOST = "bound anew, or the path is over"
    OPEN = "neither so far"


def read_later(name: str, statement: ast.stmt, flow: Flow) -> bool:
    """May the value that the running statement binds to a local name be read?

    True as well where that cannot be told: in a module, whose names others import; of a name that an inner function or
    `locals()` may reach; behind `break`.
    """
    scope = flow.scope
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    if _block(flow.block[flow.block.index(statement) + 1 :], name) is _Fate.READ:
        return True  # soon, as usual: what stands around the block need not be known
    child: ast.AST = statement
    for parent in around(statement, scope):
        fate = _behind(parent, child, name)
        if fate is not _Fate.OPEN:
            return fate is _Fate.READ or _shared(scope, name)
        child = parent
    return _shared(scope, name)


@kept
def _shared(scope: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    for node in own_nodes(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if isinstance(node, SCOPES) and _loads(node, name):
            return True
        if isinstance(node, ast.Call) and path_of(node.func) in ("locals", "vars", "eval", "exec"):
            return True
    return False


def _behind(parent: ast.AST, child: ast.AST, name: str) -> _Fate:
    """What becomes of a name behind `child`, inside of `parent`."""
    fate = _Fate.OPEN
    block = block_of(child, parent)
    if block:
        place = next(index for index, part in enumerate(block) if part is child)
        fate = _block(block[place + 1 :], name)
        if fate is _Fate.OPEN and isinstance(parent, (ast.For, ast.AsyncFor, ast.While)) and block is parent.body:
            if isinstance(parent, ast.While) and _loads(parent.test, name):
                return _Fate.READ
            if not isinstance(parent, ast.While) and _binds(parent.target, name):
                pass  # the next item takes its place
            elif _block(parent.body[: place + 1], name) is _Fate.READ:
                return _Fate.READ
            return _block(parent.orelse, name)
    if isinstance(parent, _TRIES):
        # What a handler or a `finally` reads may be what was bound anywhere on the way.
        rest = [*parent.handlers, *parent.orelse, *parent.finalbody]
        if fate is not _Fate.READ and any(part is not child and _loads(part, name) for part in rest):
            return _Fate.READ
    return fate


_TRIES = (ast.Try, ast.TryStar) if hasattr(ast, "TryStar") else (ast.Try,)


def _block(statements: Sequence[ast.stmt], name: str) -> _Fate:
    for statement in statements:
        fate = _statement(statement, name)
        if fate is not _Fate.OPEN:
            return fate
    return _Fate.OPEN


def _statement(node: ast.stmt, name: str) -> _Fate:
    """What a statement does first with a name."""
    if isinstance(node, ast.If):
        if _loads(node.test, name):
            return _Fate.READ
        fates = {_block(node.body, name), _block(node.orelse, name)}
        return _Fate.READ if _Fate.READ in fates else fates.pop() if len(fates) == 1 else _Fate.OPEN
    if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
        head = node.test if isinstance(node, ast.While) else node.iter
        inner = _block([*node.body, *node.orelse], name)
        bound = not isinstance(node, ast.While) and _binds(node.target, name)
        return _Fate.READ if _loads(head, name) or (inner is _Fate.READ and not bound) else _Fate.OPEN
    if isinstance(node, (ast.With, ast.AsyncWith)):
        if any(_loads(item.context_expr, name) for item in node.items):
            return _Fate.READ
        return _block(node.body, name)
    if isinstance(node, (ast.Break, ast.Continue)):
        return _Fate.READ  # where the path goes on is not followed
    if _loads(node, name):
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
