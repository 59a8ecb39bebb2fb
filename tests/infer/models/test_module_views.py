"""What a module keeps its parts in: each program's variables are compared with a run of it."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "lists of modules that grow by +=": """
        layers = nn.ModuleList([])
        layers += [nn.Linear(2, 2).double()]
        layers += [nn.Linear(2, 2).double()]
        a = layers[0](D)
        b = len(layers)
    """,
    "a name that may be None is iterated over where it is not": """
        class Net(nn.Module):
            def __init__(self, more):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(2, 2)]) if more else None
            def forward(self, x):
                if self.layers is not None:
                    for layer in self.layers:
                        x = layer(x)
                return x
        nets = [Net(i == 0).double() for i in range(20)]
        a = nets[0](D)
        b = nets[1](D)
    """,
    "modules and parameters by name": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(2, 2)
                self.scale = nn.Parameter(torch.ones(2))
                self.register_buffer("shift", torch.zeros(2, dtype=torch.float64))
                self.size = 3
            def forward(self, x):
                return self._modules["first"](x) * self._parameters["scale"] + self._buffers["shift"]
        net = Net()
        a = net(S)
        b = list(net._modules)
        c = "size" in net._modules
        d = "scale" in net._parameters
        e = [len(one._parameters) for one in net._modules.values()]
    """,
    "a module whose attributes are looked up": """
        class Wrapper(nn.Module):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner
            def __getattr__(self, name):
                try:
                    return super().__getattr__(name)
                except AttributeError:
                    return getattr(self.inner, name)
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(2).half())
            def twice(self, x):
                return self.weight * 2
        w = Wrapper(Inner())
        a = w.twice(S)
        b = w.weight * 1
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    text = textwrap.dedent(PROGRAMS[name])
    assert mistaken(text) == []
    assert loose(text) <= {"nets", "layers"}
