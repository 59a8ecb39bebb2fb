"""A tensor that is given and cast to int8 as it is: reported where the result is kept, and nothing speaks of integers."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT103", "DT103", "import torch\nfrom torch import Tensor, nn\n")

REPORTED = {
    "returned": "def f(weight: Tensor):\n    return weight.to(torch.int8)",
    "bound": "def f(weight: Tensor):\n    q = weight.char()\n    return q",
    "with its scale": "def f(weight: Tensor, scale: Tensor):\n    return weight.to(torch.int8), scale",
    "a view": "def f(weight: Tensor):\n    q = weight.t().contiguous().to(torch.int8)\n    return q",
    "made a parameter": "def f(weight: Tensor):\n    return nn.Parameter(weight.to(torch.int8), requires_grad=False)",
}
SILENT = {
    "scaled": "def f(weight: Tensor, scale: Tensor):\n    return (weight / scale).to(torch.int8)",
    "rounded": "def f(weight: Tensor):\n    weight = weight.round()\n    return weight.to(torch.int8)",
    "clamped": "def f(weight: Tensor):\n    return weight.clamp(-128, 127).to(torch.int8)",
    "known to be bool": "def f(x: Tensor):\n    return (x > 0).to(torch.int8)",
    "known to be integer": "def f(x: Tensor):\n    return x.argmax(-1).to(torch.int8)",
    "its bits": "def f(packed: Tensor):\n    low = packed & 15\n    q = packed.to(torch.int8)\n    return q, low",
    "an index": "def f(codes: Tensor, table: Tensor):\n    return codes.to(torch.int8), table[codes]",
    "asked for its dtype": "def f(x: Tensor):\n    if x.dtype == torch.bool:\n        x = x.to(torch.int8)\n    return x",
    "a mask": "def f(mask: Tensor):\n    return mask.to(torch.int8)",
    "computed with at once": "def f(active: Tensor):\n    return active.to(torch.int8).diff(dim=1)",
    "to uint8": "def f(image: Tensor):\n    return image.to(torch.uint8)",
    "no known tensor": "def f(weight):\n    return weight.to(torch.int8)",
}


@pytest.mark.parametrize("text", REPORTED.values(), ids=REPORTED)
def test_it_is_reported(text: str) -> None:
    (found,) = BENCH.found("DT103", text)
    assert found.message.startswith("`weight` is cast to int8 as it is given")


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_it_is_silent(text: str) -> None:
    assert BENCH.found("DT103", text) == []
