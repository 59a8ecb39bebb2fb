"""timm's factory makes what the function of a name makes, though no module is imported for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtlint.infer.claims.reading import claims

PACKAGE = {
    "timm/__init__.py": "from .models import create_model\n",
    "timm/models/__init__.py": "from ._factory import create_model\nfrom ._registry import register_model\nfrom .nets import *\n",
    "timm/models/_registry.py": """\
entries = {}
def register_model(function):
    entries[function.__name__] = function
    return function
""",
    "timm/models/_factory.py": """\
from ._registry import entries
def create_model(model_name, pretrained=False, checkpoint_path=None, **kwargs):
    return entries[model_name.partition(".")[0]](pretrained=pretrained, **kwargs)
""",
    "timm/models/nets.py": """\
import torch
from torch import nn
from ._registry import register_model
__all__ = ["Net"]
class Net(nn.Module):
    def __init__(self, dtype=None):
        super().__init__()
        self.fc = nn.Linear(2, 2, dtype=dtype)
    def forward(self, x):
        return self.fc(x.to(self.fc.weight.dtype))
@register_model
def tiny(pretrained=False, **kwargs):
    return Net(**kwargs)
""",
}


@pytest.mark.parametrize(
    ("made", "dtypes"),
    [
        ('create_model("tiny")', {"float32"}),
        ('create_model("tiny.in1k", pretrained=True, checkpoint_path="", dtype=torch.float64)', {"float64"}),
        ('create_model("hf-hub:user/tiny")', None),
        ("create_model(input())", None),
    ],
)
def test_a_model_is_that_of_its_name(tmp_path: Path, made: str, dtypes: set[str] | None) -> None:
    for name, text in PACKAGE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(f"import timm, torch\nnet = timm.{made}\nprint(net(torch.ones(2)))\n", encoding="utf-8")
    found = claims(program, [tmp_path])[program]
    assert next((one.dtypes for one in found if (one.span.line, one.span.column) == (3, 6)), None) == dtypes
