"""What objects keep for a program: functions, lists by keys, copies, and the layer that a class inherits.

As in `test_program`, each comment says what the expression before it is.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

PROGRAMS = {
    "a class that extends a layer has its weights, and its forward": """
        class Scaled(nn.Embedding):
            def __init__(self, count, size, scale):
                super().__init__(count, size)
                self.scale = scale

            def forward(self, ids):
                return super().forward(ids) * self.scale

        class Plain(nn.Linear):
            pass

        class Told(nn.Linear):
            def __init__(self, inside, outside, bias=True, device=None, dtype=None):
                super().__init__(inside, outside, bias, device, dtype)

            def forward(self, x):
                return torch.mm(x, self.weight.T) + self.bias

        class Block(nn.Sequential):
            def __init__(self):
                super().__init__(nn.Linear(2, 2), nn.ReLU())

        x = torch.ones(2, 2)
        y = Scaled(3, 2, 2.0)(torch.tensor([1, 2]))  # float32
        plain = Plain(2, 2)
        y = plain(x)  # float32
        y = plain.half().weight  # float16
        y = Told(2, 2)(x)  # float32
        y = Told(2, 2, dtype=torch.float64)(unknown())  #
        y = Told(2, 2, dtype=unknown()).weight  #
        block = Block().double()
        y = block(unknown())  # float64
        for weight in block.parameters():
            weight * 2  # float64
    """,
    "a layer's dtype, given by its place": """
        y = nn.Linear(2, 2, True, None, torch.float16).weight  # float16
        y = nn.Linear(2, 2, True, None, unknown()).weight  #
        y = nn.Conv2d(2, 2, (3, 3), unknown(), (1, 1)).weight  # float32
        y.sum()
    """,
    "a function that is kept in an attribute": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleDict(dict(up=nn.Linear(2, 4), down=nn.Linear(4, 2)))
                parts = self.parts
                self.both = lambda x: parts.down(parts.up(x))

            def forward(self, x):
                return x + self.both(x)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList([Block() for _ in range(3)])
                self.apply(self.start)

            def start(self, module):
                if isinstance(module, nn.Linear):
                    module.weight.sum()  # float32

            def forward(self, x):
                for block in self.blocks:
                    x = block(x)  # float32
                return x

        net = Net()
        y = net(torch.ones(2, 2))  # float32
        y.sum()
    """,
    "truths are no modules, whatever they are": """
        class Net(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.fast = hasattr(F, unknown())
                self.plain = not unknown()
                self.other = kind in unknown()

        for weight in Net(unknown()).parameters():
            weight * 2  # float32
    """,
    "lists by keys": """
        from collections import defaultdict

        class Loop:
            def __init__(self):
                self.callbacks = defaultdict(list)

            def add(self, event, function):
                self.callbacks[event].append(function)

            def run(self, x):
                for function in self.callbacks["end"]:
                    function(self, x)
                return x * 2  # float32

        def show(loop, x):
            x.sum()  # float32

        loop = Loop()
        loop.add("end", show)
        loop.run(torch.ones(2))
        seen = defaultdict(list)
        seen["x"].append(torch.ones(2))
        seen["y"].append(torch.ones(2).half())
        y = torch.cat(seen["x"])  # float32
        for name, found in seen.items():
            torch.cat(found)  # float16|float32
        written = {"x": [torch.ones(2).half()]}
        written["x"].append(torch.ones(2).double())
        y = torch.cat(written["x"])  # float64
    """,
    "a copy has what it is given at once, and not what the other has": """
        import copy

        class Options:
            def __init__(self):
                self.half = True
                self.wide = False

        def make(options):
            x = torch.ones(2)
            return x.half() if options.half else x.double() if options.wide else x

        options = Options()
        plain = copy.deepcopy(options)
        plain.half = False
        y = make(options)  # float16
        y = make(plain)  # float32
        late = copy.deepcopy(options)
        y = make(late)  # float16
        late.half = False
        y.sum()
    """,
    "a dict of what is in another on some paths": """
        options = {"half": True}
        if unknown():
            options["wide"] = True
        asked = {name: not on for name, on in options.items()}
        x = torch.ones(2)
        if asked["half"]:
            x = x.half()
        if asked.get("wide", True):
            y = x.double()  # float64
        x.sum()  # float32
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_kept_is_known(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(PROGRAMS[name]))
    hold(program)
