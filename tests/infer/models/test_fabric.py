"""Lightning's Fabric makes and casts modules by its precision; read without Lightning, by the public names."""

from __future__ import annotations

import pytest

from tests.infer.programs import known

ANY = "bfloat16|float16|float32|float64"
PROGRAM = """
    from lightning.fabric import Fabric
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mask", torch.ones(2))
            self.fc = nn.Linear(2, 2)
        def forward(self, x):
            return self.fc(x) * self.mask
    fabric = Fabric(accelerator="cpu", {given})
    with fabric.init_module():
        net = Net()
    made = net.mask * 2
    net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), 0.1))
    for batch in fabric.setup_dataloaders(torch.utils.data.DataLoader(torch.ones(4, 2, dtype=torch.float64).float())):
        out = net(batch)
        fabric.backward(out.sum())
    outside = torch.zeros(2)
"""


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("precision='bf16-true'", "bfloat16"),
        ("precision='16-true'", "float16"),
        ("precision='64-true'", "float64"),
        ("precision='bf16-mixed'", "float32"),
        ("precision='32-true'", "float32"),
        ("devices=1", "float32"),
        ("precision=chosen()", ANY),
        ("plugins=[chosen()]", ANY),
        ("**chosen()", ANY),
    ],
)
def test_what_is_made_within_has_the_dtype_of_the_precision(given: str, made: str) -> None:
    found = known(PROGRAM.format(given=given))
    assert found["net.mask * 2"] == made
    assert found["torch.zeros(2)"] == "float32"
    assert found["batch"] == "float32"


@pytest.mark.parametrize(("given", "out"), [("precision=32", "float32"), ("precision='bf16-mixed'", None)])
def test_a_module_that_was_set_up_is_told_of_in_float32_alone(given: str, out: str | None) -> None:
    assert known(PROGRAM.format(given=given)).get("net(batch)") == out
