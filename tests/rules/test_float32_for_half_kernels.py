"""What DT311's fix makes of an op without a half kernel: the result has the dtype that it would have without the fix."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT311", "DT311", "import torch\n")


def fixed(text: str) -> str:
    assert len(BENCH.found("DT311", text)) == 1
    return BENCH.fixed("DT311", text)


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
