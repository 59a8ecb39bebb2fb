"""Decorators of other files that give back what they decorate: the file is read as if they were not there."""

from __future__ import annotations

import ast

import pytest

from dtlint.infer.interproc.functions import FunctionDefinition
from dtlint.infer.interproc.project import ModuleInfo


def gives_first(source: str) -> bool:
    """Is the last function of a module one that gives its first argument back?"""
    tree = ast.parse(source)
    module = ModuleInfo("documented", None, tree, "")
    last = tree.body[-1]
    assert isinstance(last, ast.FunctionDef)
    return FunctionDefinition(last, module).gives_first


WRITES_DOCSTRING = """
def for_function(function):
    function.__doc__ = text_of(function)
    return function

def for_class(cls, intro=None):
    for name in vars(cls):
        cls.__doc__ += name
    return cls

def documented(decorated=None, *, intro=None):
    def decorate(decorated):
        if "." in decorated.__qualname__:
            return for_function(decorated)
        else:
            return for_class(decorated, intro)

    if decorated:
        return decorate(decorated)
    return decorate
"""


@pytest.mark.parametrize(
    "source",
    [
        "def documented(f):\n    f.tags = []\n    return f",
        "def documented(f=None):\n    if f is None:\n        return documented\n    return f",
        "def documented(f=None):\n    if not f:\n        return documented\n    return f",
        WRITES_DOCSTRING,
    ],
    ids=["itself", "is-none", "not", "by-others"],
)
def test_a_decorator_gives_back_what_it_decorates(source: str) -> None:
    """Itself, or by functions that do, where there is something to decorate."""
    assert gives_first(source)


@pytest.mark.parametrize(
    "source",
    [
        "def documented(f):\n    f = wrapped(f)\n    return f",
        "def documented(f):\n    def inner(*args):\n        return f(*args)\n    return inner",
        "def documented(f):\n    if f.tags:\n        return f",
        "def documented(f):\n    return elsewhere(f)",
        "def documented(f):\n    return documented(f)",
        "def other(g, f):\n    return g\n\ndef documented(f):\n    return other(None, f)",
        "def documented(f):\n    def swap():\n        nonlocal f\n        f = None\n    swap()\n    return f",
        "def documented(f):\n    yield f\n    return f",
        WRITES_DOCSTRING.replace("function.__doc__ = text_of(function)", "function = text_of(function)"),
        WRITES_DOCSTRING.replace("def for_function", "@cached\ndef for_function"),
    ],
    ids=[
        "rebinds",
        "wraps",
        "falls-off",
        "elsewhere",
        "itself",
        "another",
        "nonlocal",
        "yields",
        "helper",
        "decorated",
    ],
)
def test_others_are_followed(source: str) -> None:
    """Where something else may come back."""
    assert not gives_first(source)
