"""Ask torch and the rules of an op random questions, and learn it anew from what the rules have wrong."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.learn.entry import described
from dtlint.dtypes.learn.observing import Found, observe
from dtlint.dtypes.learn.quiz import disagree, random_question
from dtlint.dtypes.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.learn.op import Op

__all__ = ["audited"]

QUIZ = 250
"""So many random questions are a quiz."""

CLEAN = 4
"""An op that surprised once has to pass so many quizzes in a row; any other passes with one."""

ROUNDS = 20
"""At most so many quizzes are held."""


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
    observe(op, call, default, found)
    return True
