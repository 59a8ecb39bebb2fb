"""Modules that are cast, or replaced, through another hand than the name that is asked.

As in `test_program`, each comment says what the expression before it is; an empty one, that nothing is claimed of it.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.test_program import HEAD, hold

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.body(x))

net = Net()
"""

PROGRAMS = {
    "children are cast in a loop, each as it is": """
        for name, child in net.named_children():
            if name == "head":
                child.half()
        y = net.head.weight  # float16|float32
        y = net.body[0].weight  # float16|float32
    """,
    "children are cast in a comprehension": """
        halves = [child.half() for child in net.children()]
        y = net.head.weight  # float16
    """,
    "layers that are alike are cast as one": """
        for layer in net.modules():
            if isinstance(layer, nn.Linear):
                layer.double()
        y = net.body[2].weight  # float32|float64
        y = net.head.weight  # float32|float64
        net.head.half()
        y = net.body[2].weight  # float32|float64
        y = net.head.weight  # float16
    """,
    "what modules() gives first is not known": """
        net.head.half()
        next(net.modules()).double()
        y = net.body[0].weight  # float32|float64
    """,
    "linear layers are replaced by their names, on every level": """
        def replace_linear(model):
            for name, child in model.named_children():
                if isinstance(child, nn.Linear):
                    setattr(model, name, nn.Linear(4, 4, dtype=torch.float64))
                else:
                    replace_linear(child)

        replace_linear(net)
        y = net.head.weight  # float32|float64
        y = net.body[0].weight  #
    """,
    "a module that reading its table does not change": """
        for layer in net._modules.values():
            y = layer
        y = net.head.weight  # float32
    """,
    "what is put into a module has not been cast with it before": """
        net.half()
        net.body[0] = nn.Linear(4, 4)
        y = net.body[0].weight  # float32
        net.add_module("tail", nn.Linear(4, 4))
        y = net.tail.weight  # float32
        net.half()
        y = net.tail.weight  # float16
    """,
    "a cast that is kept and called under another name": """
        cast = net.body.half
        y = net.head.weight  # float32
        cast()
        y = net.body[0].weight  # float16
        cast = getattr(net, "double")
        cast()
        y = net.head.weight  # float64
    """,
    "a cast that is handed to another function": """
        made = list(map(nn.Module.half, net.children()))
        y = net.head.weight  # float16
    """,
    "a function that is handed children, and casts them": """
        made = list(map(lambda child: child.double(), net.children()))
        y = net.head.weight  # float64
    """,
    "code that is not in view may cast what it is given": """
        import somewhere
        y = net.head.weight  # float32
        somewhere.prepare(net)
        y = net.head.weight  # float32
        net.float()
        y = net.head.weight  # float32
    """,
    "modules that stand under keys that are not known": """
        layers = {id(child): child for child in net.children()}
        for layer in layers.values():
            layer.half()
        y = net.head.weight  # float16|float32
    """,
    "a stack of modules to be looked at": """
        todo = [net]
        while todo:
            module = todo.pop()
            todo.extend(module.children())
            if isinstance(module, nn.Linear):
                module.to(torch.float64)
        y = net.head.weight  # float32|float64
    """,
    "a slice of a Sequential holds its layers": """
        net.body[:1].half()
        y = net.body[0].weight  # float16
    """,
    "a layer of torch may be of a class that another inherits": """
        layer = nn.ReLU6() if isinstance(nn.ReLU6(), nn.Hardtanh) else nn.Linear(2, 2)
        if isinstance(layer, nn.Linear):
            x = torch.ones(1).double()
        else:
            x = torch.ones(1).half()
        y = x * 2  # float16
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_modules_in_other_hands_are_claimed_for_as_far_as_they_are_followed(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + NET + textwrap.dedent(PROGRAMS[name]) + "y.sum()\n")
    hold(program)
