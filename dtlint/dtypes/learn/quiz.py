"""A random question about an op, put to torch and to the table: do they disagree?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import ARITHMETIC
from dtlint.dtypes.explain import Many
from dtlint.dtypes.form import SCALAR
from dtlint.dtypes.learn.abstraction import abstracted
from dtlint.dtypes.learn.casting import cast_tensor
from dtlint.dtypes.learn.naming import name_of, torch_dtype
from dtlint.dtypes.learn.numbers import with_numbers
from dtlint.dtypes.learn.op import Op, form_of
from dtlint.dtypes.learn.run import run

if TYPE_CHECKING:
    import random

    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.questions import Question
    from dtlint.dtypes.table import Table

__all__ = ["disagree", "random_question"]


def random_question(op: Op, rng: random.Random) -> Question:
    """One of the op's own calls with a random dtype and rank for each tensor, perhaps with another number or with
    `dtype=`, under a random default dtype."""
    call = rng.choice(op.calls)
    form = form_of(op, call)
    if form is not None and rng.random() < 0.3:
        call = rng.choice([call, *with_numbers(form, call, True)])
    common = rng.choice(ARITHMETIC)
    for at in call.tensors():
        own = name_of(call.tensor(at).dtype)
        dtype = rng.choice([common, common, rng.choice(ARITHMETIC), own])
        call = call.changed({at: cast_tensor(call.tensor(at), dtype, SCALAR if rng.random() < 0.3 else None)})
    if form is not None and rng.random() < 0.2 and any(parameter.name == "dtype" for parameter in form.parameters):
        call = call.changed({"dtype": torch_dtype(rng.choice(ARITHMETIC))})
    return call, rng.choice(["float32", "float32", "float64", "bfloat16"])


def disagree(table: Table, op: Op, call: Call, default: str) -> bool:
    """Does the table say what torch does not do? Where torch raises, the table may name a result: none is there to be
    other. What it does not know, it does not say."""
    args, kwargs = abstracted(call)
    outcome = table.call(op.name, args, kwargs, default=default)
    if not outcome.known:
        return False
    ran = run(op, call, default)
    if ran is None or ran.failed:
        return False
    return outcome.error is not None or not _matches(outcome.result, ran.result)


def _matches(said: Any, real: Any) -> bool:
    if isinstance(said, list):
        items = real if isinstance(real, tuple) else (real.item,) if isinstance(real, Many) else ()
        return all(_matches(said[0], item) for item in items)
    if isinstance(said, tuple):
        return isinstance(real, tuple) and len(said) == len(real) and all(map(_matches, said, real))
    return said is None or bool(said == real)
