"""What is claimed of a function holds for calls that are not seen, too."""

from __future__ import annotations

import pytest

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
    "one that is asked of what a field holds calls the module": """
        class Net(nn.Module):
            def forward(self, x):
                y = x * 2
                return y
        exec("def twice(self, x): return self(x.half())")
        Net.twice = locals()["twice"]
        class Trainer:
            def __init__(self, net):
                self.net = net
            def run(self, x):
                return self.net(x), self.net.twice(x)
        a = Trainer(Net()).run(torch.ones(2))
    """,
    "one that is given the object by a keyword calls it": """
        class Net(nn.Module):
            def forward(self, x):
                y = x * 2
                return y
            def both(self, x):
                return self(x), run(x=x, net=self)
        exec("def run(net, x): return net(x.half())")
        a = Net().both(torch.ones(2))
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


def test_nothing_is_claimed_of_what_is_run_for_an_attribute_that_is_not_there() -> None:
    program = """
        class Record:
            def __init__(self, **fields):
                self.__dict__["fields"] = fields
            def __getattr__(self, name):
                value = self.fields[name]
                return value * 2
        record = Record(x=torch.ones(2).half())
        y = record.x + 1
        y.sum()
    """
    found = known(program)
    assert found["record.x + 1"] == "float16"
    assert "value * 2" not in found
