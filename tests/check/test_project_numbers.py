"""What becomes of numbers and casts where dtype and number stand in two files: small programs, each with its harmless twin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dtlint import discover
from dtlint.check.run import run
from dtlint.config import Configuration

if TYPE_CHECKING:
    from pathlib import Path

RULES = {code: rule for code, rule in discover().items() if rule.asks()}

MAIN = "import torch\nfrom helper import work\n\n\ndef main():\n    {}\n\n\nif __name__ == '__main__':\n    main()\n"
HELPER = "import torch\nimport torch.nn.functional as F\n\n\ndef work({}):\n    {}\n"

HALF = "torch.randn(4, 4, dtype=torch.float16)"
SINGLE = "torch.randn(4, 4, dtype=torch.float32)"
BYTES = "torch.randint(0, 256, (4, 4), dtype=torch.uint8)"
COMPLEX = "torch.fft.fft(torch.randn(4, 4, dtype=torch.float32))"

WRONG = [
    # masks and constants beyond the largest number
    ("DT401", f"work({HALF})", "x", "return x.masked_fill(x > 0, -1e5)"),
    ("DT401", f"work({HALF}, torch.finfo(torch.float32).min)", "x, low", "return x.masked_fill(x > 0, low)"),
    ("DT401", f"work({HALF})", "x, value=-1e9", "x[x > 0] = value\n    return x"),
    ("DT401", f"work({HALF})", "x", "return torch.where(x > 0, x, -1e9)"),
    ("DT402", f"work({HALF})", "x", "return x + -1e6"),
    ("DT402", f"work({HALF})", "x", "return torch.full_like(x, 1e9)"),
    ("DT402", f"work({HALF}, 1e6)", "x, scale", "return x * scale"),
    ("DT402", f"work({HALF})", "x", "return x / 1e-6"),
    ("DT402", f"work({HALF})", "x", "return x.clamp(min=-1e9)"),
    # epsilons
    ("DT403", f"work({HALF})", "x, eps=1e-12", "return x / (x.norm() + eps)"),
    ("DT403", f"work({HALF})", "x", "return x / x.sum(-1).clamp_min(1e-9)"),
    ("DT403", f"work({HALF})", "x", "return torch.log(x.sigmoid().clamp(max=1 - 1e-5))"),
    # averages
    ("DT413", f"work({HALF}, 0.9999)", "x, decay", "x.mul_(decay).add_(x, alpha=1 - decay)\n    return x"),
    ("DT413", "work(torch.zeros(4, dtype=torch.bfloat16))", "x", "x.lerp_(torch.ones_like(x), 1e-3)\n    return x"),
    # totals
    (
        "DT412",
        f"work([{HALF}, {HALF}])",
        "losses",
        "total = torch.zeros((), dtype=torch.float16)\n    for one in losses:\n        total = total + one.mean()\n    return total",
    ),
    (
        "DT412",
        "work(torch.zeros(4, dtype=torch.bfloat16))",
        "total",
        "for _ in range(1000):\n        total += torch.rand(4)\n    return total",
    ),
    ("DT406", f"work({HALF})", "x", "return x.pow(2).sum()"),
    ("DT406", f"work({HALF})", "x", "return torch.sum(x ** 2)"),
    # positions
    ("DT410", "work(4096, torch.float16)", "n, dtype", "return torch.arange(n, dtype=dtype)"),
    ("DT410", f"work({HALF})", "x", "return torch.arange(x.shape[0], dtype=x.dtype).float() / 10"),
    # small integers
    ("DT416", f"work({BYTES}, {BYTES})", "a, b", "return (a - b).abs()"),
    ("DT416", f"work({BYTES}, {BYTES})", "a, b", "return ((a - b) ** 2).float().mean()"),
    ("DT416", f"work({BYTES}, {BYTES})", "a, b", "return (a + b) / 2"),
    # casts and writes
    ("DT115", f"work({COMPLEX})", "x", "return x.float()"),
    ("DT115", f"work({COMPLEX}, {SINGLE})", "x, like", "return x.to(like.dtype)"),
    ("DT103", "work(torch.nn.Linear(4, 4).weight)", "x", "return x.detach().to(torch.int8)"),
    ("DT103", "work(torch.nn.Conv2d(3, 4, 3).state_dict())", "state", "return [x.char() for x in state.values()]"),
    ("DT121", "work(torch.zeros(4, dtype=torch.long))", "x", "x[0] = 0.5\n    return x"),
    ("DT121", "work(torch.zeros(4, dtype=torch.int32), 0.1)", "x, p", "return x.masked_fill(x == 0, 1 - p)"),
    # refusals
    ("DT308", "work(torch.ones(4, dtype=torch.long))", "mask", "return torch.zeros(4).masked_fill_(mask, 1.0)"),
    ("DT308", "work(torch.ones(4, dtype=torch.uint8).long())", "m", "return torch.where(m, torch.ones(4), 2.0)"),
    ("DT306", "work(torch.linspace(0, 3, 4))", "index", "return torch.zeros(4, 4).index_select(0, index)"),
    ("DT306", "work(torch.ones(4, 4, dtype=torch.float64))", "i", "return torch.zeros(4, 4).gather(1, i)"),
    ("DT305", f"work({HALF})", "x", "return torch.zeros(4, 4).index_copy_(0, torch.arange(4), x)"),
    ("DT310", "work(torch.zeros(4, dtype=torch.long))", "x", "x *= 0.5\n    return x"),
    ("DT310", "work(torch.zeros(4, dtype=torch.long))", "x", "return x.add_(torch.rand(4))"),
    ("DT313", "work(torch.zeros(4, dtype=torch.bfloat16))", "x", "return x.cpu().numpy()"),
    ("DT311", f"work({HALF})", "x", "return torch.linalg.svd(x)"),
    ("DT311", f"work({HALF})", "x", "return torch.inverse(x @ x.T)"),
    ("DT307", "work(torch.ones(4, dtype=torch.float64))", "w", "return torch.nn.CrossEntropyLoss(weight=w)(torch.rand(3, 4), torch.arange(3))"),
    ("DT307", "work(torch.ones(4).half())", "w", "return F.cross_entropy(torch.rand(3, 4), torch.arange(3), w)"),
]  # fmt: skip

FINE = [
    (f"work({SINGLE})", "x", "return x.masked_fill(x > 0, -1e9)"),
    (f"work({HALF})", "x", "return x.masked_fill(x > 0, float('-inf')) + x.masked_fill(x > 0, torch.finfo(x.dtype).min)"),
    (f"work({HALF})", "x", "return x.float().masked_fill(x > 0, -1e9).to(x.dtype)"),
    ("work(torch.randn(4, dtype=torch.bfloat16))", "x", "return x.masked_fill(x > 0, -1e9) * 1e6 + 1e-8"),
    (f"work({HALF})", "x", "return (x * 1e-6) * 1e4 + x.clamp(-1e4, 1e4)"),
    (f"work({HALF})", "x", "low = -1e9 if x.dtype == torch.float32 else -1e4\n    return x.masked_fill(x > 0, low)"),
    (f"work({HALF})", "x, eps=1e-5", "return x / (x.norm() + eps) + (x.float() + 1e-8).half()"),
    (f"work({HALF})", "x", "return (x.exp() + 1e-3).clamp(min=0.0, max=1.0).clamp_min(1e-6)"),
    (f"work({SINGLE})", "x", "x.mul_(0.9999).add_(x, alpha=1e-4)\n    return x.lerp_(x, 1e-4)"),
    (f"work({HALF})", "x", "x.mul_(0.99)\n    return x * 1.0"),
    (
        f"work([{HALF}, {HALF}])",
        "losses",
        "total = 0.0\n    for one in losses:\n        total = total + one.mean().item()\n    return total",
    ),
    (f"work({HALF})", "x", "for _ in range(4):\n        x = x + x.tanh()\n    return x"),
    (f"work({HALF})", "x", "return x.pow(2).sum(dtype=torch.float32) + (x.float() ** 2).sum() + x.pow(2).mean(-1).sum(-1)"),
    ("work(128, torch.float16)", "n, dtype", "return torch.arange(n, dtype=dtype).float()"),
    (f"work({HALF})", "x", "return torch.arange(x.shape[0]).float().to(x.dtype)"),
    (f"work({BYTES}, {BYTES})", "a, b", "return (torch.maximum(a, b) - torch.minimum(a, b)).float().pow(2) + (a.int() - b).abs()"),
    (f"work({BYTES}, {BYTES})", "a, b", "return ((a > 3).byte() + (b > 250).byte()) / 2"),
    (f"work({COMPLEX})", "x", "return x.real.float() + x.abs().float() + x.to(torch.complex128).real"),
    ("work(torch.nn.Linear(4, 4).weight)", "x", "return (x / x.abs().max() * 127).round().clamp(-127, 127).to(torch.int8)"),
    ("work(torch.zeros(4, dtype=torch.long))", "x", "x[0] = 2.0\n    x[1] = 1\n    return x.masked_fill(x == 0, 3.0)"),
    ("work(torch.zeros(4))", "x", "x[0] = 0.5\n    x *= 0.5\n    return x"),
    ("work(torch.ones(4, dtype=torch.bool))", "mask", "return torch.where(mask, torch.zeros(4).masked_fill(mask, 1.0), 2.0)"),
    ("work(torch.linspace(0, 3, 4))", "index", "return torch.zeros(4, 4).index_select(0, index.long())"),
    ("work(torch.zeros(4, dtype=torch.bfloat16))", "x", "return x.float().numpy()"),
    (f"work({HALF})", "x", "return torch.linalg.svd(x.float())"),
    ("work(torch.ones(4))", "w", "return torch.nn.CrossEntropyLoss(weight=w)(torch.rand(3, 4), torch.arange(3))"),
]  # fmt: skip


def codes(folder: Path, call: str, parameters: str, body: str) -> set[str]:
    """The codes of what is found in two files: one calls what the other defines."""
    (folder / "main.py").write_text(MAIN.format(call), encoding="utf-8")
    (folder / "helper.py").write_text(HELPER.format(parameters, body), encoding="utf-8")
    outcome = run(sorted(folder.glob("*.py")), Configuration(isolated=True).settings_for, RULES)
    assert outcome.errors == []
    return {f"{one.code}" for one in outcome.diagnostics if not one.conditional}


@pytest.mark.parametrize(("code", "call", "parameters", "body"), WRONG)
def test_what_two_files_get_wrong_together_is_found(
    tmp_path: Path, code: str, call: str, parameters: str, body: str
) -> None:
    assert codes(tmp_path, call, parameters, body) == {code}


@pytest.mark.parametrize(("call", "parameters", "body"), FINE)
def test_what_two_files_get_right_is_left_alone(tmp_path: Path, call: str, parameters: str, body: str) -> None:
    assert codes(tmp_path, call, parameters, body) == set()
