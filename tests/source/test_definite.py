"""A name is bound for certain where every path has bound it."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from dtlint.source.definite import is_bound

BOUND = {
    "parameter": "def f(x):\n    here",
    "keyword-only parameter": "def f(*, x=1):\n    here",
    "above": "def f():\n    x = 1\n    here",
    "above the block": "def f(a):\n    x = 1\n    if a:\n        here",
    "with a tuple": "def f(a):\n    x, y = a\n    here",
    "both branches": "def f(a):\n    if a:\n        x = 1\n    else:\n        x = 2\n    here",
    "a branch that leaves": "def f(a):\n    if a:\n        x = 1\n    else:\n        return\n    here",
    "a loop's own name": "def f(a):\n    for x in a:\n        here",
    "a context": "def f(a):\n    with a as x:\n        here",
    "behind a context": "def f(a):\n    with a:\n        x = 1\n    here",
    "an import": "def f():\n    import x.y\n    here",
    "an exception": "def f():\n    try:\n        pass\n    except OSError as x:\n        here",
    "a try whose handlers leave": "def f():\n    try:\n        x = 1\n    except OSError:\n        raise\n    here",
    "a comprehension": "def f(a):\n    return [here for x in a]",
}
UNBOUND = {
    "below": "def f():\n    here\n    x = 1",
    "here": "def f():\n    x = here",
    "one branch": "def f(a):\n    if a:\n        x = 1\n    here",
    "the other branch": "def f(a):\n    if a:\n        x = 1\n    else:\n        here",
    "in a loop": "def f(a):\n    for i in a:\n        x = 1\n    here",
    "later in the loop": "def f(a):\n    for i in a:\n        here\n        x = 1",
    "a try": "def f():\n    try:\n        x = 1\n    except OSError:\n        pass\n    here",
    "declared alone": "def f():\n    x: int\n    here",
    "an item of it": "def f(a):\n    x[0] = 1\n    here",
}


def answer(text: str) -> bool:
    (function,) = ast.parse(dedent(text)).body
    assert isinstance(function, ast.FunctionDef)
    (here,) = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == "here")
    return is_bound("x", here, function)


@pytest.mark.parametrize("text", BOUND.values(), ids=BOUND)
def test_it_is_bound(text: str) -> None:
    assert answer(text)


@pytest.mark.parametrize("text", UNBOUND.values(), ids=UNBOUND)
def test_it_may_be_unbound(text: str) -> None:
    assert not answer(text)
