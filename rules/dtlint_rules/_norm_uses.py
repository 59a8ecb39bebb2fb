"""Where a file puts the norms that it defines: some stand where values are small, whatever the model."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.around import parents
from dtlint.infer.walk import nodes
from dtlint_rules._calls import calls_of
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.events import Flow

__all__ = ["is_called_elsewhere", "is_of_queries", "stands_behind_convolutions"]

_QUERIES = re.compile(r"(?:^|_)(?:q|k|qk|query|key)(?:_|$)")
_CONVOLUTION = re.compile(r"^[Cc]onv\w*$|Conv\d?d$")


def is_called_elsewhere(flow: Flow) -> bool:
    """Is it a private function or method that nobody speaks of in this file, such as `_norm` of a subclass? If anybody
    calls it, he may cast."""
    function = flow.function
    if function is None or not function.name.startswith("_") or function.name.startswith("__"):
        return False
    if function.owner is not None:
        return not calls_of(function.name, flow.tree)
    return not any(isinstance(node, ast.Name) and node.id == function.name for node in nodes([flow.tree]))


def is_of_queries(flow: Flow) -> bool:
    """Are queries and keys all that the running norm is made for, `self.q_norm = RMSNorm(dim)`? They come out of a layer
    that stands behind another norm."""
    known = parents(flow.tree)
    made = [known.get(call) for call in _uses(flow)]
    return bool(made) and all(
        isinstance(statement, ast.Assign)
        and all(_QUERIES.search(last_name(target).lower()) is not None for target in statement.targets)
        for statement in made
    )


def stands_behind_convolutions(flow: Flow) -> bool:
    """Does the running norm stand right behind a convolution wherever it is made, `Sequential(Conv2d(...), Norm(...))`? What
    adds up along a residual stream does not get there."""
    known, made = parents(flow.tree), _uses(flow)
    for call in made:
        within = known.get(call)
        if not isinstance(within, ast.Call) or last_name(within) != "Sequential" or call not in within.args:
            return False
        at = within.args.index(call)
        if at == 0 or _CONVOLUTION.search(last_name(within.args[at - 1])) is None:
            return False
    return bool(made)


def _uses(flow: Flow) -> Sequence[ast.Call]:
    """Where the class of the running method is made; nowhere, if the file speaks of it otherwise, too."""
    function = flow.function
    owner = None if function is None or function.owner is None else function.owner.node.name
    if owner is None:
        return ()
    made = calls_of(owner, flow.tree)
    spoken = sum(isinstance(node, ast.Name) and node.id == owner for node in nodes([flow.tree]))
    return made if spoken == len(made) else ()
