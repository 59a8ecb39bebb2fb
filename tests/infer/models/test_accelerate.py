"""accelerate runs what it prepares under autocast; read without accelerate, by its public name."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import known

PROGRAM = """
    from accelerate import Accelerator
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
        def forward(self, x):
            inner = self.layer(x)
            return {{"logits": inner, "mask": x > 0}}
    model = Net()
    accelerator = Accelerator({arguments})
    batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(4, 2)), batch_size=2)
    net, optimizer, batches = accelerator.prepare(model, torch.optim.SGD([S], 0.1), batches)
    for (batch,) in batches:
        out = net(batch)
    result = out["logits"] * 1
    mask = out["mask"]
    with accelerator.autocast():
        again = net.layer(batch)
    model.eval()
"""


@pytest.mark.parametrize(
    ("arguments", "inner", "result"),
    [
        ('mixed_precision="no"', "float32", "float32"),
        ('mixed_precision="bf16", cpu=True', "bfloat16", "float32"),
        ('mixed_precision="fp16"', "float16", "float32"),
    ],
)
def test_prepared(arguments: str, inner: str, result: str) -> None:
    found = known(textwrap.dedent(PROGRAM).format(arguments=arguments))
    assert found["self.layer(x)"] == inner
    assert found['out["logits"] * 1'] == result
    assert found['out["mask"]'] == "bool"
    assert found["net.layer(batch)"] == inner


def test_either_of_two_models_is_prepared() -> None:
    program = PROGRAM.replace("model = Net()", "model = Net() if input() else Net().train()")
    found = known(textwrap.dedent(program).format(arguments='mixed_precision="fp16"'))
    assert found["self.layer(x)"] == "float16"
    assert found['out["logits"] * 1'] == "float32"


def test_a_precision_that_the_launcher_decides() -> None:
    found = known(textwrap.dedent(PROGRAM).format(arguments=""))
    assert "|" in found.get("self.layer(x)", "|")


def test_a_result_that_holds_itself_is_cast_once() -> None:
    found = known(
        textwrap.dedent(
            """
            from accelerate import Accelerator
            class Output:
                def __init__(self, logits):
                    self.logits = logits
                    self.parts = [self]
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = nn.Linear(2, 2)
                def forward(self, x):
                    inner = self.layer(x)
                    return Output(inner)
            accelerator = Accelerator(mixed_precision="fp16")
            net = accelerator.prepare(Net())
            out = net(torch.randn(4, 2))
            result = out.logits * 1
            """
        )
    )
    assert found["out.logits * 1"] == "float32"
