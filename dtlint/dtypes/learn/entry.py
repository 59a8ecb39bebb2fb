"""The entry of an op in the table: its forms, each with the rule that explains what was observed of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.explain import Error, Many, Observation, explain
from dtlint.dtypes.form import FREE, Form, Parameter
from dtlint.dtypes.learn.errors import LACKS_KERNEL
from dtlint.dtypes.pattern import CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dtlint.dtypes.learn.observing import Found
    from dtlint.dtypes.learn.op import Op

__all__ = ["described", "lacking_kernels"]


def described(op: Op, found: Found) -> list[dict[str, Any]]:
    """The op's entry: each form that was observed, with its rule."""
    entry = []
    _uniform_lists(found.values())
    for number, form in enumerate(op.forms):
        observations = found.get(number, [])
        shown = Form(tuple(_with_seen(parameter, observations) for parameter in form.parameters))
        roles = "".join("d" if "d" in p.kinds else "o" if p.name == "out" else "t" for p in form.slots)
        rule = explain(observations, roles) if any(not one.failed for one in observations) else None
        written: dict[str, Any] = {"takes": [str(parameter) for parameter in shown.parameters]}
        if rule is not None:
            written["rule"] = rule
        entry.append(written)
    return entry if any("rule" in form for form in entry) else []


def _with_seen(parameter: Parameter, observations: Iterable[Observation]) -> Parameter:
    if parameter.is_slot or FREE in parameter.seen:
        return parameter
    tokens = {
        said for one in observations for name, said in one.constants if name == parameter.name and said is not None
    }
    return replace(parameter, seen=frozenset(tokens - {parameter.default} - {"?"}))


def _uniform_lists(found: Iterable[list[Observation]]) -> None:
    """Tuples whose length differs from call to call are sequences of any length."""
    for observations in found:
        lengths = {len(one.result) for one in observations if isinstance(one.result, tuple)}
        if len(lengths) > 1 or any(isinstance(one.result, Many) for one in observations):
            for place, one in enumerate(observations):
                if isinstance(one.result, tuple):
                    items = set(one.result)
                    observations[place] = replace(one, result=Many(items.pop()) if len(items) == 1 else None)


def lacking_kernels(found: Mapping[int, list[Observation]]) -> str:
    """The dtypes for which every call with all operands of that dtype raised for want of a kernel."""
    lacks: dict[str, set[bool]] = defaultdict(set)
    for one in (one for observations in found.values() for one in observations):
        dtypes = {
            item[0]
            for operand in one.operands
            if operand and isinstance(operand[0], str)
            for item in [operand]
            if item[1] > 0
        }
        if len(dtypes) == 1:
            lacks[dtypes.pop()].add(isinstance(one.result, Error) and bool(LACKS_KERNEL.search(one.result.message)))
    return "".join(sorted(CODES[dtype] for dtype, verdicts in lacks.items() if verdicts == {True}))
