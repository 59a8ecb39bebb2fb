"""The calls of a module by the last name of what they call: who else calls this function, and with what?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.walk import nodes
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["calls_of"]


def calls_of(name: str, tree: ast.Module) -> Sequence[ast.Call]:
    """The calls of what has that last name, `_norm` of `self._norm(x)`, in a module."""
    return _by_name(tree).get(name, ())


@kept
def _by_name(tree: ast.Module) -> dict[str, list[ast.Call]]:
    found: dict[str, list[ast.Call]] = {}
    for node in nodes([tree]):
        if isinstance(node, ast.Call):
            found.setdefault(last_name(node), []).append(node)
    return found
