"""Parameters that are targets of losses, by what their functions do with them: they are compared with what a model gives."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor, Unknown, Value, choices
from dtlint.infer.interproc.signatures import parameter_key
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts, Operation

__all__ = ["loss_targets"]

_THIRD = frozenset({"margin_ranking_loss", "MarginRankingLoss", "cosine_embedding_loss", "CosineEmbeddingLoss"})
"""Losses of torch that take two inputs before the target."""
_WITHOUT = frozenset({"triplet_margin_loss", "triplet_margin_with_distance_loss"}) | frozenset(
    {"TripletMarginLoss", "TripletMarginWithDistanceLoss"}
)
"""Those that take none."""
_OTHERS = frozenset({"cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div"})
"""Losses that are not called so."""


def loss_targets(facts: ModuleFacts) -> frozenset[str]:
    """The keys of the parameters that a loss of torch is given as its target, in the function itself or by calls from there.

    Args:
        facts: what is known where the dtypes of parameters are symbols.
    """
    losses = [(seen.what, target) for seen in facts.operations() if (target := _target(seen.what)) and not seen.behind]
    found = {key for _, target in losses for key in _keys(target)}
    inputs = {key for loss, _ in losses for key in _keys(loss.args[0] if loss.args else None)}
    found -= inputs  # a target that is cast to the dtype of the input has its symbol
    passed_on = list(_passed_on(facts))
    while True:
        more = {key for given, taken in passed_on if taken in found for key in given} - found - inputs
        if not more:
            return frozenset(found)
        found |= more


def _target(operation: Operation) -> Value | None:
    last = operation.op.rpartition(".")[2]
    is_loss = operation.op.startswith("torch.nn.") and (last.lower().endswith("loss") or last in _OTHERS)
    if not is_loss or last in _WITHOUT:
        return None
    place = 2 if last in _THIRD else 1
    named = dict(operation.keywords)
    return named.get("target") or (operation.args[place] if place < len(operation.args) else None)


def _keys(value: Value | None) -> frozenset[str]:
    """The parameters whose dtype a tensor has, as it was given."""
    found: set[str] = set()
    for one in () if value is None else choices(value):
        symbol = one.symbol if isinstance(one, (Tensor, Unknown)) else None
        if symbol is not None and not symbol.met and len(symbol.of) == 1:
            found.update(atom.key for atom in symbol.of)
    return frozenset(found)


def _passed_on(facts: ModuleFacts) -> Iterator[tuple[frozenset[str], str]]:
    """The parameters that are given for others by the calls in a module, with these."""
    functions = {f"{facts.module.name}.{name}": node for name, node in _functions(facts.tree) if facts.module.name}
    for call in facts.calls(*functions) if functions else ():  # without names all calls are asked for
        for parameter, value in _given(call, functions[call.name]):
            yield _keys(value), parameter_key(parameter)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{one.name}", one) for one in node.body if isinstance(one, ast.FunctionDef))


def _given(call: Call, function: ast.FunctionDef) -> Iterator[tuple[ast.arg, Value]]:
    named = [*function.args.posonlyargs, *function.args.args]
    for parameter, value in zip(named[call.receiver is not None :], call.args, strict=False):
        yield parameter, value
    for parameter in named_parameters(function):
        if parameter.arg in call.keywords:
            yield parameter, call.keywords[parameter.arg]
