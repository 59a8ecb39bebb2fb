"""What stands around a piece of code."""

from __future__ import annotations

import ast

from dtlint.infer.around import around, parents

TREE = ast.parse("def f(x):\n    with g():\n        return x.float() + 1\n")
CALL = next(node for node in ast.walk(TREE) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))


def test_a_part_knows_what_it_is_part_of() -> None:
    assert isinstance(parents(TREE)[CALL], ast.BinOp)
    assert TREE not in parents(TREE)


def test_what_stands_around_comes_innermost_first() -> None:
    kinds = [type(node).__name__ for node in around(CALL, TREE)]
    assert kinds == ["BinOp", "Return", "With", "FunctionDef", "Module"]
