"""The entry of an op in the table: its forms, each with the rule that explains what was observed of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.explain import Many, Observation, explain
from dtlint.dtypes.form import FREE, Form, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.dtypes.learn.observing import Found
    from dtlint.dtypes.learn.op import Op

__all__ = ["described"]


def described(op: Op, found: Found) -> list[dict[str, Any]]:
    """The op's entry: each form, with its rule where it was observed; empty when no form was."""
    entry: list[dict[str, Any]] = []
    _uniform_lists(found.values())
    for number, form in enumerate(op.forms):
        observations = found.get(number, [])
        shown = Form(tuple(_with_seen(parameter, observations) for parameter in form.parameters))
        takes = [str(parameter) for parameter in shown.parameters]
        rule = explain(observations, _roles(form)) if any(not one.failed for one in observations) else None
        entry.append({"takes": takes} if rule is None else {"takes": takes, "rule": rule})
    return entry if any("rule" in form for form in entry) else []


def _roles(form: Form) -> str:
    """What each slot of a form is to `explain`."""
    return "".join("d" if "d" in slot.kinds else "o" if slot.name == "out" else "t" for slot in form.slots)


def _with_seen(parameter: Parameter, observations: Iterable[Observation]) -> Parameter:
    """The parameter, with the tokens of the constants that it was given."""
    if parameter.is_slot or FREE in parameter.seen:
        return parameter
    tokens = {
        said for one in observations for name, said in one.constants if name == parameter.name and said is not None
    }
    return replace(parameter, seen=frozenset(tokens - {parameter.default} - {"?"}))


def _uniform_lists(found: Iterable[list[Observation]]) -> None:
    """Tuples whose length differs from call to call are sequences of any length, and are noted as such."""
    for observations in found:
        lengths = {len(one.result) for one in observations if isinstance(one.result, tuple)}
        if len(lengths) > 1 or any(isinstance(one.result, Many) for one in observations):
            for place, one in enumerate(observations):
                if isinstance(one.result, tuple):
                    items = set(one.result)
                    observations[place] = replace(one, result=Many(items.pop()) if len(items) == 1 else None)
