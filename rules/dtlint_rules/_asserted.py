"""What a program makes sure of by `assert`, and by `if not ...: raise`: that a dtype is none of the half ones, say."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._functions import body_of, parameters
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Flow

__all__ = ["asserted", "is_asserted_wide", "refused"]

_WIDE = frozenset({"float32", "float64", "float", "double"})


def is_asserted_wide(path: str, flow: Flow) -> bool:
    """Does the running function make sure that a dtype is float32 or float64, or `__init__`, where it is one that the
    instance keeps: `assert dtype in (torch.float32, torch.float64)`?"""
    if path in _wide(flow.scope):
        return True
    owner = flow.function.owner if flow.function is not None else None
    own, _, name = path.partition(".")
    if owner is None or own != "self":
        return False
    made = (part for part in owner.node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__")
    return any(path in _wide(init) or _source(init, path, name) in _wide(init) for init in made)


@kept
def refused(scope: ast.AST) -> frozenset[str]:
    """The half dtypes of which a function takes no tensor as an argument: `assert x.dtype != torch.float16`. A check inside
    of a branch or a loop is one of what stands there."""
    found, given = set[str](), {f"{parameter.arg}.dtype" for parameter in parameters(scope)}
    for held in _held(body_of(scope)):
        if not isinstance(held, ast.Compare) or len(held.ops) != 1 or path_of(held.left) not in given:
            continue
        listed = held.comparators[0]
        names = {
            last_name(dtype)
            for dtype in (listed.elts if isinstance(listed, (ast.Tuple, ast.List, ast.Set)) else [listed])
        }
        if isinstance(held.ops[0], (ast.NotEq, ast.IsNot, ast.NotIn)):
            found |= {_HALF[name] for name in names & _HALF.keys()}
        elif isinstance(held.ops[0], (ast.Eq, ast.Is, ast.In)) and names <= _WIDE:
            found |= set(_HALF.values())
    return frozenset(found)


_HALF = {"float16": "float16", "half": "float16", "bfloat16": "bfloat16"}


def _source(init: ast.FunctionDef, path: str, name: str) -> str | None:
    """The name that an attribute is given by `__init__`: `dtype` of `self.dtype = dtype`."""
    for node in statements(init):
        if isinstance(node, ast.Assign) and any(path_of(target) == path for target in node.targets):
            return path_of(node.value)
    return None


@kept
def _wide(scope: ast.AST) -> frozenset[str]:
    """The paths of the dtypes that a function lets be float32 or float64 alone."""
    found = set()
    for held in asserted(scope):
        if isinstance(held, ast.Compare) and len(held.ops) == 1 and isinstance(held.ops[0], (ast.In, ast.Eq, ast.Is)):
            named = held.comparators[0]
            dtypes = named.elts if isinstance(named, (ast.Tuple, ast.List, ast.Set)) else [named]
            path = path_of(held.left)
            if path is not None and dtypes and all(last_name(dtype) in _WIDE for dtype in dtypes):
                found.add(path)
    return frozenset(found)


_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotIn: ast.In,
    ast.NotEq: ast.Eq,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
}


def asserted(scope: ast.AST) -> Iterator[ast.expr]:
    """What holds behind the checks of a function: the test of an `assert`, and what `if not ...: raise` asks for. The test of
    `if ...: raise` is turned round."""
    yield from _held(statements(scope))


def _held(checks: Iterable[ast.AST]) -> Iterator[ast.expr]:
    for node in checks:
        if isinstance(node, ast.Assert):
            yield from _parts(node.test)
        elif isinstance(node, ast.If) and len(node.body) == 1 and isinstance(node.body[0], ast.Raise):
            test = node.test
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                yield from _parts(test.operand)
            elif isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _TURNED:
                turned = ast.Compare(test.left, [_TURNED[type(test.ops[0])]()], test.comparators)
                yield ast.copy_location(turned, test)


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        yield from test.values
    else:
        yield test
