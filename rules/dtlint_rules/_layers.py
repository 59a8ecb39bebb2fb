"""The layers with weights that a module makes itself: what goes into one has to be of the dtype of its weights."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._statements import statements

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["LAYERS", "layers_of"]

LAYERS = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Bilinear"}
)
"""Layers that raise where their input is not of the dtype of their weights, and give half under autocast."""


@kept
def layers_of(owner: ast.AST, names: Collection[str]) -> frozenset[str]:
    """The layers of these kinds that a class makes and tells no dtype, as its methods call them: `self.to_q`."""
    return frozenset(
        path
        for node in statements(owner)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and last_name(node.value) in names
        if not any(keyword.arg == "dtype" for keyword in node.value.keywords)
        for path in map(path_of, node.targets)
        if path is not None and path.startswith("self.")
    )
