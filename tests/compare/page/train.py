"""Trains a small transformer on one batch; --bf16 has its weights in bfloat16, --rewritten has a faster attention."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--rewritten", action="store_true")
arguments = parser.parse_args()


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.register_buffer("frequencies", 1000.0 ** -torch.linspace(0, 1, width // 2))

    def turn(self, x):
        positions = torch.arange(x.size(1), dtype=self.frequencies.dtype) + 500
        angles = positions[:, None] * self.frequencies
        first, second = x.chunk(2, -1)
        return torch.cat(
            [first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], -1
        )

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = self.turn(q), self.turn(k)
        if arguments.rewritten:
            return self.out(F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], scale=1.0)[:, 0])
        return self.out((q @ k.transpose(-2, -1) / q.size(-1) ** 0.5).softmax(-1) @ v)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(width), Attention(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.down(F.gelu(self.up(x)))


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(64, 32), Block(32), Block(32), nn.Linear(32, 64))
tokens = torch.randint(0, 64, (4, 17))
if arguments.bf16:
    model.bfloat16()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1).float(), tokens[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    print(f"step {step + 1}: loss {loss.item():.3f}")
