"""What an autocast region on CUDA gives, against torch itself: fake tensors take its kernels for autocast, without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.infer.programs import known

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPRESSIONS = [
    "F.cross_entropy(x, y)",
    "nn.CrossEntropyLoss()(x, y)",
    "F.nll_loss(x, y)",
    "F.mse_loss(x, x)",
    "x.square()",
    "x ** 2",
    "F.normalize(x)",
    "F.pairwise_distance(x, x)",
    "F.softmin(x, -1)",
    "F.softmax(x, -1)",
    "1 / x",
    "x / 2",
    "x.mean()",
    "x.std()",
    "x.var(-1)",
    "x.sum()",
    "torch.arccos(x)",
    "torch.special.log1p(x)",
    "torch.special.expm1(x)",
    "F.linear(x, x)",
    "F.relu(x)",
]


@pytest.fixture
def cuda_autocast() -> Iterator[None]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", torch.float16)
        try:
            yield
        finally:
            torch.set_autocast_enabled("cuda", False)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_region_gives_what_torch_gives(dtype: str, cuda_autocast: None) -> None:
    import torch.nn.functional as F
    from torch import nn

    x = torch.empty(4, 4, device="cuda", dtype=getattr(torch, dtype))
    y = torch.zeros(4, device="cuda", dtype=torch.int64)
    names = {"torch": torch, "F": F, "nn": nn, "x": x, "y": y}
    given = {one: str(eval(one, dict(names)).dtype).removeprefix("torch.") for one in EXPRESSIONS}
    lines = [
        f'x = torch.empty(4, 4, device="cuda", dtype=torch.{dtype})',
        'y = torch.zeros(4, device="cuda", dtype=torch.int64)',
        'with torch.autocast("cuda", dtype=torch.float16):',
        *(f"    z = {one}" for one in EXPRESSIONS),
    ]
    claimed = known("\n".join(lines))
    assert {one: claimed.get(one) for one in EXPRESSIONS} == given
