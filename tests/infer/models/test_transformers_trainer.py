"""transformers' Trainer runs its model under the precision of its arguments; the library is a sketch of it here."""

from __future__ import annotations

import ast
import textwrap
from typing import TYPE_CHECKING

import pytest

from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import read

if TYPE_CHECKING:
    from pathlib import Path

TRAINER = """
    import torch
    class Trainer:
        def __init__(self, model, args, train_dataset=None, data_collator=None):
            self.model, self.args, self.train_dataset = model, args, train_dataset
            self.data_collator = data_collator
        def train(self):
            raise NotImplementedError
        def compute_loss(self, model, inputs):
            return model(**inputs)["loss"]
"""
PROGRAM = """
    import torch
    from torch import nn
    from transformers.trainer import Trainer
    class Arguments:
        def __init__(self, fp16=False, bf16=False, use_cpu=False):
            self.fp16, self.bf16, self.use_cpu = fp16, bf16, use_cpu
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)
        def forward(self, x):
            inner = self.layer(x)
            return {{"loss": inner}}
    class Own(Trainer):
        def compute_loss(self, model, inputs):
            loss = super().compute_loss(model, inputs)
            return loss * 2
    def collate(items):
        return {{"x": torch.stack(items)}}
    trainer = Own(Net(), Arguments({arguments}), [torch.randn(2), torch.randn(2)], collate)
    trainer.train()
"""


@pytest.mark.parametrize(
    ("arguments", "inner"),
    [
        ("", {"float32"}),
        ("bf16=True, use_cpu=True", {"bfloat16"}),
        ("fp16=True", {"float16"}),
    ],
)
def test_precision(tmp_path: Path, arguments: str, inner: set[str]) -> None:
    package = tmp_path / "transformers"
    package.mkdir()
    (package / "__init__.py").write_text("import torch\n")
    (package / "trainer.py").write_text(textwrap.dedent(TRAINER))
    source = textwrap.dedent(PROGRAM).format(arguments=arguments)
    program = tmp_path / "program.py"
    program.write_text(source)
    found = {
        ast.get_source_segment(source, node): getattr(value, "dtypes", None)
        for node, module, value in read(program, [tmp_path], Disk()).facts.tensors()
        if getattr(module, "path", None) == program
    }
    assert found["self.layer(x)"] == inner
    assert found["loss * 2"] == {"float32"}
