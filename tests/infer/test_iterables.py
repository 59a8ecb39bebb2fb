"""What Python's own functions make of lists, dicts and sets of tensors; named tuples and plain objects.

As in `test_program`, each comment says what the expression before it is. All programs run, too: no claim is
contradicted.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.ran import contradicted
from tests.infer.test_program import HEAD, hold

TENSORS = "half, single, double = torch.ones(2).half(), torch.ones(2), torch.ones(2).double()\n"

PROGRAMS = {
    "`next` may give what it is told to give at the end": """
        y = next(iter([half]), double)  # float16|float64
        y = next(iter([half]))  # float16
    """,
    "one of several": """
        y = max(half[0], half[1])  # float16
        y = min([half[0], double[0]])  # float16|float64
        y = max([half, double], key=lambda x: x.dtype == torch.double)  # float16|float64
        y = sorted([double, half], key=lambda x: x.dtype == torch.double)[0]  # float16|float64
    """,
    "functions that call another": """
        y = list(map(lambda x: x.float(), [half, double]))[1]  # float32
        y = list(filter(lambda x: x.dtype == torch.double, [half, double]))[0]  # float64
        import functools, operator
        y = functools.reduce(lambda x, z: x + z, [half, single])  # float32
        y = functools.reduce(operator.mul, (torch.ones(2) for _ in range(3)))  # float32
        y = operator.truediv(torch.ones(2).int(), 2)  # int32
    """,
    "what is taken out of a list": """
        xs = [half, single, double]
        y = xs.pop(0)  # float16
        y = xs[0]  # float32
        y = xs.pop()  # float64
        same = xs = [half, single]
        xs.pop()
        y = same[-1]  # float16
        stack = [half]
        while stack:
            x = stack.pop()  # float16|float64
            if x.dtype == torch.half:
                stack.append(x.double())
    """,
    "lists after one another, and side by side": """
        import itertools, random
        y = list(itertools.chain([half], [double]))[1]  # float64
        xs, ys = zip(*[(torch.ones(2), torch.ones(2).int()) for _ in range(3)])
        y = torch.stack(xs)  # float32
        y = torch.stack(ys)  # int32
        xs, ys = zip(*[(half, double), (half, double)])
        y = torch.stack(ys)  # float64
        y = random.sample([half, half], 1)[0]  # float16
    """,
    "a named tuple": """
        from collections import namedtuple
        Pair = namedtuple("Pair", "first second", defaults=(double,))
        pair = Pair(half)
        y = pair.first  # float16
        y = pair[1]  # float64
        other = pair._replace(first=single)
        y = other.first  # float32
        y = pair.first  # float16
        first, second = other
        y = second  # float64
        y = Pair(*zip(*[Pair(single), Pair(single)])).second[0]  # float64
        y = pair._asdict()["first"]  # float16
    """,
    "a class of named tuples": """
        from typing import NamedTuple, Optional

        class Output(NamedTuple):
            loss: torch.Tensor
            logits: Optional[torch.Tensor] = None

            @property
            def twice(self):
                return self.loss * 2

            def to(self, dtype):
                return self._replace(loss=self.loss.to(dtype))

        output = Output(single, logits=half)
        y = output.loss  # float32
        y = output.logits  # float16
        y = output.twice  # float32
        y = output.to(torch.double).loss  # float64

        class Point(NamedTuple("Point", [("x", torch.Tensor)])):
            def doubled(self):
                return self.x * 2

        y = Point(half).doubled()  # float16
    """,
    "a plain object": """
        from types import SimpleNamespace
        config = SimpleNamespace(dtype=torch.half, weight=single)
        y = torch.ones(2, dtype=config.dtype)  # float16
        y = config.weight  # float32

        def change(what):
            what.weight = double

        change(config)
        config.extra = half
        y = config.extra  # float16
    """,
    "what a context is told to give": """
        from contextlib import nullcontext
        with nullcontext(half) as x:
            y = x * 1  # float16
    """,
    "sequences of several lengths, and one step of a recurrent layer": """
        from torch.nn.utils.rnn import pad_sequence
        y = pad_sequence([double, single])  #
        h, c = nn.LSTMCell(2, 2)(torch.ones(1, 2))
        y = c * 1  # float32
        h = nn.GRUCell(2, 2).double()(torch.ones(1, 2).double())
        y = h * 1  # float64
        y = nn.GRUCell(2, 2)(torch.ones(1, 2), torch.ones(1, 2))  # float32
    """,
}


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(HEAD + TENSORS + textwrap.dedent(PROGRAMS[request.param]) + "y = torch.ones(1)\ny.sum()\n")
    return path


def test_what_containers_give_is_told(program: Path) -> None:
    hold(program)


def test_no_claim_is_contradicted(program: Path) -> None:
    pytest.importorskip("torch")
    assert not contradicted(program)
