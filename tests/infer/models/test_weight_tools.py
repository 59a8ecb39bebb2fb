"""torch.nn.init, parametrizations, norms of weights, and what a state holds."""

from __future__ import annotations

import pytest

from tests.infer.programs import inexact

pytest.importorskip("torch")

HEAD = "x = torch.randn(2, 5, 8)\n"


def test_initialisers_give_the_weight() -> None:
    """With its dtype."""
    program = """
lin = nn.Linear(4, 2)
sd = lin.state_dict(); v = sd["weight"] * 1
for key, val in sd.items(): v2 = val * 1
lin.load_state_dict(sd); lw = lin.weight * 1
nn.init.xavier_uniform_(lin.weight); nn.init.zeros_(lin.bias); t0 = nn.init.normal_(torch.empty(3, 4)) * 1
lw2 = lin.weight * 1
"""
    assert inexact(HEAD + program) == []


def test_parametrised_weights_are_computed() -> None:
    """Each time that they are read, and cast with the module."""
    program = """
wn = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)); wo = wn(torch.randn(2, 4)) * 1; wp = wn.weight * 1
sn = nn.utils.spectral_norm(nn.Linear(4, 4)); so = sn(torch.randn(2, 4)) * 1


class Doubled(nn.Module):
    def forward(self, weight):
        return weight.double()


layer = nn.Linear(8, 8)
nn.utils.parametrize.register_parametrization(layer, "weight", Doubled(), unsafe=True)
a = layer.weight * 1
b = layer.parametrizations.weight.original * 1
layer.half()
c = layer.parametrizations.weight.original * 1
"""
    assert inexact(HEAD + program) == []


def test_modules_are_made_without_being_filled() -> None:
    """Of a class from torch or in view, with weights of the dtype that it is given."""
    program = """
class Head(nn.Module):
    def __init__(self, width, device=None, dtype=None):
        super().__init__()
        self.out = nn.Linear(width, 2, device=device, dtype=dtype)
        self.scale = nn.Parameter(torch.ones(2, device=device))

    def forward(self, x):
        return self.out(x) * self.scale


skip = nn.utils.skip_init
plain = skip(nn.Linear, 8, 4).weight * 1
half = skip(nn.Linear, 8, out_features=4, dtype=torch.float16, device="cpu").bias * 1
head = skip(module_cls=Head, width=8, dtype=torch.bfloat16)
weight = head.out.weight * 1
result = head(x.bfloat16())
head.half(); after = head.scale * 1
options = {"dtype": torch.float64}
double = skip(nn.Conv1d, 5, 5, 1, **options)(x.double())
"""
    assert inexact(HEAD + program) == []
