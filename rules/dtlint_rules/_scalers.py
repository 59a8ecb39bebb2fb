"""What rules about GradScaler ask of facts: which calls are of one scaler, and how the program spells it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const, Ref, Unknown, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, Event, ModuleFacts, Sighting, Step

__all__ = ["SCALERS", "called_from", "calls_of", "first_scale", "is_scaler", "spelled"]


SCALERS = tuple(f"torch.{where}amp.GradScaler" for where in ("", "cuda.", "cpu."))
"""The classes by which a scaler is made."""


def calls_of(facts: ModuleFacts, owner: Value, *methods: str) -> Iterator[Call]:
    """The calls of methods of one object, by its address, or by the parameter or the attribute that holds it."""
    return (call for call in facts.methods(*methods) if call.receiver == owner)


def is_scaler(facts: ModuleFacts, value: Value) -> bool:
    """Is what has scaled a loss a GradScaler: by its class, or as it is stepped with an optimizer, unscaled or updated?"""
    if isinstance(value, Ref):
        return True
    return isinstance(value, Unknown) and any(
        call.method != "step" or call.args for call in calls_of(facts, value, "unscale_", "step", "update")
    )


def first_scale(facts: ModuleFacts, scaler: Value) -> str | None:
    """What a scaler multiplies by at first, as it is made in the module: 65536, unless that is given; None if not known."""
    if not isinstance(scaler, Ref):
        return None
    for call in facts.calls(*SCALERS):
        if call.result == scaler:
            given = call.argument(int(call.name == "torch.amp.GradScaler"), "init_scale")
            if given is None:
                return "65536" if call.complete else None
            number = given.value if isinstance(given, Const) else None
            return f"{number:.15g}" if isinstance(number, (int, float)) else None
    return None


def spelled(facts: ModuleFacts, value: Value, usual: str) -> str:
    """How the program calls a scaler or an optimizer."""
    for call in calls_of(facts, value, "scale", "step", "update", "zero_grad"):
        if isinstance(call.node.func, ast.Attribute):
            return ast.unparse(call.node.func.value)
    return usual


def called_from(seen: Sighting[Event]) -> tuple[tuple[Step, str], ...]:
    """A note at the call that leads to an event."""
    return tuple((step, "called from here") for step in seen.what.calls[-1:])
