"""What a generator gives: one by one where all of it is known, and joined where it is not."""

from __future__ import annotations

from tests.infer.programs import known

PROGRAM = """
    import random
    half, double = torch.ones(2).half(), torch.ones(2).double()
"""


def test_what_is_given_in_order_is_told_apart() -> None:
    program = f"""{PROGRAM}
    def both():
        yield half
        yield from [double, half]
    a, b, c = both()
    x, y = a + 1, b + 1
    y.sum()
    """
    found = known(program)
    assert found["a + 1"] == "float16"
    assert found["b + 1"] == "float64"


def test_what_is_perhaps_given_is_joined() -> None:
    ways = {
        "a branch": "if random.random() < 0.5:\n            yield double",
        "a way out before": "if random.random() < 0.5:\n            return\n        yield double",
        "a loop": "while random.random() < 0.5:\n            yield double",
        "a try": "try:\n            yield double\n        except ValueError:\n            pass",
    }
    for name, way in ways.items():
        program = f"""{PROGRAM}
    def some():
        yield half
        {way}
        yield half
    for one in some():
        two = one + 1
    two.sum()
    """
        assert known(program)["one + 1"] == "float16|float64", name


def test_a_body_between_the_rounds_is_seen() -> None:
    program = f"""{PROGRAM}
    class Held:
        value = half
    def given(held):
        yield held.value
        yield held.value
    held = Held()
    for one in given(held):
        two = one + 1
        held.value = double
    two.sum()
    """
    assert known(program)["one + 1"] == "float16|float64"


def test_a_generator_that_goes_on_with_itself_is_joined() -> None:
    program = f"""{PROGRAM}
    def tree(depth):
        yield half
        for _ in range(depth):
            yield from tree(depth - 1)
    leaves = list(tree(3))
    y = half + 1
    y.sum()
    """
    assert known(program)["half + 1"] == "float16"
