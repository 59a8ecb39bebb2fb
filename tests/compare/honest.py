"""Small models whose runs differ in nothing but precision: a GPT, a ResNet and a diffusion UNet."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["MODELS", "train"]


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        barred = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        scores = scores.masked_fill(barred, torch.finfo(scores.dtype).min)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, width: int = 32, layers: int = 3) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(64, width), nn.Embedding(16, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 64, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


class UNet(nn.Module):
    """With a time embedding, group norms, attention in the middle, and skips that are concatenated."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2 * width))
        self.enter, self.down = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm, self.middle = nn.GroupNorm(4, 2 * width), nn.Conv2d(2 * width, 2 * width, 3, 1, 1)
        self.q, self.k, self.v = (nn.Linear(2 * width, 2 * width) for _ in range(3))
        self.up, self.leave = nn.Conv2d(2 * width, width, 3, 1, 1), nn.Conv2d(2 * width, 3, 3, 1, 1)
        self.register_buffer("frequencies", 10_000 ** (-torch.arange(width // 2) / (width // 2)))

    def forward(self, x: Tensor, steps: Tensor) -> Tensor:
        angles = steps.float()[:, None] * self.frequencies.float()
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1).to(self.time[0].weight.dtype))
        high = self.enter(x)
        low = self.down(F.silu(high)) + time[:, :, None, None]
        low = low + self.middle(F.silu(self.norm(low)))
        flat = low.flatten(2).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(*(layer(flat)[:, None] for layer in (self.q, self.k, self.v)))
        low = low + mixed[:, 0].transpose(1, 2).unflatten(2, low.shape[2:])
        up = self.up(F.interpolate(low, scale_factor=2.0, mode="nearest"))
        return self.leave(F.silu(torch.cat([up, high], 1)))


def gpt() -> tuple[nn.Module, Callable[[torch.dtype], Tensor]]:
    model, ids = GPT(), torch.randint(0, 64, (2, 16))
    return model, lambda dtype: F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def resnet() -> tuple[nn.Module, Callable[[torch.dtype], Tensor]]:
    parts = (Residual(3, 16, 2), Residual(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    model, images, labels = nn.Sequential(*parts), torch.randn(4, 3, 16, 16), torch.randint(0, 10, (4,))
    return model, lambda dtype: F.cross_entropy(model(images.to(dtype)), labels)


def unet() -> tuple[nn.Module, Callable[[torch.dtype], Tensor]]:
    model, images, noise = UNet(), torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    steps = torch.tensor([10, 700])
    noisy = 0.6 * images + 0.8 * noise
    return model, lambda dtype: F.mse_loss(model(noisy.to(dtype), steps).float(), noise)


MODELS = {"gpt": gpt, "resnet": resnet, "unet": unet}


def train(name: str, dtype: torch.dtype = torch.float32, steps: int = 2, optimizer: type = torch.optim.AdamW) -> None:
    """Train a model whose weights are of `dtype`."""
    model, loss = MODELS[name]()
    model.to(dtype)
    optimizer = optimizer(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(dtype).backward()
        optimizer.step()
