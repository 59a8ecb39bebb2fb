"""What is claimed of a function holds for calls that are not seen, too."""

from __future__ import annotations

import ast

import pytest

from dtlint.infer.interproc.program_or_library import runs_something
from tests.infer.programs import contradicted, known

UNSEEN = {
    "a method that exec has made calls the module": """
        class Net(nn.Module):
            def forward(self, x):
                y = x * 2
                return y
        exec("def twice(self, x): return self(x.half())")
        Net.twice = locals()["twice"]
        net = Net()
        a = net(torch.ones(2))
        b = net.twice(torch.ones(2))
    """,
    "one that an object calls of itself calls its others": """
        class Net(nn.Module):
            def scaled(self, x):
                y = x * 2
                return y
            def forward(self, x):
                return self.scaled(x) + self.run(x)
        exec("def run(self, x): return self.scaled(x.double())")
        Net.run = locals()["run"]
        a = Net()(torch.ones(2))
    """,
    "one that is given the object calls it": """
        class Net(nn.Module):
            def forward(self, x):
                y = x * 2
                return y
            def both(self, x):
                return self(x), run(self, x)
        exec("def run(net, x): return net(x.half())")
        a = Net().both(torch.ones(2))
    """,
}


@pytest.mark.parametrize("name", UNSEEN)
def test_nothing_is_claimed_of_what_an_unknown_call_may_run(name: str) -> None:
    pytest.importorskip("torch")
    assert contradicted(UNSEEN[name]) == []


def test_a_keyword_that_may_not_be_there_rules_no_call_out() -> None:
    program = """
        import json
        import random
        def make(dtype=torch.half):
            return torch.ones(2, dtype=dtype)
        def made(**given):
            if random.random() < 0.5:
                given.setdefault("size", json.loads("3"))
            return make(**given)
        y = made(dtype=torch.float64)
        y.sum()
    """
    assert known(program)["make(**given)"] == "float64"


def test_functions_and_classes_are_no_sequences_and_no_partials() -> None:
    program = """
        import collections.abc
        import functools
        from itertools import repeat
        def pair(one):
            if isinstance(one, collections.abc.Iterable):
                return tuple(one)
            return tuple(repeat(one, 2))
        def plain(one):
            return one.func if isinstance(one, functools.partial) else one
        class Half(nn.Module):
            def forward(self, x):
                return x.half()
        first, second = pair(plain(Half))
        norm = plain(nn.BatchNorm1d)(2)
        a = second()(torch.ones(2, 2))
        b = norm(torch.ones(2, 2))
    """
    found = known(program)
    assert found["second()(torch.ones(2, 2))"] == "float16"
    assert found["norm(torch.ones(2, 2))"] == "float32"


def test_a_class_whose_base_is_not_known_is_cast_like_a_module() -> None:
    program = """
        from somewhere import Base
        class Noise(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(3))
        class Net(Base):
            def __init__(self):
                super().__init__()
                self.noise = Noise()
        net = Net()
        net.double()
        y = net.noise.raw * 2
    """
    assert known(program)["net.noise.raw * 2"] == "float64"


def test_a_model_with_adapters_gives_what_it_gave() -> None:
    program = """
        import peft
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x):
                return self.fc(x)
        net = peft.get_peft_model(Net().bfloat16(), peft.LoraConfig(r=2))
        net.print_trainable_parameters()
        x = torch.ones(2, dtype=torch.bfloat16)
        y = net(x)
        z = net.merge_and_unload()(x)
    """
    found = known(program)
    assert found["net(x)"] == "bfloat16"
    assert found["net.merge_and_unload()(x)"] == "bfloat16"


@pytest.mark.parametrize(
    ("statement", "runs"),
    [
        ("Net()(torch.ones(2))", True),
        ("Net().cuda().run()", True),
        ("print(Net()(torch.ones(2)))", True),
        ("lightning.Trainer(max_epochs=1).fit(model=Net())", True),
        ("logging.getLogger('net').setLevel(10)", False),
        ("register('net', Net)", False),
    ],
)
def test_a_file_that_runs_what_it_has_made_is_a_program(statement: str, runs: bool) -> None:

    assert runs_something(ast.parse(f"class Net: ...\n{statement}\n")) is runs


def test_a_comparison_of_what_is_no_tensor_is_none() -> None:
    found = known(
        "import os, random\na = random.random() < 0.5\nb = os.cpu_count() > 2\ny = torch.ones(random.randint(1, 3))\ny.sum()\n"
    )
    assert not any("<" in text or ">" in text for text in found)
