"""Attributes that are stored another way than by the path that is asked: by a method, another name, a hook, a class.

As in `test_program`, each comment says what the expression before it is.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "a method that is called stores what the caller has stored before": """
        class Filter:
            def __init__(self):
                self.mean = torch.zeros(1)

            def widen(self):
                self.mean = self.mean.double()

            def widened(self):
                self.widen()

            def run(self):
                self.mean = torch.ones(1).half()
                y = self.mean * 2  # float16
                self.widened()
                return self.mean * 2  # float64

        f = Filter()
        f.run()
        for attempt in range(2):
            f.mean = torch.ones(1).int()
            y = f.mean.sum()  # int64
            f.widen()
            y = f.mean  # float64
    """,
    "a method that stores something else leaves it": """
        class Filter:
            def count(self):
                self.seen = 1

            def run(self):
                self.mean = torch.ones(1).half()
                self.count()
                return self.mean * 2  # float16

        f, other = Filter(), Filter()
        f.run()
        f.seen = torch.ones(1)
        other.count()
        y = f.seen * 2  # float32
    """,
    "names that are given to the dict of attributes are attributes": """
        class Config:
            def __init__(self, **told):
                self.__dict__.update(told)

            def merge(self):
                vars(self).update({"start": torch.ones(1).double()}, width=4)

        config = Config(device="cpu", start=torch.ones(1).half())
        net = nn.Linear(2, 2).to(config.device)
        y = net(torch.ones(1, 2))  # float32
        y = config.start * 2  # float16
        config.merge()
        y = config.start * 2  # float64
        y = torch.ones(config.width)  # float32
    """,
    "what else is given to it may be anything": """
        class Config:
            def __init__(self, **told):
                self.__dict__.update(told)

        import json
        one, two = Config(start=torch.ones(1)), Config(start=torch.ones(1))
        one.__dict__.update(json.loads("{}"))
        y = one.start * 2  #

        changes = {}
        json.fill(changes)
        two.__dict__.update(changes)
        y = two.start * 2  #

        class Filled:
            def __init__(self, **told):
                json.fill(told)
                self.start = torch.ones(1)
                self.__dict__.update(told)

        y = Filled().start * 2  #

        class Net(nn.Module):
            def __init__(self, **told):
                super().__init__()
                self.first = nn.Linear(2, 2)
                self.__dict__.update(told)

        net = Net(first=nn.Linear(2, 2).half())
        y = net.first.weight  # float16
    """,
    "an object that has two names": """
        class Box:
            pass

        a = Box()
        a.x = torch.ones(1)
        b = a
        b.x = torch.ones(1).half()
        y = a.x.abs()  # float16
        held = [a]
        for box in held:
            box.x = torch.ones(1).int()
        y = a.x.abs()  # int32
        setattr(a, "x", torch.ones(1).double())
        y = a.x  # float64
        other = Box()
        other.x = torch.ones(1).half()
        y = other.x.abs()  # float16
    """,
    "an attribute of the class, until the instance has its own": """
        class Meter:
            total = torch.zeros(1)
            dtype = torch.float32
            scale = None

            def __init__(self):
                self.scale = torch.ones(1).half()

            def add(self, x):
                self.total = self.total + x  # float64
                return self.total

            def half(self):
                self.dtype = torch.half

        meter = Meter()
        y = meter.total  # float32
        meter.add(torch.ones(1).double())
        y = meter.scale.abs()  # float16
        y = torch.ones(1, dtype=meter.dtype)  # float32
        meter.half()
    """,
    "methods are looked up in Python's own order": """
        class Base:
            def make(self):
                return torch.ones(1)

        class Left(Base):
            pass

        class Mixed:
            def make(self):
                return torch.ones(1).half()

        class Right(Base):
            def make(self):
                return super().make().double()

        class Both(Left, Mixed):
            pass

        class Diamond(Left, Right):
            pass

        y = Both().make()  # float32
        y = Diamond().make()  # float64
    """,
    "hooks give others in the place of what a module is given, and gives": """
        def widen(module, args, output):
            return output.double()

        def watch(module, args, output):
            output.abs()  # float32

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(2, 2)
                self.layer.register_forward_hook(self.keep)
                self.layer.register_forward_pre_hook(self.narrow)
                self.kept = torch.zeros(1)

            def keep(self, module, args, output):
                self.kept = output.half()

            def narrow(self, module, args):
                return (args[0].float(),)

            def forward(self, x):
                y = self.layer(x) + 0  # float32
                return self.kept  # float16

        x = torch.ones(1, 2)
        net = Net()
        y = net(x)  # float16
        plain, watched, widened = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
        watched.register_forward_hook(watch)
        widened.register_forward_hook(widen)
        y = plain(x)  # float32
        y = watched(x)  # float32
        y = widened(x)  # float64
        y = nn.Sequential(plain, widened)(x)  # float64
    """,
    "a weight that is parametrized": """
        class Half(nn.Module):
            def forward(self, weight):
                return weight.half()

        layer = nn.Linear(2, 2)
        y = layer.bias * 2  # float32
        nn.utils.parametrize.register_parametrization(layer, "weight", Half(), unsafe=True)
        y = layer.weight  # float16
    """,
    "weights that are asked for by name are cast with the dict that holds them": """
        weights = nn.ParameterDict({"a": torch.ones(2), "b": nn.Parameter(torch.ones(2))})
        y = weights["a"] * 2  # float32
        y = weights["b"] * 2  # float32
        weights.half()
        y = weights["a"] * 2  # float16
        y = weights["b"] * 2  # float16
    """,
    "a setting that is stored by its name": """
        import argparse

        args = argparse.ArgumentParser().parse_args([])
        args.dtype = torch.float64
        y = torch.ones(1, dtype=args.dtype)  # float64
        setattr(args, "dtype", torch.float16)
        y = torch.ones(1, dtype=args.dtype)  # float16
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_stored_another_way_is_known_no_more(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]) + "y.sum()\n")
    hold(program)
