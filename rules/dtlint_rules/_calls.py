"""What a function calls, and with what, as far as names tell; and who else in the module calls this function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.survey import facts, scopes
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Called", "called_in", "calls_of"]

_CASTS = frozenset({"to", "type", "type_as"})


class Called:
    """The calls of a function.

    Attributes:
        names: the last names of all that is called.
        keywords: the names of all arguments that are given by name.
        telling: the calls that may be told a dtype: the casts that take one, and what is given `dtype=`.
    """

    __slots__ = ("keywords", "names", "telling")

    def __init__(self, calls: Sequence[ast.Call]) -> None:
        self.names: set[str] = set()
        self.keywords: set[str | None] = set()
        self.telling: list[ast.Call] = []
        for call in calls:
            called = call.func
            kind = type(called)  # what `last_name` does, for all calls there are
            name = called.attr if kind is ast.Attribute else called.id if kind is ast.Name else ""  # type: ignore[attr-defined]
            self.names.add(name)
            told = name in _CASTS
            for keyword in call.keywords:
                self.keywords.add(keyword.arg)
                told = told or keyword.arg == "dtype"
            if told:
                self.telling.append(call)


@kept
def called_in(scope: ast.AST) -> Called:
    """The calls of a function, what is inside its own functions aside."""
    return Called(facts(scope).calls)


def calls_of(name: str, tree: ast.Module) -> Sequence[ast.Call]:
    """The calls of what has that last name, `_norm` of `self._norm(x)`, in a module."""
    return _by_name(tree).get(name, ())


@kept
def _by_name(tree: ast.Module) -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for _, own in scopes(tree):
        for node in own.calls:
            found.setdefault(last_name(node), []).append(node)
    return found
