"""Mismatch and promotion, DT301 to DT305: what is said, and what is fixed, one idea each."""

from __future__ import annotations

from bench import Bench

bench = Bench("DT301", "DT305", "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
found = bench.found
fixed = bench.fixed


def test_a_product_is_cast_back_in_parentheses() -> None:
    text = "def f(s: torch.Tensor, v: torch.Tensor):\n    return torch.matmul(s.float() * 2, v)\n"
    assert "torch.matmul((s.float() * 2).to(v.dtype), v)" in fixed("DT301", text)


def test_the_factory_follows_the_tensor_it_is_made_after() -> None:
    text = "def f(x: torch.Tensor):\n    return x + torch.rand(x.shape, device=x.device)  # dither\n"
    assert fixed("DT304", text).endswith("return x + torch.rand(x.shape, device=x.device, dtype=x.dtype)  # dither\n")


def test_what_is_written_is_cast_to_what_it_is_written_into() -> None:
    text = "def f(x: torch.Tensor, mask: torch.Tensor, y: torch.Tensor):\n    x[mask] = y.float() + 1\n"
    assert fixed("DT305", text).endswith("x[mask] = (y.float() + 1).to(x.dtype)\n")
