"""Observe an op: every question of each of its calls, answered by torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from dtlint.dtypes.explain import Error, Observation
from dtlint.dtypes.form import FREE, token
from dtlint.dtypes.learn.abstraction import abstracted
from dtlint.dtypes.learn.op import Op, form_of
from dtlint.dtypes.learn.questions import Asker
from dtlint.dtypes.learn.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.learn.call import Call

__all__ = ["REPEATS", "Found", "observe", "observed"]

REPEATS = 3
"""The same question is asked of so many different samples: where their answers differ, values decide."""

Found = dict[int, list[Observation]]
"""What an op did, by the number of the form it was called in."""


def observed(op: Op, bases: Sequence[str]) -> Found:
    """What the op did, asked of each of its calls in turn."""
    found: Found = defaultdict(list)
    asked: Counter[object] = Counter()
    presences: Counter[object] = Counter()
    for call, base in zip(op.calls, bases, strict=True):
        form = form_of(op, call)
        ran = None if form is None else run(op, call)
        if form is None or ran is None or isinstance(ran[0], Error):
            continue
        presence = tuple(map(token, abstracted(call)[0])), tuple(sorted(call.kwargs)), op.forms.index(form)
        presences[presence] += 1
        full = presences[presence] == 1 and len(presences) <= 8
        for question, default in Asker(form, call, base, full).questions():
            observe(op, question, default, found, asked)
    return found


def observe(op: Op, call: Call, default: str, found: Found, asked: Counter[object]) -> None:
    """Make a call, and note what it did, unless it fits no form or the same was asked often enough."""
    args, kwargs = abstracted(call)
    bounds = ((number, form.bind(args, kwargs)) for number, form in enumerate(op.forms))
    number, bound = next(((number, bound) for number, bound in bounds if bound is not None), (-1, None))
    operands = None if bound is None else bound.operands(default)
    if bound is None or operands is None:
        return
    constants = tuple((parameter.name, said) for parameter, said in bound.tokens() if FREE not in parameter.seen)
    question = number, operands, constants, default
    asked[question] += 1
    if asked[question] <= REPEATS:
        result = run(op, call, default)
        if result is not None:
            found[number].append(Observation(operands, constants, default, result[0]))
