"""Observe an op: every question of each of its calls, answered by torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from dtlint.dtypes.explain import Observation
from dtlint.dtypes.form import FREE, token
from dtlint.dtypes.learn.abstraction import abstracted
from dtlint.dtypes.learn.op import Op, form_of
from dtlint.dtypes.learn.questions import Asker
from dtlint.dtypes.learn.run import run

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call

__all__ = ["Found", "observe", "observed"]

REPEATS = 3
"""The same question is asked of so many different samples: where their answers differ, values decide."""

MANNERS = 8
"""An op that is given arguments in more ways than this is asked everything of the first so many only."""

Found = dict[int, list[Observation]]
"""What an op did, by the number of the form it was called in."""


def observed(op: Op) -> Found:
    """What the op did, asked of each of its calls in turn."""
    found: Found = defaultdict(list)
    asked: Counter[object] = Counter()
    presences: Counter[object] = Counter()
    for call in op.calls:
        form = form_of(op, call)
        ran = None if form is None else run(op, call)
        if form is None or ran is None or ran.failed:
            continue
        presence = tuple(map(token, abstracted(call)[0])), tuple(sorted(call.kwargs)), op.forms.index(form)
        presences[presence] += 1
        full = presences[presence] == 1 and len(presences) <= MANNERS
        for question, default in Asker(form, call, full).questions():
            observe(op, question, default, found, asked)
    return found


def observe(op: Op, call: Call, default: str, found: Found, asked: Counter[object] | None = None) -> None:
    """Make a call, and note what it did, unless it fits no form or the same was asked often enough.

    Args:
        op: the op that is called.
        call: the call to make.
        default: the default dtype to make it under.
        found: where it is noted.
        asked: how often each question was asked so far; left away, it is asked in any case.
    """
    args, kwargs = abstracted(call)
    bounds = ((number, form.bind(args, kwargs)) for number, form in enumerate(op.forms))
    number, bound = next(((number, bound) for number, bound in bounds if bound is not None), (-1, None))
    operands = None if bound is None else bound.operands(default)
    if bound is None or operands is None:
        return
    constants = tuple((parameter.name, said) for parameter, said in bound.tokens() if FREE not in parameter.seen)
    question = number, operands, constants, default
    if asked is not None:
        asked[question] += 1
        if asked[question] > REPEATS:
            return
    ran = run(op, call, default)
    if ran is not None:
        found[number].append(Observation(operands, constants, default, ran.result))
