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


def test_a_layer_that_each_round_of_a_loop_makes_and_casts_has_one_dtype() -> None:
    text = """
    def f(shapes):
        for n in shapes:
            if n:
                m = nn.Linear(3, 3).{cast}()
            x = torch.randn(n, 3, dtype=torch.{given})
            m(x)
    """
    assert found("DT302", text.format(cast="bfloat16", given="bfloat16")) == []
    (one,) = found("DT302", text.format(cast="bfloat16", given="float16"))
    assert one.message == "`nn.Linear` with bfloat16 weights gets float16: it raises, unless under autocast"


def test_what_is_cast_on_some_paths_is_not_told_as_of_the_default_dtype() -> None:
    text = """
    def f(n, half):
        m = nn.Linear(3, 3)
        if half:
            m.bfloat16()
        return m(torch.randn(n, 3, dtype=torch.bfloat16))
    """
    assert found("DT302", text) == []


def test_the_default_dtype_is_told_as_float32() -> None:
    (layer,) = found("DT302", "def f(n):\n    return nn.Linear(3, 3)(torch.randn(n, 3, dtype=torch.bfloat16))\n")
    assert layer.message == "`nn.Linear` with float32 weights gets bfloat16: it raises, unless under autocast"
    (product,) = found("DT301", "def f(n):\n    return torch.randn(n, 3, dtype=torch.float16) @ torch.randn(3, n)\n")
    assert product.message == "`@` raises for float16 and float32, unless under autocast"


def test_bytes_that_are_read_as_a_dtype_nobody_knows_have_that() -> None:
    text = """
    def load(data, name):
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).view({to})


    def same(data, name):
        return torch.allclose(torch.randn(3), load(data, name))
    """
    assert found("DT301", text.format(to="getattr(torch, name)")) == []
    assert len(found("DT301", text.format(to="-1"))) == 1
