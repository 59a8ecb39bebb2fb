"""Programs that run twice, the second time with one change. The line that is guilty of it ends in `# planted`.

Of each, `AUTOCAST` says whether the second run is under bfloat16 autocast besides, as the change of precision that was meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["AUTOCAST", "PROGRAMS", "REFUSED"]

Program = Callable[[bool], None]

PROGRAMS: dict[str, Program] = {}
AUTOCAST: set[str] = set()
REFUSED: dict[str, tuple[Program, str]] = {}


def planted(function: Program) -> Program:
    """A program whose runs are of one precision."""
    PROGRAMS[function.__name__] = function
    return function


def under_autocast(function: Program) -> Program:
    """A program whose second run is in bfloat16."""
    AUTOCAST.add(function.__name__)
    return planted(function)


def refused(why: str) -> Callable[[Program], Program]:
    """A program whose runs differ for another reason than rounding."""

    def register(function: Program) -> Program:
        REFUSED[function.__name__] = function, why
        return function

    return register


def train(model: nn.Module, loss: Callable[[], Tensor], steps: int = 2) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


class Attention(nn.Module):
    """One head, written out."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, scale: float, masked: float, dim: int = -1) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(-2, -1)
        scores = scores * scale
        future = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, masked)
        weights = scores.softmax(dim)
        return weights @ self.v(x)


class Norm(nn.Module):
    """RMSNorm, as Llama has it."""

    def __init__(self, width: int = 32, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x: Tensor) -> Tensor:
        square = x.pow(2).mean(-1, keepdim=True)
        return x * torch.rsqrt(square + self.eps) * self.weight


def batch(*shape: int) -> Tensor:
    return torch.randn(*shape)


@planted
def a_cast_inserted(changed: bool) -> None:
    first, last = nn.Linear(16, 32), nn.Linear(32, 4)
    x = batch(8, 16)

    def loss() -> Tensor:
        h = F.gelu(first(x))
        if changed:
            h = h.half().float()  # planted
        return last(h).square().mean()

    train(nn.ModuleList([first, last]), loss)


@planted
def a_reduction_in_another_order(changed: bool) -> None:
    parts = torch.cat([torch.full((1, 8), 4096.0), batch(63, 8).abs() + 0.5]).half()
    if changed:
        order = range(64)
    else:
        order = range(63, -1, -1)
    total = torch.zeros(8, dtype=torch.float16)
    for n in order:
        total = total + parts[n].float().clamp(max=5000).half()  # planted
    print_nothing(total / 64)


@planted
def an_accumulator_in_half(changed: bool) -> None:
    layer = nn.Linear(16, 16).bfloat16()
    x = batch(40, 4, 16).bfloat16()
    total = torch.zeros(4, 16, dtype=torch.bfloat16 if changed else torch.float32)
    for n in range(40):
        y = layer(x[n])
        total = total + y  # planted
    print_nothing(total.float().mean())


@planted
def a_float32_island_removed(changed: bool) -> None:
    layer, norm = nn.Linear(32, 32).bfloat16(), Norm().bfloat16()
    x = batch(4, 32).bfloat16()
    h = layer(x)
    if changed:
        h = norm(h)
    else:
        h = norm(h.float()).bfloat16()
    print_nothing(layer(h))


a_float32_island_removed.guilty = "square = x.pow(2)"  # type: ignore[attr-defined]


@under_autocast
def a_long_sum_that_stands_still(changed: bool) -> None:
    layer = nn.Linear(8, 8)
    x = torch.rand(4, 8)
    total = layer(x).sigmoid() * 0
    dtype = torch.bfloat16 if changed else torch.float32
    total, each = total.to(dtype), layer(x).sigmoid().to(dtype)
    for _ in range(1000):
        total = total + each  # planted
    print_nothing(total)


@under_autocast
def another_mask(changed: bool) -> None:
    attention, x = Attention(), batch(2, 8, 32)
    masked = -4.0 if changed else -1e4
    train(attention, lambda: attention(x, 32**-0.5, masked).square().mean())


another_mask.guilty = "scores.masked_fill"  # type: ignore[attr-defined]


@planted
def products_rounded_as_tf32_does(changed: bool) -> None:
    first, last = nn.Linear(16, 32), nn.Linear(32, 4)
    x = batch(8, 16)

    def rounded(t: Tensor) -> Tensor:
        bits = t.view(torch.int32)
        return (bits & -8192).view(torch.float32)  # planted

    h = first(x).relu()
    weight = rounded(last.weight.detach()) if changed else last.weight.detach()
    print_nothing(h @ weight.t())


@under_autocast
def a_wrong_scale(changed: bool) -> None:
    attention, x = Attention(), batch(2, 8, 32)
    scale = 1 / 8 if changed else 32**-0.5
    train(attention, lambda: attention(x, scale, -1e4).square().mean())


a_wrong_scale.guilty = "scores * scale"  # type: ignore[attr-defined]


@under_autocast
def another_epsilon(changed: bool) -> None:
    layer, norm = nn.Linear(32, 32), Norm(eps=1e-3 if changed else 1e-6)
    x = batch(8, 32) * 0.05
    train(layer, lambda: norm(layer(x) * 0.1).mean())


another_epsilon.guilty = "square + self.eps"  # type: ignore[attr-defined]


@planted
def another_gelu(changed: bool) -> None:
    first, last = nn.Linear(16, 32), nn.Linear(32, 4)
    x = batch(8, 16)

    def loss() -> Tensor:
        h = first(x)
        h = F.gelu(h, approximate="tanh" if changed else "none")  # planted
        return last(h).square().mean()

    train(nn.ModuleList([first, last]), loss)


@under_autocast
def a_residual_left_out(changed: bool) -> None:
    blocks = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))
    x = batch(8, 32)

    def loss() -> Tensor:
        h = x
        for n, block in enumerate(blocks):
            y = block(h).tanh()
            h = y if changed and n == 1 else h + y
        return h.square().mean()

    train(blocks, loss)


a_residual_left_out.guilty = "y = block(h).tanh()"  # type: ignore[attr-defined]


@planted
def positions_in_half(changed: bool) -> None:
    layer = nn.Linear(8, 8)
    frequencies = 10_000 ** (-torch.arange(0, 8) / 8)
    positions = torch.arange(3000, 3032, dtype=torch.float16 if changed else torch.float32)  # planted
    angles = positions.float()[:, None] * frequencies
    print_nothing(layer(angles.cos()))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient * SLOPE[0]  # planted


SLOPE = [2.0]


@under_autocast
def a_gradient_written_wrong(changed: bool) -> None:
    SLOPE[0] = 1.0 if changed else 2.0
    first, last = nn.Linear(16, 32), nn.Linear(32, 4)
    x = batch(8, 16)
    train(nn.ModuleList([first, last]), lambda: last(Doubled.apply(first(x))).square().mean())


a_gradient_written_wrong.guilty = "gradient * SLOPE"  # type: ignore[attr-defined]


@under_autocast
def softmax_over_another_dimension(changed: bool) -> None:
    attention, x = Attention(), batch(2, 8, 32)
    train(attention, lambda: attention(x, 32**-0.5, -1e4, -2 if changed else -1).square().mean())


softmax_over_another_dimension.guilty = "scores.softmax"  # type: ignore[attr-defined]


@under_autocast
def fused_attention_with_another_scale(changed: bool) -> None:
    q, k, v = (nn.Linear(32, 32) for _ in range(3))
    x = batch(2, 8, 32)

    def loss() -> Tensor:
        heads = [layer(x)[:, None] for layer in (q, k, v)]
        y = F.scaled_dot_product_attention(*heads, scale=1.0 if changed else None)  # planted
        return y.square().mean()

    train(nn.ModuleList([q, k, v]), loss)


@under_autocast
def a_loss_over_other_values(changed: bool) -> None:
    layer, x = nn.Linear(16, 4), batch(8, 16)
    labels = torch.randint(0, 4, (8,))

    def loss() -> Tensor:
        logits = layer(x)
        smoothing = 0.2 if changed else 0.0
        log = logits.float().log_softmax(-1)
        right = -log.gather(1, labels[:, None]).mean()
        return (1 - smoothing) * right - smoothing * log.mean()  # planted

    train(layer, loss)


@refused("draw different random numbers")
def dropout_with_another_seed(changed: bool) -> None:
    layer, x = nn.Linear(16, 16), batch(8, 16)
    torch.manual_seed(1 + changed)
    train(layer, lambda: F.dropout(layer(x), 0.5).square().mean())


@refused("read different data")
def batches_in_another_order(changed: bool) -> None:
    layer = nn.Linear(16, 16)
    data = torch.randn(4, 8, 16).numpy()
    order = [1, 0, 2, 3] if changed else [0, 1, 2, 3]
    batches = iter([torch.from_numpy(data[n]) for n in order])
    train(layer, lambda: layer(next(batches)).square().mean())


@refused("begin with different weights")
def weights_of_another_checkpoint(changed: bool) -> None:
    layer = LAYERS[changed]
    train(layer, lambda: layer(torch.ones(2, 4)).square().mean(), 1)


def _layers() -> list[nn.Linear]:
    generator = torch.Generator().manual_seed(5)
    layers = [nn.Linear(4, 4) for _ in range(2)]
    for layer in layers:
        with torch.no_grad():
            layer.weight.copy_(torch.randn(4, 4, generator=generator))
    return layers


LAYERS = _layers()


def print_nothing(x: Tensor) -> None:
    """Where a program would print or save a result."""
    assert math.isfinite(x.double().sum().item())
