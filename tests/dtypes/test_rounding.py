"""Rounding to a dtype, held against torch."""

from __future__ import annotations

import math

import pytest

from dtlint.dtypes.rounding import rounded

torch = pytest.importorskip("torch")
NUMBERS = (
    0.0,
    1e-8,
    2.98e-8,
    3e-8,
    5.96e-8,
    1e-5,
    0.1,
    1 - 1e-4,
    1 - 1e-8,
    1.0,
    2049.0,
    65504.0,
    65519.0,
    65520.0,
    1e9,
    3.4e38,
    1e39,
)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("number", [*NUMBERS, *(-one for one in NUMBERS), math.inf])
def test_a_number_is_rounded_as_torch_rounds_it(number: float, dtype: str) -> None:
    expected = torch.tensor(number, dtype=torch.float64).to(getattr(torch, dtype)).double().item()
    if dtype == "bfloat16" or dtype == "float16":  # from float64 torch rounds by way of float32
        number = torch.tensor(number, dtype=torch.float32).double().item()
    assert rounded(number, dtype) == expected


def test_integers_lose_the_fraction() -> None:
    assert rounded(0.9, "int64") == 0
    assert rounded(-1.5, "int8") == -1
