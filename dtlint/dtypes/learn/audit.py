"""Ask torch and the rules of an op random questions, and learn it anew from what the rules have wrong."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.explain import Error, Many
from dtlint.dtypes.learn.abstraction import abstracted
from dtlint.dtypes.learn.casting import cast_tensor
from dtlint.dtypes.learn.choices import MAIN
from dtlint.dtypes.learn.entry import described
from dtlint.dtypes.learn.numbers import with_numbers
from dtlint.dtypes.learn.observing import Found, observe
from dtlint.dtypes.learn.op import Op, form_of
from dtlint.dtypes.learn.run import run
from dtlint.dtypes.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.questions import Question

__all__ = ["audited", "disagree", "random_question"]

QUIZ, CLEAN, ROUNDS = 250, 4, 20
"""After an op is learned, so many random questions are asked of torch and of the rules. What the rules have wrong is
observed too and they are learned anew, until an op that surprised once has passed so many quizzes in a row; at most so
many quizzes are held."""


def audited(ops: Sequence[Op], found: Found) -> list[dict[str, Any]]:
    """The entry of an op, such that random questions find nothing wrong with it. A module has an op for each of its
    configurations."""
    rng = random.Random(ops[0].name)
    entry, passes, needed = described(ops[0], found), 0, 1
    for _ in range(ROUNDS if entry else 0):
        table = Table({"ops": {ops[0].name: entry}})
        if sum(_surprises(rng.choice(ops), table, rng, found) for _ in range(QUIZ)):
            entry, passes, needed = described(ops[0], found), 0, CLEAN
        else:
            passes += 1
        if passes == needed or not entry:
            break
    return entry


def _surprises(op: Op, table: Table, rng: random.Random, found: Found) -> bool:
    """Does torch answer a random question otherwise than the table? Then it is noted."""
    call, default = random_question(op, rng)
    if not disagree(table, op, call, default):
        return False
    observe(op, call, default, found, Counter())
    return True


def random_question(op: Op, rng: random.Random) -> Question:
    """One of the op's own calls with a random dtype and rank for each tensor, perhaps with another number or with
    `dtype=`, under a random default dtype."""
    call = rng.choice(op.calls)
    form = form_of(op, call)
    if form is not None and rng.random() < 0.3:
        call = rng.choice([call, *with_numbers(form, call, True)])
    common = rng.choice(MAIN)
    for at in call.tensors():
        own = str(call.tensor(at).dtype)[6:]
        dtype = rng.choice([common, common, rng.choice(MAIN), own])
        call = call.changed({at: cast_tensor(call.tensor(at), dtype, 1 if rng.random() < 0.3 else None)})
    if form is not None and rng.random() < 0.2 and any(parameter.name == "dtype" for parameter in form.parameters):
        call = call.changed({"dtype": getattr(torch, rng.choice(MAIN))})
    return call, rng.choice(["float32", "float32", "float64", "bfloat16"])


def disagree(table: Table, op: Op, call: Call, default: str) -> bool:
    """Does the table say what torch does not do? Where torch raises, the table may name a result: none is there to be
    other. What it does not know, it does not say."""
    args, kwargs = abstracted(call)
    outcome = table.call(op.name, args, kwargs, default=default)
    if not outcome.known:
        return False
    ran = run(op, call, default)
    if ran is None or isinstance(ran[0], Error):
        return False
    return outcome.error is not None or not _matches(outcome.result, ran[0])


def _matches(said: Any, real: Any) -> bool:
    if isinstance(said, list):
        items = real if isinstance(real, tuple) else (real.item,) if isinstance(real, Many) else ()
        return all(_matches(said[0], item) for item in items)
    if isinstance(said, tuple):
        return isinstance(real, tuple) and len(said) == len(real) and all(map(_matches, said, real))
    return said is None or bool(said == real)
