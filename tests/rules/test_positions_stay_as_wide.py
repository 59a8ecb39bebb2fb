"""DT410's fix takes no float64 away, and does not bring float32 positions to half weights."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT410", "DT410", "import torch\n")
ENCODING = (
    "def rotary(x: torch.Tensor, inv_freq: torch.Tensor, dtype: torch.dtype = torch.float16):\n"
    "    positions = torch.arange(x.shape[1], dtype={})\n"
    "    return {}.cos()\n"
)


@pytest.mark.parametrize(
    ("dtype", "fixed"),
    [
        ("x.dtype", "torch.promote_types(x.dtype, torch.float32)"),
        ("torch.bfloat16", "torch.float32"),
    ],
)
def test_it_counts_in_float32_or_wider(dtype: str, fixed: str) -> None:
    after = BENCH.fixed("DT410", ENCODING.format(dtype, "torch.outer(positions, inv_freq)"))
    assert after == ENCODING.format(fixed, "torch.outer(positions, inv_freq)")


@pytest.mark.parametrize(
    "product", ['torch.einsum("i,j->ij", positions, inv_freq)', "(positions[:, None] @ inv_freq[None])"]
)
def test_it_is_left_before_a_product_that_does_not_promote(product: str) -> None:
    text = ENCODING.format("x.dtype", product)
    assert len(BENCH.found("DT410", text)) == 1
    assert BENCH.fixed("DT410", text) == text
