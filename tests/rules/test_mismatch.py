"""Mismatch and promotion, DT301 to DT305: what is said, and what is fixed, one idea each."""

from __future__ import annotations

from bench import Bench

bench = Bench("DT301", "DT305", "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
found = bench.found
fixed = bench.fixed


def test_the_note_shows_where_the_operand_was_cast() -> None:
    text = "def f(s: torch.Tensor, v: torch.Tensor):\n    s = s.float()\n    return s @ v\n"
    (item,) = found("DT301", text)
    assert [note.message for note in item.notes] == ["cast to float32 here"]


def test_a_product_is_cast_back_in_parentheses() -> None:
    text = "def f(s: torch.Tensor, v: torch.Tensor):\n    return torch.matmul(s.float() * 2, v)\n"
    assert "torch.matmul((s.float() * 2).to(v.dtype), v)" in fixed("DT301", text)


def test_a_product_is_said_to_raise() -> None:
    text = "def f(k: torch.Tensor):\n    ones = torch.ones(k.shape[:2], device=k.device)\n    return torch.einsum('bld,bl->bd', k, ones)\n"
    (item,) = found("DT304", text)
    assert item.message.endswith(": `einsum` raises if `k` is half")


def test_the_factory_follows_the_tensor_it_is_made_after() -> None:
    text = "def f(x: torch.Tensor):\n    return x + torch.rand(x.shape, device=x.device)  # dither\n"
    assert fixed("DT304", text).endswith("return x + torch.rand(x.shape, device=x.device, dtype=x.dtype)  # dither\n")


def test_what_is_written_is_cast_to_what_it_is_written_into() -> None:
    text = "def f(x: torch.Tensor, mask: torch.Tensor, y: torch.Tensor):\n    x[mask] = y.float() + 1\n"
    assert fixed("DT305", text).endswith("x[mask] = (y.float() + 1).to(x.dtype)\n")


def test_a_program_without_half_is_left_alone() -> None:
    text = """
        def step(x: torch.Tensor, model: nn.Module, optimizer):
            loss = model(x + torch.rand(x.shape, device=x.device)).mean()
            loss.backward()
            optimizer.zero_grad()
        for batch in load():
            step(batch, build(), None)
        """
    assert found("DT304", text) == []
