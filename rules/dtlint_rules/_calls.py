"""The calls of a program, as far as names tell: who calls a function, which calls are those of a model, and what is given
to them."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import scopes
from dtlint_rules._kept import kept
from dtlint_rules._names import last_name
from dtlint_rules._parts import given

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint_rules._origins import Origins

__all__ = ["Input", "calls_of", "inputs_of", "is_called_model", "may_be_model", "model_of"]

_MODELS = re.compile(r"model|encoder|decoder|net$|unet|vae|transformer|checker|estimator|tower|backbone|^G$|^D$")
_METHODS = frozenset({"encode", "decode", "forward", "generate", "get_image_features", "encode_image", "tiled_decode"})
"""Methods that run a model."""


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


class Input:
    """An argument of a call."""

    __slots__ = ("call", "callee", "is_first", "node")

    def __init__(self, node: ast.expr, call: ast.Call, callee: str, is_first: bool) -> None:
        self.node, self.call, self.callee, self.is_first = node, call, callee, is_first


def inputs_of(origins: Origins) -> list[Input]:
    """What the calls of a function are given that has origins, the last call first; not the calls of torch."""
    return list(_inputs(origins))


def _inputs(origins: Origins) -> Iterator[Input]:
    for node in reversed(origins.of):
        callee = path_of(node.func) if isinstance(node, ast.Call) else None
        if callee is None or not isinstance(node, ast.Call) or callee.startswith(("torch.", "F.")):
            continue
        for position, argument in enumerate(given(node)):
            if origins[argument]:
                yield Input(argument, node, callee, position == 0)


def model_of(callee: str) -> str | None:
    """The model that is called: `self.vae` of `self.vae.decode(x)`, `self.unet` of `self.unet(x)`; None where the call is
    of none."""
    owner, _, name = callee.rpartition(".")
    if name in _METHODS:
        return owner or None
    return callee if owner == "self" or (not owner and is_called_model(name)) else None


def may_be_model(called: ast.expr) -> bool:
    """May `model_of` say yes to the path of what is called? It asks less than what makes the path."""
    if type(called) is ast.Attribute:
        return called.attr in _METHODS or (type(called.value) is ast.Name and called.value.id == "self")
    return type(called) is ast.Name


def is_called_model(name: str) -> bool:
    """Is it the name of a model: `unet`, `text_encoder`?"""
    return _MODELS.search(name) is not None
