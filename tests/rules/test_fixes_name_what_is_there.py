"""A fix names only tensors that are there where it stands."""

from __future__ import annotations

from tests.rules.bench import Bench

BENCH = Bench("DT304", "DT305", "import torch\n")

MOVED = """
def f(x: torch.Tensor):
    {}
    noise = noise.to(var.device)
    return torch.matmul(noise, var)
"""


def test_a_factory_takes_its_dtype_from_a_tensor_that_is_made_above() -> None:
    text = MOVED.format("var = x * 2\n    noise = torch.ones(3, 3)")
    assert BENCH.fixed("DT304", text) == MOVED.format("var = x * 2\n    noise = torch.ones(3, 3, dtype=var.dtype)")


def test_it_does_not_from_one_that_is_made_below() -> None:
    text = MOVED.format("noise = torch.ones(3, 3)\n    var = x * 2")
    assert len(BENCH.found("DT304", text)) == 1
    assert BENCH.fixed("DT304", text) == text
