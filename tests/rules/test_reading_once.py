"""The shared readings that rules ask often: found once, and no more of the file than the question needs."""

from __future__ import annotations

import ast
import gc
import weakref
from textwrap import dedent

from dtlint_rules._imports import imports
from dtlint_rules._kept import kept
from dtlint_rules._statements import around, statements

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


def test_each_statement_is_found_in_what_it_stands_in():
    tree = ast.parse(SOURCE)
    (returned,) = (node for node in statements(tree) if isinstance(node, ast.Return))
    assert [type(node).__name__ for node in around(returned, tree)] == ["match_case", "Match", "FunctionDef", "Module"]
    (handler,) = (node for node in statements(tree) if isinstance(node, ast.ExceptHandler))
    assert [type(node).__name__ for node in around(handler.body[0], tree)] == [
        "ExceptHandler",
        "Try",
        "FunctionDef",
        "Module",
    ]


def test_of_two_statements_on_one_line_each_is_found():
    tree = ast.parse("if x: a = 1; b = 2\nc = 3")
    (branch, last) = tree.body
    assert isinstance(branch, ast.If)
    assert [around(node, tree) for node in (*branch.body, last)] == [[branch, tree], [branch, tree], [tree]]
    assert around(ast.Pass(), tree) == []


def test_imports_are_found_wherever_they_stand():
    assert imports(ast.parse(SOURCE)) == {"torch", "safetensors", "numpy"}
