"""Parameters that are declared as LongTensor: int64, unless the function itself speaks against it.

Programs write LongTensor for what is no index, too: labels to regress on, steps of a schedule, masks of whatever dtype. Such a
parameter is cast or asked for its dtype, or an operator would refuse it as int64. Then it is int64 only if something is looked
up by it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.context import Recorder
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import Dtype, Tensor, Value, choices
from dtlint.infer.interproc.signatures import parameter_key
from dtlint.infer.models.unknown_tensors import CASTS
from dtlint.infer.semantics.annotations import is_declared
from dtlint.infer.walk import nodes
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dtlint.infer.context import Arguments, Context, Frame
    from dtlint.infer.interproc.functions import FunctionDefinition

__all__ = ["Search", "as_index", "declared_long", "int64_parameters"]

_INT64 = frozenset({"int64"})
_INDICES = {"Embedding": 0, "embedding": 0, "one_hot": 0, "gather": 2, "index_select": 2, "scatter": 2, "scatter_": 2}
"""Ops that look something up, and at which place the indices stand."""
_OF_FLOATING = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
    | {"MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss"}
)
"""Losses whose targets are floating, though some of them take others."""


@dataclass(slots=True)
class Search(Recorder):
    """What a reading of a function tells of its parameters that are declared as LongTensor.

    Attributes:
        names: these parameters.
        looked_up: the keys of parameters that something is looked up by.
        doubted: the parameters that are cast.
        refused: was there an operator that no tensor of int64 is meant for?
    """

    names: frozenset[str]
    looked_up: set[str] = field(default_factory=set)
    doubted: set[str] = field(default_factory=set)
    refused: bool = False

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated."""
        last = op.rpartition(".")[2]
        if error is not None or last in _OF_FLOATING:
            given = (*args, *keywords.values())
            self.refused |= any(isinstance(one, Tensor) and one.dtypes == _INT64 for one in given)
        place = _INDICES.get(last)
        if place is not None and args:
            self.looked_up |= _keys(args[min(place, len(args) - 1) :])

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated: is it one of `x.to(dtype)`?"""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "to":
            return
        owner = node.func.value
        if not isinstance(owner, ast.Name) or owner.id not in self.names:
            return
        written = (*node.args, *(one.value for one in node.keywords))
        given = (*arguments.args, *arguments.keywords.values())
        if (
            any(isinstance(one, (Dtype, Tensor)) for value in given for one in choices(value))
            or any(isinstance(one, ast.Attribute) and one.attr == "dtype" for one in written)
            or "dtype" in arguments.keywords
        ):
            self.doubted.add(owner.id)


def declared_long(definition: FunctionDefinition) -> dict[str, ast.arg]:
    """The parameters that are declared as LongTensor."""
    return {one.arg: one for one in named_parameters(definition.node) if is_declared(one.annotation, "LongTensor")}


def int64_parameters(
    definition: FunctionDefinition, long: Mapping[str, ast.arg], read: Callable[[Search, frozenset[str]], None]
) -> frozenset[str]:
    """The parameters of a function, declared as LongTensor, that are int64.

    Args:
        definition: the function.
        long: the parameters.
        read: reads the function, with some of its parameters as int64, and tells the search.
    """
    names = frozenset(long)
    search = Search(names, doubted=_asked_for(definition.node))
    read(search, names)
    trusted = frozenset() if search.refused else names - search.doubted
    if trusted == names:
        return names
    search = Search(names)
    read(search, trusted)
    used = {name for name, one in long.items() if parameter_key(one) in search.looked_up}
    return trusted | used


def as_index(value: Value) -> Value:
    """A parameter of int64, or None where it may be."""
    return (
        join_all(Tensor(_INT64, None, one.rank) if isinstance(one, Tensor) else one for one in choices(value)) or value
    )


def _keys(given: Sequence[Value]) -> set[str]:
    """The keys of the parameters that some arguments are."""
    symbols = [one.symbol for one in given if isinstance(one, Tensor) and one.dtypes is None and one.symbol is not None]
    return {next(iter(symbol.of)).key for symbol in symbols if len(symbol.of) == 1 and not symbol.met}


def _asked_for(function: ast.AST) -> set[str]:
    """The variables whose dtype a function asks for, or that it casts by a method that is called like a dtype."""
    return {
        one.value.id
        for one in nodes([function])
        if isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Name)
        and (one.attr in ("dtype", "is_floating_point") or (one.attr in CASTS and one.attr != "to"))
    }
