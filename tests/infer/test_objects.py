"""What is known of objects comes to rest: a round that is like the one before it shows nothing new."""

from __future__ import annotations

import pytest

from dtlint.infer.program.objects import Objects
from dtlint.infer.values import UNKNOWN, Constant, Items, Iteration, Table, Value


@pytest.mark.parametrize("held", [Iteration, lambda item: Items((item,)), lambda item: Table({}, rest=item)])
def test_a_container_that_is_stored_into_ever_more_comes_to_hold_anything(held: type[Iteration]) -> None:
    objects = Objects(lambda value: None)
    values: list[Value] = [held(Constant(number)) for number in range(9)]
    for value in values:
        objects.put("model", "stages", value)
    objects.begin_round(narrow=False)
    for value in values:
        objects.put("model", "stages", value)
    assert objects.get("model", "stages") == held(UNKNOWN)
    assert not objects.changed
