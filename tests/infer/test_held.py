"""What a module or a class holds, and what calling that gives: functions of torch, partials, wrapped methods, no bias.

As in `test_program`, each comment says what the expression before it is.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "a function of torch that a module holds is called as such": """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.act = F.gelu
                self.half = torch.exp

            def forward(self, x):
                return self.act(x)

        layer = Layer()
        y = layer(torch.ones(2).bfloat16())  # bfloat16
        y = layer.act(torch.ones(2).half())  # float16
        y = layer.half(torch.ones(2).double())  # float64
    """,
    "in an autocast region it runs as its op does": """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix, self.norm = torch.matmul, F.softmax

            def forward(self, x):
                return self.norm(self.mix(x, x), dim=-1)

        layer, x = Layer(), torch.ones(2, 2).cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            y = layer.mix(x, x)  # float16
            y = layer(x)  # float32
    """,
    "one of several functions, a method or a partial among them": """
        from functools import partial

        class Layer(nn.Module):
            def __init__(self, kind):
                super().__init__()
                if kind == "tanh":
                    self.act = partial(F.gelu, approximate="tanh")
                elif kind == "plain":
                    self.act = F.gelu
                elif kind == "own":
                    self.act = self.own
                else:
                    self.act = partial(torch.sum, dtype=torch.float64)

            def own(self, x):
                return x * 0.5

            def forward(self, x):
                return self.act(x)

        y = Layer("own")(torch.ones(2).half())  # float16
        y = Layer("tanh")(torch.ones(2).half())  # float16
        y = Layer("wide")(torch.ones(2).half())  # float64
        y = Layer(open("kind").read())(torch.ones(2).half())  # float16|float64
    """,
    "a static method, a class method and a property stay what they are when a function is wrapped around them": """
        from functools import wraps

        def plain(function):
            @wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs)
            return inner

        def bare(function):
            def inner(*args, **kwargs):
                return function(*args, **kwargs)
            return inner

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(2, dtype=torch.bfloat16))

            @staticmethod
            @plain
            def table(n):
                return torch.arange(n) / n

            @staticmethod
            @bare
            def halves(n):
                return torch.ones(n).half()

            @classmethod
            @plain
            def made(cls, n):
                return cls()

            @property
            @bare
            def doubled(self):
                return self.scale * 2

        model = Model.made(3)
        y = model.table(4)  #
        y = Model.table(4)  # float32
        y = model.halves(4)  #
        y = model.doubled  #
    """,
    "a layer that is made without a bias has none": """
        class Linear(nn.Linear):
            def forward(self, x):
                y = x @ self.weight.T
                if self.bias is None:
                    return y
                return y + self.bias

        x = torch.ones(2, 4)
        without, positional = Linear(4, 4, bias=False), Linear(4, 4, False)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = without(x)  # bfloat16
            y = positional(x)  # bfloat16
        def made(bias):
            return Linear(4, 4, bias=bias)

        some = [made(False), made(True)]
        for layer in some:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = layer(x)  # bfloat16|float32
        plain = nn.LayerNorm(4, elementwise_affine=False)
        y = torch.ones(2).half() if plain.weight is None else torch.ones(2)  # float16
    """,
    "a layer that may be made without a bias may have none": """
        def answer():
            return open("answer").read() == "yes"

        def told(layer):
            return torch.ones(1) if layer.bias is not None else torch.ones(1).half()

        y = told(nn.Linear(4, 4))  # float32
        y = told(nn.Linear(4, 4, bias=answer()))  # float16|float32
        y = told(nn.Linear(4, 4, **answer()))  # float16|float32
        several = nn.ModuleList([nn.Linear(4, 4, bias=i % 2 == 0) for i in range(4)])
        for layer in several:
            y = told(layer)  # float16|float32
    """,
    "norms have the weights and statistics that their flags say, or their defaults": """
        def told(weight):
            return torch.ones(1) if weight is not None else torch.ones(1).half()

        y = told(nn.BatchNorm2d(4).weight)  # float32
        y = told(nn.InstanceNorm2d(4).weight)  # float16
        y = told(nn.InstanceNorm2d(4, affine=True).bias)  # float32
        y = told(nn.InstanceNorm2d(4).running_mean)  # float16
        y = told(nn.BatchNorm2d(4, track_running_stats=False).running_var)  # float16
        y = told(nn.MultiheadAttention(4, 1, kdim=2, vdim=2).in_proj_weight)  # float16|float32
    """,
    "what a container holds under the name of a weight is what was put there": """
        weights = nn.ParameterDict({"weight": nn.Parameter(torch.ones(2).half())})
        y = weights["weight"] * 2  # float16
        layers = nn.ModuleDict({"bias": nn.Linear(2, 2, dtype=torch.float16)})
        y = layers["bias"](torch.ones(2, 2).half())  # float16
    """,
    "what a class binds hides the methods and properties of its bases": """
        def halved(function):
            def inner(*args):
                return function(*args).half()
            return inner

        class Base(nn.Module):
            @property
            @halved
            def p(self):
                return torch.ones(1)

            @property
            def q(self):
                return torch.ones(1)

        class Own(Base):
            p = torch.ones(1).double()
            q = None

            def __init__(self):
                super().__init__()
                self.q = torch.ones(1).int()

        y = Base().p  #
        y = Own().p  # float64
        y = Own().q * 2  # int32
    """,
    "a method that is bound anew in the body of its class is another": """
        def halved(function):
            def inner(*args):
                return function(*args).half()
            return inner

        def g():
            return torch.ones(1).int()

        class Layer(nn.Module):
            def g(self):
                return torch.ones(1).double()
            g = halved(g)

        y = Layer().g()  # float16
        y = torch.ones(2)  # float32
    """,
    "of recurrent layers the bias is no weight": """
        rnn = nn.LSTM(4, 4)
        y = rnn.bias  #
        y = torch.ones(2)  # float32
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_held_and_what_calling_it_gives(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]) + "y.sum()\n")
    hold(program)
