"""Which findings are conditional: those that no dtype in view bears out. A tensor that is known is judged always."""

from __future__ import annotations

import textwrap

import pytest

from dtlint import Rule, RuntimeRule, discover
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.document import document
from dtlint.source.file import Source

RULES = discover()
STATIC = [rule for rule in RULES.values() if not issubclass(rule, RuntimeRule)]
HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n\n"


def found(code: str, text: str, settings: Settings) -> int:
    source = Source.from_bytes((HEAD + textwrap.dedent(text)).encode(), "example.py")
    return len(check_source(source, [RULES[code]], settings).diagnostics)


@pytest.mark.parametrize("rule", STATIC, ids=lambda rule: rule.code)
def test_a_rule_whose_example_is_conditional_says_so(rule: type[Rule]) -> None:
    found = [
        diagnostic
        for example in document(rule).example
        for diagnostic in check_source(
            Source.from_bytes(example.encode(), "example.py"), [rule], Settings(preview=True)
        ).diagnostics
    ]
    if found and all(diagnostic.conditional for diagnostic in found):
        assert "conditional, and" in document(rule).sections["What it does"].lower()


@pytest.mark.parametrize(
    ("code", "assumed", "known"),
    [
        (
            "DT104",
            "def f(q: torch.Tensor):\n    bias = torch.zeros_like(q, dtype=q.dtype)\n    bias.to(q.dtype)\n    return bias\n",
            "bias = torch.zeros(3)\nbias.half()\n",
        ),
        (
            "DT407",
            "class Quantizer(torch.nn.Module):\n    def forward(self, x):\n        if self.training:\n"
            "            return F.mse_loss(x.detach(), x)\n        return x\n\n\n"
            "model = Quantizer().eval()\nmodel(torch.ones(3).half())\n",
            "class Penalty(torch.nn.Module):\n    def forward(self, x):\n        return F.mse_loss(x.detach(), x)\n\n\n"
            "model = Penalty()\nmodel(torch.ones(3).half())\n",
        ),
        (
            "DT111",
            "state = {key: value.half() for key, value in torch.load('model.pt').items()}\n",
            "model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))\n"
            "state = {key: value.half() for key, value in model.state_dict().items()}\n",
        ),
        (
            "DT305",
            "def f(x: torch.Tensor, mask: torch.Tensor, y: torch.Tensor):\n    x[mask] = y.float()\n",
            "x = torch.zeros(3).half()\nx[torch.tensor([0, 1])] = torch.ones(2)\n",
        ),
        (
            "DT401",
            "def f(scores, mask):\n    return scores.masked_fill(mask, -1e9)\n",
            "def f(x: torch.Tensor, mask):\n    return x.half().masked_fill(mask, -1e9)\n",
        ),
        (
            "DT403",
            "def f(x):\n    return x / (x.norm() + 1e-8)\n",
            "x = torch.ones(3).half()\ny = x / (x.norm() + 1e-8)\n",
        ),
        (
            "DT403",
            "def f(x):\n    return x / (x.norm() + 1e-8)\n",
            "def f(p):\n    return p.clamp(1e-6, 1 - 1e-9).log()\n",
        ),
        (
            "DT405",
            "def f(scores, mask):\n    return scores + (1 - mask) * float('-inf')\n",
            "def f(scores, n):\n    return scores + (n == 0).float() * float('-inf')\n",
        ),
        (
            "DT410",
            "def f(x):\n    pos = torch.arange(len(x), dtype=x.dtype)\n    return torch.sin(pos)\n",
            "def f(x):\n    pos = torch.arange(4096, dtype=torch.float16)\n    return torch.sin(pos)\n",
        ),
    ],
)
def test_what_is_known_is_reported_always(code: str, assumed: str, known: str) -> None:
    assert (found(code, assumed, Settings()), found(code, assumed, Settings(preview=True))) == (0, 1)
    assert found(code, known, Settings()) == 1


def test_a_number_that_is_known_to_vanish_is_reported_though_another_use_is_not() -> None:
    text = """
    EPS = 1e-8

    def f(x):
        return x / (x.norm() + EPS)

    x = torch.ones(3).half()
    y = x / (x.norm() + EPS)
    """
    assert found("DT403", text, Settings()) == 1
