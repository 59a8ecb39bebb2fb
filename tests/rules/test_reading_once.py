"""The shared readings that rules ask often: found once, and no more of the file than the question needs."""

from __future__ import annotations

import ast
import gc
import weakref
from textwrap import dedent

from dtlint_rules._imports import imports
from dtlint_rules._kept import kept
from dtlint_rules._statements import owners, statements

SOURCE = dedent(
    """\
    import torch

    def load(path):
        try:
            import safetensors.torch
        except ImportError as error:
            from numpy import array
        match path:
            case "x":
                from . import local
                return lambda: path
    """
)


def test_a_fact_is_found_once_for_each_choice_of_arguments():
    asked = []

    @kept
    def fact(node: ast.AST, name: str) -> str:
        asked.append(name)
        return name.upper()

    node = ast.parse("x")
    assert [fact(node, "a"), fact(node, "a"), fact(node, "b")] == ["A", "A", "B"]
    assert asked == ["a", "b"]
    assert fact(ast.parse("x"), "a") == "A"
    assert asked == ["a", "b", "a"]


def test_what_is_kept_goes_with_the_tree():
    tree = ast.parse(SOURCE)
    gone = weakref.ref(tree.body[1])
    imports(tree)
    gc.disable()
    try:
        del tree
        assert gone() is None
    finally:
        gc.enable()


def test_statements_are_those_of_all_blocks_and_none_inside_what_is_closed():
    tree = ast.parse(SOURCE)
    kinds = sorted(type(node).__name__ for node in statements(tree))
    inside = ["ExceptHandler", "Import", "ImportFrom", "ImportFrom", "Match", "Return", "Try", "match_case"]
    assert kinds == sorted(["Import", "FunctionDef", *inside])
    assert [type(node).__name__ for node in statements(tree, (ast.FunctionDef,))] == ["Import", "FunctionDef"]


def test_each_statement_has_the_owner_that_it_stands_in():
    tree = ast.parse(SOURCE)
    known = owners(tree)
    (handler,) = (node for node in known if isinstance(node, ast.ExceptHandler))
    assert [type(known[node]).__name__ for node in (handler.body[0], handler, known[handler])] == [
        "ExceptHandler",
        "Try",
        "FunctionDef",
    ]


def test_imports_are_found_wherever_they_stand():
    assert imports(ast.parse(SOURCE)) == {"torch", "safetensors", "numpy"}
