"""Which scopes hold a place."""

from __future__ import annotations

import ast

import pytest

from dtlint.source.enclosing import Enclosing


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("HERE\n", []),
        ("def f():\n    HERE\n", ["f"]),
        ("def f():\n    def g(): pass\n    HERE\n", ["f"]),
        ("def f():\n    def g(): pass\n    class C:\n        def h(self): HERE\n    x\n", ["f", "C", "h"]),
        ("def f(x=HERE):\n    pass\n", []),
        ("@HERE\ndef f():\n    pass\n", []),
        ("def f(x=lambda: 1): HERE\n", ["f"]),
        ("def f():\n    return lambda: lambda: HERE\n", ["f", "lambda", "lambda"]),
        ("def f(): pass\nHERE\ndef g(): pass\n", []),
    ],
)
def test_scopes_around_a_place(text: str, scopes: list[str]) -> None:
    tree = ast.parse(text)
    at = next(node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "HERE")
    assert [getattr(scope, "name", "lambda") for scope in Enclosing(tree).of(at)] == scopes
