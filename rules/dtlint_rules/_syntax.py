"""What stands around an expression, and of what a module speaks: questions of syntax that several rules ask.

Answers are kept for the module asked of last, for every rule of a run asks about the same one.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Condition

__all__ = ["around", "is_script", "last", "mentions", "names", "parents", "said", "words"]


@lru_cache(maxsize=2)
def parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """What each node of a module stands in directly."""
    return {child: node for node in nodes([tree]) for child in ast.iter_child_nodes(node)}


def around(node: ast.AST, tree: ast.Module) -> Iterator[ast.AST]:
    """What a node stands in, innermost first, up to the module."""
    known = parents(tree)
    parent = known.get(node)
    while parent is not None:
        yield parent
        parent = known.get(parent)


def said(node: ast.AST) -> Iterator[str]:
    """Every name and every string in a piece of code: of variables, attributes, arguments, and what it imports."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr
        elif isinstance(part, ast.Constant):
            if isinstance(part.value, str):
                yield part.value
        elif isinstance(part, (ast.arg, ast.keyword)):
            yield part.arg or ""
        elif isinstance(part, ast.alias):
            yield f"{part.name} {part.asname}"
        elif isinstance(part, ast.ImportFrom):
            yield part.module or ""
        elif isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield part.name


@lru_cache(maxsize=2)
def names(tree: ast.Module) -> frozenset[str]:
    """Every name that stands in a module, whatever it names; strings are not among them."""
    return frozenset(_names(tree))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in nodes([tree]):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.arg, ast.keyword)):
            yield node.arg or ""
        elif isinstance(node, ast.alias):
            yield f"{node.name} {node.asname}"
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name


@lru_cache(maxsize=2)
def words(tree: ast.Module) -> str:
    """The names of a module in lower case, in one string to look for parts of names in."""
    return " ".join(names(tree)).lower()


def mentions(conditions: list[Condition], parts: tuple[str, ...]) -> bool:
    """Does one of some tests speak of something with one of these parts in its name?"""
    text = " ".join(word for condition in conditions for word in said(condition.test)).lower()
    return any(part in text for part in parts)


@lru_cache(maxsize=2)
def is_script(tree: ast.Module) -> bool:
    """Is the module a program of its own: with a `__main__` guard, or one that reads the command line?"""
    guarded = any(isinstance(part, ast.If) and "__name__" in said(part.test) for part in tree.body)
    return guarded or not names(tree).isdisjoint({"ArgumentParser", "argparse", "argv", "click", "fire"})


def last(node: ast.AST) -> str:
    """The last part of a dotted path: `clip` of `self.args.clip`, "" of anything else."""
    return (path_of(node) or "").rpartition(".")[2]
