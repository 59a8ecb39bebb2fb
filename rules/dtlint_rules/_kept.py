"""What is found out about a piece of code once and asked for often, kept on its node, or with the facts of its file.

A cache of a fixed size is too small within a file of many functions, and holds the trees of the files before it. What is
kept here goes with the tree; it must not hold the node itself, or one around it, lest neither ever goes.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable

    from dtlint.infer.facts import ModuleFacts

__all__ = ["kept"]

Node = TypeVar("Node", bound="ast.AST | ModuleFacts")
Rest = ParamSpec("Rest")
Fact = TypeVar("Fact")


def kept(find: Callable[Concatenate[Node, Rest], Fact]) -> Callable[Concatenate[Node, Rest], Fact]:
    """Finds a fact about a node once, for each choice of further arguments, which are given by position."""
    name = f"_{find.__module__}_{find.__name__}".replace(".", "_")

    @wraps(find)
    def known(node: Node, /, *rest: Rest.args, **none: Rest.kwargs) -> Fact:
        facts: dict[Any, Fact] | None = getattr(node, name, None)
        if facts is None:
            facts = {}
            setattr(node, name, facts)
        if rest not in facts:
            facts[rest] = find(node, *rest, **none)
        return facts[rest]

    return known
