"""The definitions that stand in a body of statements, and which of them anybody may call."""

from __future__ import annotations

import ast
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = [
    "FunctionNode",
    "called_by_pytest",
    "classes",
    "functions",
    "is_public",
    "named_parameters",
    "nested_classes",
    "overriding",
    "public_functions",
    "returned",
]

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


def named_parameters(function: FunctionNode | ast.Lambda) -> tuple[ast.arg, ...]:
    """The parameters of a function that one argument can be given for, in order: those with stars aside."""
    given = function.args
    return (*given.posonlyargs, *given.args, *given.kwonlyargs)


def is_public(node: FunctionNode | ast.ClassDef) -> bool:
    """May anybody call it? What is private is called by what stands in view."""
    return not node.name.startswith("_") or node.name == "__call__"


def called_by_pytest(path: Path | None, node: FunctionNode | ast.ClassDef) -> bool:
    """Does pytest alone call it, by its conventions: a test or a fixture, or a class of tests? What it is given fixtures say."""
    if path is None or not (path.stem.startswith("test_") or path.stem.endswith("_test") or path.stem == "conftest"):
        return False
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test") or node.name.endswith("Test")
    called = (one.func if isinstance(one, ast.Call) else one for one in node.decorator_list)
    return node.name.startswith("test") or any(
        getattr(one, "attr", getattr(one, "id", "")) == "fixture" for one in called
    )


def overriding(tree: ast.Module) -> Iterator[FunctionNode]:
    """The private methods of public classes with bases that nothing in a module names: code of the bases calls them."""
    every = [method for node in filter(is_public, classes(tree.body)) if node.bases for method in functions(node.body)]
    private = [one for one in every if one.name.startswith("_") and not one.name.startswith("__")]
    if private:
        named = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
        yield from (one for one in private if one.name not in named)


def functions(body: Sequence[ast.stmt]) -> Iterator[FunctionNode]:
    """The functions that statements define, those in functions and classes aside."""
    return (node for node in _statements(body) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def classes(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef]:
    """The classes that statements define, those in functions and classes aside."""
    return (node for node in _statements(body) if isinstance(node, ast.ClassDef))


def nested_classes(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef]:
    """The classes that statements define, and those in the bodies of these; those in functions aside."""
    for node in classes(body):
        yield node
        yield from nested_classes(node.body)


def public_functions(body: Sequence[ast.stmt]) -> Iterator[FunctionNode]:
    """The public functions that statements define, and the public methods of their public classes."""
    yield from filter(is_public, functions(body))
    for node in filter(is_public, classes(body)):
        yield from public_functions(node.body)


def returned(function: FunctionNode) -> Iterator[ast.expr]:
    """What the function itself returns; not what those in it return."""
    for node in _statements(function.body):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The statements that run where these do, those in their blocks included."""
    waiting: deque[ast.AST] = deque(body)
    while waiting:
        node = waiting.popleft()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            waiting.extend(ast.iter_child_nodes(node))
