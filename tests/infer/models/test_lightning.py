"""Lightning's Trainer runs the steps of a module under its precision; read without Lightning, by the public names."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import known

PROGRAM = """
    import lightning as L
    from torch.utils.data import DataLoader, TensorDataset
    class Net(L.LightningModule):
        def __init__(self, width=2):
            super().__init__()
            self.save_hyperparameters()
            self.layer = nn.Linear(2, width)
        def training_step(self, batch, batch_idx):
            given, label = batch
            made = self.layer(given)
            loss = made.float().mean()
            self.log("loss", loss)
            return loss
        def on_train_batch_end(self, outputs, batch, batch_idx):
            outside = self.layer(batch[0])
        def predict_step(self, batch):
            return self.layer(batch[0])
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=self.hparams.width)
    loader = DataLoader(TensorDataset(torch.randn(4, 2), torch.zeros(4, dtype=torch.int64)), batch_size=2)
    trainer = L.Trainer(precision={precision}, accelerator="{device}")
    net = Net()
    trainer.fit(net, loader)
"""


@pytest.mark.parametrize(
    ("precision", "device", "given", "made"),
    [
        ('"32-true"', "cpu", "float32", "float32"),
        ("None", "gpu", "float32", "float32"),
        ('"bf16-mixed"', "cpu", "float32", "bfloat16"),
        ('"16-mixed"', "gpu", "float32", "float16"),
        ('"16-mixed"', "cpu", "float32", "bfloat16"),
        ("16", "gpu", "float32", "float16"),
        ('"bf16-true"', "cpu", "bfloat16", "bfloat16"),
        ('"64-true"', "cpu", "float64", "float64"),
    ],
)
def test_precision(precision: str, device: str, given: str, made: str) -> None:
    found = known(textwrap.dedent(PROGRAM).format(precision=precision, device=device))
    assert found["given"] == given
    assert found["self.layer(given)"] == made
    assert found["made.float().mean()"] == "float32"


def test_precision_that_is_not_known_claims_nothing_of_what_is_computed() -> None:
    found = known(textwrap.dedent(PROGRAM).format(precision="chosen()", device="gpu"))
    assert found["given"] == "float32"
    assert "|" in found.get("self.layer(given)", "|")


def test_hooks_around_a_step_are_outside_its_region() -> None:
    found = known(textwrap.dedent(PROGRAM).format(precision='"bf16-mixed"', device="cpu"))
    assert found["self.layer(batch[0])"] == "float32"
