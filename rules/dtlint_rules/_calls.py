"""Who in a module calls a function, as far as names tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.survey import scopes
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

__all__ = ["calls_of"]


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
