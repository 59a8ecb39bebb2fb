"""Calls that are answered by the signature of the function, and not followed: what it gives where its parameters are symbols, with
what the arguments are put in for these."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dtlint.infer.domain.values import NONE, TOP, Function, Region, Value
from dtlint.infer.interproc.calls import calls_of
from dtlint.infer.interproc.entry_regions import enter_region
from dtlint.infer.interproc.open_parameters import open_parameters
from dtlint.infer.interproc.signatures import instantiated, parameter_key, tells_of_dtypes
from dtlint.infer.models import scaling
from dtlint.infer.models.module_trees import is_module
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dtlint.infer.context import Context
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.project import ModuleInfo

__all__ = ["Signature", "applied", "is_followed", "result_of"]


class Signature(NamedTuple):
    """What a function gives where its parameters are symbols, and the modules that this rests on."""

    result: Value
    rests_on: frozenset[ModuleInfo] = frozenset()


def is_followed(ctx: Context, function: Function, bound: Mapping[str, Value]) -> bool:
    """Is a call to be followed, for its arguments tell of dtypes, or for what the function may do beside giving a result?"""
    definition: FunctionDefinition = function.definition
    if function.frame is not None or tells_of_dtypes(bound.values()):
        return True
    if definition.speaks_of_casts and any(map(is_module, list(bound.values())[definition.owner is not None :])):
        return True  # it may cast a module that others made
    if definition.speaks_of_unscaling:
        return True  # it may bind another, whatever it is given
    # Steps of a scaler, and regions, are followed into what is called.
    return scaling.is_under_way(ctx) or isinstance(ctx.ambient("opened"), Region)


def result_of(ctx: Context, definition: FunctionDefinition, signatures: dict[FunctionDefinition, Signature]) -> Value:
    """What a function gives where its parameters are symbols, and nothing is known of an object whose method it is; TOP where it
    does not return, or calls itself.

    Args:
        signatures: those that are known, to which this one is added.
    """
    calls = calls_of(ctx)
    known = signatures.get(definition)
    if known is not None:
        calls.asked[-1] |= known.rests_on
        return known.result
    if definition.owner is not None and definition.is_constructor:
        return NONE
    signatures[definition] = Signature(TOP)
    bound = open_parameters(ctx, definition)
    first = next(iter(bound), None)
    if definition.owner is not None and first is not None and "staticmethod" not in definition.decorators:
        bound[first] = TOP
    recorder, ctx.recorder = ctx.recorder, None
    try:
        with ctx.store.aside(), calls.apart():
            enter_region(ctx, definition)
            summary = calls.openly(ctx, Function(definition, None), bound)
    finally:
        ctx.recorder = recorder
    found = signatures[definition] = Signature(summary.result or TOP, summary.rests_on)
    return found.result


def applied(
    result: Value, definition: FunctionDefinition, bound: Mapping[str, Value], *, of_itself: bool = False
) -> Value:
    """What a call gives by what the function gives where its parameters are symbols.

    Args:
        of_itself: see `instantiated`.
    """
    if result == TOP:
        return TOP
    names = {one.arg: one for one in named_parameters(definition.node)}
    atoms = {parameter_key(names[name]): value for name, value in bound.items() if name in names}
    return instantiated(result, atoms, of_itself=of_itself)
