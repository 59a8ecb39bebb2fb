"""What DT311's fix makes of an op without a half kernel: float64 and complex operands lose nothing, and the result has
the dtype that it would have without the fix."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT311", "DT311", "import torch\n")


def fixed(text: str) -> str:
    assert len(BENCH.found("DT311", text)) == 1
    return BENCH.fixed("DT311", text)


ASKED = "def f(x: torch.Tensor, q: float):\n    if x.dtype == torch.bfloat16:\n        x = x.half()\n    return {}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "torch.quantile(x, q)",
            "torch.quantile(x.to(torch.promote_types(x.dtype, torch.float32)), q).to(x.dtype)",
        ),
        ("torch.quantile(x, q).item()", "torch.quantile(x.to(torch.promote_types(x.dtype, torch.float32)), q).item()"),
        ("torch.fft.fftn(x)", "torch.fft.fftn(x.to(torch.promote_types(x.dtype, torch.float32)))"),
    ],
)
def test_an_unknown_dtype_is_promoted(before: str, after: str) -> None:
    assert fixed(ASKED.format(before)) == ASKED.format(after)


@pytest.mark.parametrize("operation", ["torch.quantile(x.abs(), q)", "torch.fft.ifftn(x * q)"])
def test_an_expression_of_an_unknown_dtype_is_left(operation: str) -> None:
    assert fixed(ASKED.format(operation)) == ASKED.format(operation)


KNOWN = "x = torch.randn(3, 3, dtype=torch.float16)\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = torch.linalg.inv(x)\n", "y = torch.linalg.inv(x.float()).to(x.dtype)\n"),
        ("y = x.inverse()\n", "y = x.float().inverse().to(x.dtype)\n"),
        ("u, s, v = torch.linalg.svd(x)\n", "u, s, v = torch.linalg.svd(x.float())\n"),
        ("s = torch.linalg.svdvals(x * 2)\n", "s = torch.linalg.svdvals((x * 2).float())\n"),
        ("y = torch.linalg.solve(x, x)\n", "y = torch.linalg.solve(x, x)\n"),
        ("torch.nn.init.orthogonal_(x)\n", "torch.nn.init.orthogonal_(x)\n"),
    ],
)
def test_half_is_cast_where_that_alone_mends_it(before: str, after: str) -> None:
    assert fixed(KNOWN + before) == KNOWN + after


def test_the_fixed_code_keeps_complex_and_float64() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.complex64, torch.complex128, torch.float64):
        x = torch.randn(4, dtype=dtype)
        assert torch.equal(torch.fft.fftn(x.to(torch.promote_types(x.dtype, torch.float32))), torch.fft.fftn(x))
