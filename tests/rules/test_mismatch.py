"""Mismatch and promotion, DT301 to DT305: what is said, what is fixed, and what is left alone, one idea each.

More code as people write it stands in fixtures/bad/dt30*.py and fixtures/good/dt30*.py.
"""

from __future__ import annotations

import pytest
from bench import Bench

bench = Bench("DT301", "DT305", "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
found = bench.found
fixed = bench.fixed


BAD = {
    "a method": ("DT301", "def f(p: torch.Tensor, v: torch.Tensor):\n    return p.float().matmul(v)\n"),
    "an input of addmm": (
        "DT301",
        "def f(b: torch.Tensor, x: torch.Tensor, w: torch.Tensor):\n    return torch.addmm(b, x.float(), w)\n",
    ),
    "noise by keyword": (
        "DT304",
        "def f(x: torch.Tensor):\n    return torch.add(x, torch.rand(size=x.shape))\n",
    ),
    "the size is taken apart first": (
        "DT304",
        "def f(x: torch.Tensor):\n    b, n = x.shape\n    pad = torch.zeros(b, 1).to(x)\n    pad = torch.zeros(b, 1)\n"
        "    return torch.cat((x, pad), 1)\n",
    ),
    "a helper of a library": (
        "DT304",
        "from diffusers.utils.torch_utils import randn_tensor\ndef f(x: torch.Tensor):\n    noise = randn_tensor(x.shape, device=x.device)\n    return x + noise\n",
    ),
    "known dtypes": (
        "DT305",
        "def f(index: torch.Tensor):\n    out = torch.zeros(4, 8, dtype=torch.bfloat16)\n"
        "    out[index] = torch.ones(2, 8)\n    return out\n",
    ),
}
GOOD = {
    "both are cast": ("DT301", "def f(p: torch.Tensor, v: torch.Tensor):\n    return p.float() @ v.float()\n"),
    "a half norm of float32 weights": (
        "DT301",
        "class N(nn.LayerNorm):\n    def forward(self, x):\n        return F.layer_norm(x, (8,), self.weight.float())\n",
    ),
    "a layer kept in float32": (
        "DT302",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.head = nn.Linear(8, 1)\n"
        "    def forward(self, x: torch.Tensor):\n        return self.head(x.float())\n",
    ),
    "cast unless the weights are quantized": (
        "DT302",
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.proj = nn.Linear(8, 8)\n"
        "    def forward(self, x: torch.Tensor):\n        if (dtype := self.proj.weight.dtype).is_floating_point:\n"
        "            x = x.to(dtype)\n        return self.proj(x)\n",
    ),
    "a grid made in the dtype of the weights": (
        "DT302",
        "class M(nn.Module):\n    def forward(self, size: tuple[int, int]):\n        dtype = self.embed.weight.dtype\n"
        "        y = torch.ones(size, dtype=dtype).cumsum(0) / size[0]\n        return self.embed(y)\n",
    ),
    "the nearest bin": (
        "DT303",
        "class M:\n    def bins(self, x: torch.Tensor):\n        centers = self.centers.to(x.device)\n"
        "        y = x.to(x.dtype)\n        return (y.unsqueeze(-1) - centers).abs().argmin(-1)\n",
    ),
    "a table of a model, which is cast with it": (
        "DT303",
        "class M:\n    def decode(self, x: torch.Tensor):\n        return x.to(x.dtype) / self.model.scale.to(x.device)\n",
    ),
    "both branches cast": (
        "DT303",
        "def f(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, flag: bool):\n    if flag:\n        w = y.to(x.dtype)\n"
        "    else:\n        w = z.to(x.dtype)\n    return x + w\n",
    ),
    "a lambda": ("DT304", "f = lambda x: x if x is not None else torch.zeros(3)\n"),
    "never meets it": ("DT304", "def f(x: torch.Tensor):\n    return torch.zeros(x.shape, device=x.device)\n"),
    "indices": (
        "DT304",
        "def f(ids: torch.Tensor):\n    return torch.cat([ids, torch.zeros(ids.shape[0], 1, device=ids.device)], 1)\n",
    ),
    "cast back at once": (
        "DT304",
        "def f(x: torch.Tensor):\n    y = x + torch.randn(x.shape, device=x.device)\n    y = y.to(x.dtype)\n    return y\n",
    ),
    "written into a slice": (
        "DT304",
        "def f(x: torch.Tensor, i: int):\n    x[:, i] = x[:, i] + 0.1 * torch.randn(x.shape[0], device=x.device)\n    return x\n",
    ),
    "before a decomposition that half does not have": (
        "DT304",
        "def f(h: torch.Tensor):\n    h = h + torch.eye(h.shape[0], device=h.device)\n    return torch.linalg.eigh(h)\n",
    ),
    "an order": (
        "DT304",
        "def f(w: torch.Tensor):\n    return torch.argsort(w * torch.rand(w.shape, device=w.device))\n",
    ),
    "compared": (
        "DT304",
        "def f(x: torch.Tensor):\n    ref = torch.linspace(0, 1, x.shape[-1], device=x.device)\n    return (x - ref).abs() < 1e-3\n",
    ),
    "one number in the end": (
        "DT304",
        "def f(s: torch.Tensor):\n    keep = 1 - torch.eye(s.shape[0], device=s.device)\n    return (s * keep).sum().item()\n",
    ),
    "a loss": (
        "DT304",
        "def f(s: torch.Tensor):\n    signs = 2 * torch.eye(s.shape[0], device=s.device) - torch.ones_like(s)\n"
        "    return -F.logsigmoid(signs * s).sum(-1).mean()\n",
    ),
    "copied into the weights": (
        "DT304",
        "def f(conv: nn.Conv2d):\n    one = torch.ones(conv.weight.shape[0], 1, 1, 1, device=conv.weight.device)\n"
        "    conv.weight.data.copy_(conv.weight + one)\n",
    ),
    "added in place": (
        "DT304",
        "def f(x: torch.Tensor, v: torch.Tensor):\n    frac = torch.rand(v.shape[0], 1, device=v.device)\n    x += frac * v\n    return x\n",
    ),
    "tokens that count": (
        "DT304",
        "def f(mask: torch.Tensor):\n    ones = torch.ones(mask.shape[0], 4, device=mask.device)\n    return torch.cat([mask, ones], 1)\n",
    ),
    "what is read from files": (
        "DT304",
        "def f(folder: str):\n    x = read(folder)\n    return torch.cat([x, torch.zeros(2, x.size(1))], 0)\n",
    ),
    "an index that a loop counts": (
        "DT305",
        "def f(rows: torch.Tensor):\n    out = torch.zeros(4, 8)\n    for idx in range(4):\n        out[idx] = rows[idx]\n"
        "    return out\n",
    ),
}


@pytest.mark.parametrize(("code", "text"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_told_once(code: str, text: str) -> None:
    assert [item.code for item in found(code, text)] == [code]


@pytest.mark.parametrize(("code", "text"), GOOD.values(), ids=GOOD)
def test_what_is_right_is_left_alone(code: str, text: str) -> None:
    assert found(code, text) == []


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
    assert item.message.endswith("and `einsum` raises if `k` is half")


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
