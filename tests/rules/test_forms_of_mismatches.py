"""Forms of mismatches and promotions, DT301 to DT306, as people write them: each is found, its near misses are not."""

from __future__ import annotations

import pytest
from bench import Bench, marked

bench = Bench("DT301", "DT306", "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
flagged = bench.flagged


BAD = {
    "cast back in the end, in a file that trains": (
        "DT301",
        """
        def contract(x: torch.Tensor, weight: torch.Tensor):
            dtype = x.dtype
            x = x.to(torch.float32)
            mixed = F.linear(x, weight)  # <-
            return mixed.to(dtype)

        def train(model, loss):
            loss.backward()
        """,
    ),
    "an input to try a half model with": (
        "DT302",
        """
        def detect(weights, half: bool, device):
            model = load(weights)
            if half:
                model.half()
            model(torch.zeros(1, 3, 64, 64, device=device))  # <-
            return model
        """,
    ),
    "one-hot labels into a layer": (
        "DT302",
        """
        class Labels(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Linear(10, 8)

            def forward(self, labels):
                hot = F.one_hot(labels, 10).float()
                return self.embed(hot)  # <-
        """,
    ),
    "a comparison as float32": (
        "DT303",
        """
        class Loss(nn.Module):
            def weigh(self, scores: torch.Tensor, labels: torch.Tensor):
                same = (labels[:, None] == labels[None]).float()  # <-
                return scores * same
        """,
    ),
    "a resized mask, cast by its dtype": (
        "DT303",
        """
        class Detector(nn.Module):
            def forward(self, image, mask):
                scores = self.net(image)
                mask = F.interpolate(mask.to(torch.float32), size=scores.shape[-2:])  # <-
                return mask * scores
        """,
    ),
    "two flags in one": (
        "DT303",
        """
        def choose(pairs: torch.Tensor, a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype):
            kept = ((a == b) | (a > 3)).float()  # <-
            return pairs.exp() * kept
        """,
    ),
    "what masks scores": (
        "DT303",
        """
        def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, use_fp16=False):
            scores = torch.matmul(q, k.transpose(-1, -2)) / 8
            bias = (1.0 - mask[:, None].float()) * -10000.0  # <-
            scores = scores + bias
            return torch.matmul(scores.softmax(-1), v)
        """,
    ),
    "a mask in steps, and a method": (
        "DT303",
        """
        class Block(nn.Module):
            def forward(self, x, mask):
                mask = mask.to(dtype=torch.float).view(2, -1)  # <-
                mask = 1 - mask
                return self.layer(x.mul(mask[:, None]))
        """,
    ),
    "a kernel that is moved, and a convolution": (
        "DT303",
        """
        class Blur:
            def __init__(self, kernel):
                self.kernel = kernel

            def update(self, output):
                x, y = output[0], output[1]
                kernel = self.kernel.expand(3, 1, -1, -1).to(device=x.device)  # <-
                self.total += F.conv2d(torch.cat([x, y]), kernel, groups=3).mean()
        """,
    ),
    "met inside a dictionary": (
        "DT304",
        """
        def compute(weights: torch.Tensor):
            cos = torch.mm(weights, weights.t())
            mask = torch.zeros(4, 4).to(weights.device)  # <-
            return {"loss": {"losses": torch.sum(cos * mask, dim=1), "reduction": "element"}}
        """,
    ),
    "written into one like it": (
        "DT304",
        """
        def normalise(x: torch.Tensor, safe: torch.Tensor):
            parts = x * torch.ones(4, 4).to(x.device)  # <-
            out = torch.zeros_like(parts)
            out[safe] = parts[safe]
            return out
        """,
    ),
    "sizes taken apart": (
        "DT304",
        """
        def jitter(x: torch.Tensor):
            return x + torch.randn(*x.shape)  # <-
        """,
    ),
    "a table that a method makes": (
        "DT304",
        """
        class Encoder(nn.Module):
            def positions(self, n, device):
                steps = torch.linspace(0, 1, n, device=device)
                return torch.stack([steps.sin(), steps.cos()], -1)

            def forward(self, x):
                return x + self.positions(x.shape[1], x.device)  # <-
        """,
    ),
    "a table that a function makes": (
        "DT304",
        """
        def causal(n, device=None):
            mask = torch.full((n, n), float("-inf"), device=device)
            return torch.triu(mask, diagonal=1)

        def attend(q: torch.Tensor, k: torch.Tensor):
            scores = q @ k.transpose(-1, -2)
            return (scores + causal(q.shape[1], device=q.device)).softmax(-1)  # <-
        """,
    ),
    "jitter of a router": (
        "DT304",
        """
        class Router(nn.Module):
            def jitter(self, x: torch.Tensor, eps: float):
                if self.noise is None:
                    self.noise = torch.distributions.uniform.Uniform(
                        torch.tensor(1.0 - eps, device=x.device), torch.tensor(1.0 + eps, device=x.device)
                    ).rsample
                return x * self.noise(x.shape)  # <-
        """,
    ),
    "noise of a distribution": (
        "DT304",
        """
        def jitter(x: torch.Tensor):
            return x + torch.distributions.Normal(0.0, 1.0).sample(x.shape)  # <-
        """,
    ),
    "a buffer of frames": (
        "DT304",
        """
        class Stack:
            def push(self, frame: torch.Tensor):
                if self.frames is None:
                    self.frames = torch.zeros((4,) + frame.shape, device=frame.device)  # <-
                self.frames[0].copy_(frame)
        """,
    ),
    "buffers by their keys": (
        "DT304",
        """
        class Pool:
            def call(self, batch):
                for key in self.keys:
                    if key not in self.buffers:
                        self.buffers[key] = torch.zeros(self.size, *batch[key].shape)  # <-
                    self.buffers[key][0] = batch[key]
        """,
    ),
    "noise into a layer of the module": (
        "DT304",
        """
        class Generator(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.project = nn.Linear(width, width)

            def sample(self, n: int):
                z = torch.randn(n, 8, device=self.project.weight.device)  # <-
                return self.project(z)
        """,
    ),
    "a table of a method into a layer": (
        "DT304",
        """
        class Encoder(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.project = nn.Linear(2, width)

            def grid(self, h, w, stride, device):
                y = torch.linspace(0, h - 1, h, device=device) * stride
                x = torch.linspace(0, w - 1, w).to(device) * stride
                return torch.cat((y.sin(), x.cos())), y

            def forward(self, x):
                n, c, h, w = x.shape
                table, rows = self.grid(h, w, self.stride, x.device)  # <-
                return self.project(table)
        """,
    ),
    "an early return": (
        "DT304",
        """
        def select(x: torch.Tensor, keep: torch.Tensor):
            if not keep.any():
                return torch.zeros(0, x.shape[1], device=x.device)  # <-
            return x[keep] * 2
        """,
    ),
    "the output of a layer under autocast": (
        "DT305",
        """
        class Hetero(nn.Module):
            def forward(self, x, kinds):
                out = x.new_empty(x.size(0), 8)
                for i in range(3):
                    mask = kinds == i
                    out[mask] = F.linear(x[mask], self.weight[i].T)  # <-
                return out
        """,
    ),
    "the output of a part of the module": (
        "DT305",
        """
        class Fusion(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix = nn.Conv1d(8, 8, 1)

            def forward(self, x, longer_idx):
                out = torch.zeros_like(x)
                out[longer_idx] = self.mix(x[longer_idx])  # <-
                return out
        """,
    ),
    "frequencies of a method into a Sequential": (
        "DT302",
        """
        class TimestepEmbedder(nn.Module):
            def __init__(self, width, size=256):
                super().__init__()
                self.mlp = nn.Sequential(nn.Linear(size, width), nn.SiLU(), nn.Linear(width, width))
                self.size = size

            @staticmethod
            def timestep_embedding(t, dim, period=10000):
                half = dim // 2
                freqs = torch.exp(-math.log(period) * torch.arange(half, dtype=torch.float32) / half).to(t.device)
                args = t[:, None].float() * freqs[None]
                return torch.cat([args.cos(), args.sin()], dim=-1)

            def forward(self, t):
                freqs = self.timestep_embedding(t, self.size)
                return self.mlp(freqs)  # <-
        """,
    ),
    "positions of a function into a module of the file": (
        "DT302",
        """
        def sinusoids(positions, dim):
            scale = torch.linspace(0, 1, dim, dtype=torch.float32, device=positions.device)
            return torch.sin(positions.to(torch.float32)[:, None] * scale)

        class Mlp(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.up = nn.Linear(dim, 4 * dim)
                self.down = nn.Linear(4 * dim, dim)

            def forward(self, x):
                return self.down(F.gelu(self.up(x)))

        class Decoder(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim
                self.position_mlp = Mlp(dim)

            def forward(self, hidden: torch.Tensor, positions):
                return hidden + self.position_mlp(sinusoids(positions, self.dim))  # <-
        """,
    ),
    "what a module of the file without weights gives": (
        "DT302",
        """
        def frequencies(steps: torch.Tensor, dim: int) -> torch.Tensor:
            scale = torch.arange(0, dim, dtype=torch.float32, device=steps.device)
            return torch.cos(steps[:, None].float() * scale)

        class Steps(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim

            def forward(self, steps: torch.Tensor) -> torch.Tensor:
                return frequencies(steps, self.dim)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps = Steps(64)
                self.embed = nn.Linear(64, 8)

            def forward(self, steps: torch.Tensor):
                return self.embed(self.steps(steps))  # <-
        """,
    ),
    "noise into a layer whose weight is computed anew": (
        "DT304",
        """
        class Vocoder(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.dim = dim
                self.head = nn.utils.weight_norm(nn.Conv1d(dim, 8, 7))

            def forward(self, mel: torch.Tensor):
                z = torch.randn(mel.size(0), self.dim, mel.size(2)).to(mel.device)  # <-
                return self.head(z)
        """,
    ),
    "noise into a Sequential of a module by its looks": (
        "DT304",
        """
        class Generator(NeuralModule):
            def __init__(self, dim):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(dim, 64), nn.ReLU())

            def forward(self, x):
                noise = torch.rand(len(x), 16, device=x.device)  # <-
                return self.net(noise)
        """,
    ),
    "rows that are gathered beside a tensor that is told the dtype": (
        "DT304",
        """
        def gather(output: torch.Tensor, parts: list, lengths: list):
            whole = torch.zeros(len(lengths), *output.shape[1:], dtype=output.dtype, device=output.device)
            for row, length in enumerate(lengths):
                rows = torch.empty(length, *output.shape[2:], device=output.device)  # <-
                for first, part in enumerate(parts):
                    rows[first :: len(parts)] = part[row]
                whole[row, mask(length)] = rows[:length]
            return whole
        """,
    ),
    "what the experts give, by a mask": (
        "DT305",
        """
        class Expert(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.up = nn.Linear(dim, 4 * dim)
                self.down = nn.Linear(4 * dim, dim)

            def forward(self, x):
                return self.down(F.relu(self.up(x)))

        class Experts(nn.Module):
            def __init__(self, dim, count):
                super().__init__()
                self.gate = nn.Linear(dim, count)
                self.experts = nn.ModuleList([Expert(dim) for _ in range(count)])
                self.shared = nn.Sequential(nn.Linear(dim, dim), nn.GELU())

            def forward(self, x):
                chosen = self.gate(x).argmax(-1)
                out = torch.zeros_like(x)
                for i, expert in enumerate(self.experts):
                    mask = chosen == i
                    out[mask] = expert(x[mask])  # <-
                return out

            def share(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.shared(x[mask])  # <-
                return out
        """,
    ),
    "offsets that begin with a floating zero": (
        "DT306",
        """
        def first_of(x, groups):
            _, inverse, counts = torch.unique(groups, return_inverse=True, return_counts=True)
            starts = counts.cumsum(0)
            starts = torch.cat((torch.zeros(1, device=x.device), starts[:-1]))  # <-
            first = inverse.argsort()[starts]
            order = inverse.argsort()
            later = order[starts]
            return x[first], later
        """,
    ),
}

GOOD = {
    "float32 in a file that trains": (
        "DT301",
        """
        def contract(x: torch.Tensor, weight: torch.Tensor):
            return F.linear(x.to(torch.float32), weight)

        def train(model, loss):
            loss.backward()
        """,
    ),
    "an input that follows the model": (
        "DT302",
        """
        def detect(weights, device):
            model = load(weights)
            model.half()
            model(torch.zeros(1, 3, 64, 64, device=device).half())
            model(torch.zeros(1, 3, 64, 64).to(device).type_as(next(model.parameters())))
        """,
    ),
    "tried before it is half": (
        "DT302",
        """
        def detect(weights, device):
            model = load(weights)
            model(torch.zeros(1, 3, 64, 64, device=device))
            model.half()
        """,
    ),
    "tried under autocast, which casts the input": (
        "DT302",
        """
        def detect(weights, device):
            model = load(weights)
            model.half()
            with torch.autocast("cuda"):
                model(torch.zeros(1, 3, 64, 64, device=device))
            return model

        def serve(weights, device):
            model = load(weights)
            model.half()
            context = torch.autocast("cuda")
            with torch.no_grad(), context:
                model(torch.zeros(1, 3, 64, 64, device=device))
            return model
        """,
    ),
    "one-hot labels in the dtype of the layer": (
        "DT302",
        """
        class Labels(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Linear(10, 8)

            def forward(self, labels):
                return self.embed(F.one_hot(labels, 10).to(self.embed.weight.dtype))
        """,
    ),
    "a mask in the dtype of what it meets": (
        "DT303",
        """
        def weigh(scores: torch.Tensor, labels: torch.Tensor):
            same = (labels[:, None] == labels[None]).to(scores.dtype)
            return scores * same
        """,
    ),
    "a function of which nothing says that it is for half": (
        "DT303",
        """
        def weigh(scores: torch.Tensor, mask: torch.Tensor):
            return scores * mask.float()
        """,
    ),
    "classes that are no modules": (
        "DT303",
        """
        class Pairs(torch.utils.data.Dataset):
            def hide(self, image: torch.Tensor, mask: torch.Tensor):
                return image * mask.float()

        class Walk(gym.Env):
            def reward(self, speed: torch.Tensor, done: torch.Tensor):
                return speed * (done == 0).float()
        """,
    ),
    "a dataset in a file that trains with autocast": (
        "DT303",
        """
        class Pairs(torch.utils.data.Dataset):
            def hide(self, image: torch.Tensor, mask: torch.Tensor):
                return image * mask.float()

        def train(model, x):
            with torch.autocast("cuda", dtype=torch.float16):
                return model(x)
        """,
    ),
    "float32 on purpose": (
        "DT303",
        """
        class Loss(nn.Module):
            def weigh(self, scores: torch.Tensor, labels: torch.Tensor):
                with torch.autocast("cuda", enabled=False):
                    return scores * (labels > 0).float()

            @torch.autocast("cuda", enabled=False)
            def blend(self, scores: torch.Tensor, labels: torch.Tensor):
                return scores * (labels > 0).float()
        """,
    ),
    "a mask that is counted": (
        "DT303",
        """
        def fraction(mask: torch.Tensor, scale: float, dtype: torch.dtype):
            return scale * mask.float().mean(1)
        """,
    ),
    "flags that are added": (
        "DT303",
        """
        def count(x: torch.Tensor, mask: torch.Tensor, dtype: torch.dtype):
            return x + mask.float()
        """,
    ),
    "masked scores, cast before they meet the values": (
        "DT303",
        """
        def attend(scores: torch.Tensor, v: torch.Tensor, mask: torch.Tensor):
            scores = scores + (1.0 - mask.float()) * -10000.0
            return torch.matmul(scores.softmax(-1).to(v.dtype), v)
        """,
    ),
    "a mask in a loss": (
        "DT303",
        """
        def loss(errors: torch.Tensor, mask: torch.Tensor, dtype: torch.dtype):
            mask_loss = errors * mask.float()
            return mask_loss.sum()
        """,
    ),
    "both are float32": (
        "DT303",
        """
        def weigh(scores: torch.Tensor, mask: torch.Tensor, dtype: torch.dtype):
            return scores.float() * mask.float()
        """,
    ),
    "cast back behind it": (
        "DT303",
        """
        def weigh(scores: torch.Tensor, mask: torch.Tensor):
            return (scores * mask.float()).to(scores.dtype)
        """,
    ),
    "a kernel that is cast with the move": (
        "DT303",
        """
        class Blur:
            def update(self, x: torch.Tensor):
                kernel = self.kernel.to(device=x.device, dtype=x.dtype)
                return F.conv2d(x, kernel)
        """,
    ),
    "a table that is told a dtype": (
        "DT304",
        """
        def positions(n, device, dtype=None):
            return torch.linspace(0, 1, n, device=device, dtype=dtype)

        def forward(x: torch.Tensor):
            return x + positions(x.shape[1], x.device, x.dtype)
        """,
    ),
    "a table that is cast": (
        "DT304",
        """
        def positions(n, device):
            return torch.linspace(0, 1, n, device=device)

        def forward(x: torch.Tensor):
            return x + positions(x.shape[1], x.device).to(x.dtype)
        """,
    ),
    "indices that a function makes": (
        "DT304",
        """
        def positions(n, device):
            return torch.arange(n, device=device)

        def forward(x: torch.Tensor):
            return x + positions(x.shape[1], x.device)
        """,
    ),
    "a function of two files by one name": (
        "DT304",
        """
        def forward(x: torch.Tensor, table):
            return x + table.positions(x.shape[1], x.device)

        def positions(n, device):
            return torch.linspace(0, 1, n, device=device)
        """,
    ),
    "a distribution of tensors": (
        "DT304",
        """
        def jitter(x: torch.Tensor, mean: torch.Tensor):
            return x + torch.distributions.Normal(mean, 1.0).sample(x.shape)
        """,
    ),
    "noise in the dtype of the layer": (
        "DT304",
        """
        class Generator(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.project = nn.Linear(width, width)

            def sample(self, n: int):
                weight = self.project.weight
                return self.project(torch.randn(n, 8, device=weight.device, dtype=weight.dtype))
        """,
    ),
    "a function that is handed a tensor": (
        "DT304",
        """
        def between(low, high, device):
            return low + torch.linspace(0, 1, 8, device=device) * (high - low.sin())

        def forward(x: torch.Tensor):
            return x * between(x, 2 * x, x.device)
        """,
    ),
    "an early return of what the other path is not": (
        "DT304",
        """
        def weights(x: torch.Tensor, mask: torch.Tensor):
            if mask is None:
                return torch.ones(x.shape[0], device=x.device)
            return mask.float()

        def boxes(masks: torch.Tensor):
            if masks.numel() == 0:
                return torch.zeros(*masks.shape[:-2], 4, device=masks.device)
            return masks.max(-1)[0]

        def total_loss(x: torch.Tensor):
            if x.numel() == 0:
                return torch.zeros(1, device=x.device)
            return x.exp()
        """,
    ),
    "a buffer of what is no tensor of that shape": (
        "DT304",
        """
        class Stack:
            def push(self, frame: torch.Tensor, other: torch.Tensor):
                self.frames = torch.zeros(4, *frame.shape)
                self.frames[0].copy_(other)
        """,
    ),
    "cast before it is written": (
        "DT305",
        """
        class Hetero(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(8, 8)

            def forward(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.proj(x[mask]).to(out.dtype)
                return out
        """,
    ),
    "a norm is float32 under autocast": (
        "DT305",
        """
        class Hetero(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = nn.LayerNorm(8)

            def forward(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.norm(x[mask])
                return out
        """,
    ),
    "a method that may do anything": (
        "DT305",
        """
        class Hetero(nn.Module):
            def keep(self, x):
                return x

            def forward(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.keep(x[mask])
                return out
        """,
    ),
    "a variance of a table in float32": (
        "DT303",
        """
        class Diffusion(nn.Module):
            def p_sample(self, x, t):
                mean, log_variance = self.p_mean_variance(x, t)
                nonzero_mask = (1 - (t == 0).float()).reshape(len(x), 1)
                return mean + nonzero_mask * (0.5 * log_variance).exp() * torch.randn_like(x)
        """,
    ),
    "a masked mean over tokens": (
        "DT303",
        """
        class Encoder(nn.Module):
            def embed(self, hidden, mask):
                total = torch.sum(hidden * mask.unsqueeze(-1).float(), dim=1)
                return total / mask.sum(1, keepdim=True).float()
        """,
    ),
    "an activation keeps the dtype": (
        "DT305",
        """
        class TopK(nn.Module):
            def forward(self, x):
                top = torch.topk(x, k=self.k, dim=-1)
                values = self.postact_fn(top.values)
                result = torch.zeros_like(x)
                result.scatter_(-1, top.indices, values)
                return result
        """,
    ),
    "what need not have weights": (
        "DT305",
        """
        class Base(Backbone):
            def forward(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.flip(x[mask])
                return out

        class Augment:
            def forward(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.warp(x[mask])
                return out

        class Normed(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))

            def forward(self, x, mask):
                out = torch.zeros_like(x)
                out[mask] = self.mix(x[mask])
                return out
        """,
    ),
    "a layer that autocast leaves alone": (
        "DT305",
        """
        class Hetero(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(8, 8)

            def forward(self, x, mask):
                with torch.autocast("cuda", enabled=False):
                    out = torch.zeros(len(x), 8, device=x.device)
                    out[mask] = self.proj(x[mask].float())
                return out
        """,
    ),
    "layers and caches that are cast with their module": (
        "DT304",
        """
        class Block(nn.Module):
            def __init__(self, dim, dtype=None):
                super().__init__()
                self.up = nn.Linear(dim, dim, dtype=dtype)
                self.router = nn.Linear(dim, 4)
                self.down = nn.Linear(dim, dim).to(dtype)
                self.cache_k = torch.zeros((2, 8, dim)).cuda()

            def forward(self, xq: torch.Tensor, xk: torch.Tensor, start: int):
                self.cache_k = self.cache_k.to(xq)
                self.cache_k[:2, start : start + 8] = xk
                return xq @ self.cache_k[:2].transpose(-1, -2)

            def grow(self, k: torch.Tensor):
                self.k_cache = torch.zeros(2, 8, k.shape[-1]).type_as(k)
                self.past_keys = torch.empty(0)
        """,
    ),
    "a slice casts": (
        "DT305",
        """
        class Hetero(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(8, 8)

            def forward(self, x):
                out = torch.zeros_like(x)
                out[:4] = self.proj(x[:4])
                return out
        """,
    ),
    "frequencies that are cast, or whose layer stays float32": (
        "DT302",
        """
        def sinusoids(t, dim):
            scale = torch.arange(dim, dtype=torch.float32, device=t.device)
            return torch.sin(t.float()[:, None] * scale)

        def like(t, dim):
            scale = torch.arange(dim, dtype=torch.float32, device=t.device)
            return torch.sin(t.float()[:, None] * scale).to(t.dtype)

        def told(t, dim, dtype=torch.float32):
            scale = torch.arange(dim, dtype=torch.float32, device=t.device)
            return torch.sin(t.float()[:, None] * scale).to(dtype)

        def both(t, dim):
            scale = torch.arange(dim, dtype=torch.float32, device=t.device)
            return t, torch.sin(t.float()[:, None] * scale)

        class Net(nn.Module):
            _keep_in_fp32_modules = ["kept"]

            def __init__(self):
                super().__init__()
                self.mlp = nn.Sequential(nn.Linear(8, 8), nn.SiLU())
                self.kept = nn.Linear(8, 8)
                self.wide = nn.Linear(8, 8)
                self.wide.float()
                self.plain = nn.Linear(8, 8, dtype=torch.float32)
                self.norm = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))
                self.table = nn.Parameter(self.mlp(sinusoids(torch.arange(4), 8)))

            def forward(self, x: torch.Tensor, t):
                a = self.mlp(sinusoids(t, 8).to(x.dtype)) + self.kept(sinusoids(t, 8)) + self.wide(sinusoids(t, 8))
                b = self.mlp(like(t, 8)) + self.mlp(told(t, 8, x.dtype)) + self.mlp(both(t, 8)[1])
                return a + b + self.norm(sinusoids(t, 8)) + self.plain(sinusoids(t, 8))
        """,
    ),
    "frequencies into a module that casts, and by hand in float32": (
        "DT302",
        """
        def sinusoids(t, dim):
            scale = torch.arange(dim, dtype=torch.float32, device=t.device)
            return torch.sin(t.float()[:, None] * scale)

        def widened(t):
            return t.float()

        class Mlp(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.Linear(8, 8)

            def forward(self, x):
                x = x.to(self.up.weight.dtype)
                return self.up(x)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.mlp = Mlp()
                self.gate = nn.Linear(8, 8)

            def forward(self, x, t):
                return self.mlp(sinusoids(t, 8)) + self.gate(widened(x))
        """,
    ),
    "a model of which parts alone are half": (
        "DT302",
        """
        from fp16_util import convert_module_to_f16

        def timestep_embedding(t, dim):
            freqs = torch.exp(torch.arange(dim, dtype=torch.float32, device=t.device))
            return torch.cos(t[:, None].float() * freqs)

        class UNet(nn.Module):
            def __init__(self):
                super().__init__()
                self.time_embed = nn.Sequential(nn.Linear(8, 8), nn.SiLU())

            def convert_to_fp16(self):
                self.blocks.apply(convert_module_to_f16)

            def forward(self, x, t):
                return self.blocks(x.half(), self.time_embed(timestep_embedding(t, 8)))
        """,
    ),
    "a trial run while the module is made": (
        "DT304",
        """
        class Q(nn.Module):
            def __init__(self, shape):
                super().__init__()
                self.conv = nn.Sequential(nn.Conv2d(shape[0], 32, 8), nn.ReLU())
                with torch.no_grad():
                    flat = self.conv(torch.zeros(1, *shape)).flatten(1).shape[1]
                self.head = nn.Linear(self._size_of(shape) + flat, 4)

            def _size_of(self, shape):
                out = self.conv(torch.zeros(1, *shape))
                return int(out.numel())
        """,
    ),
    "noise that is told, cast, or goes where no weights are": (
        "DT304",
        """
        class Net(Base):
            def __init__(self, dim):
                super().__init__()
                self.table = nn.Sequential(nn.Embedding(8, dim), nn.Linear(dim, dim))
                self.act = nn.Sequential(nn.ReLU(), nn.Dropout())
                self.wide = nn.utils.weight_norm(nn.Linear(dim, dim, dtype=torch.float32))
                self.up = nn.utils.weight_norm(nn.Linear(dim, dim))
                self.stack = nn.Sequential(*layers(dim))

            def forward(self, x: torch.Tensor):
                a = self.up(torch.randn(4, 8, device=x.device, dtype=x.dtype))
                b = self.up(torch.randn(4, 8, device=x.device).to(x))
                c = self.act(torch.randn(4, 8, device=x.device)), self.wide(torch.randn(4, 8, device=x.device))
                return a + b, c, self.stack(torch.randn(4, 8, device=x.device))
        """,
    ),
    "sums, masks and other sizes beside a tensor that is told the dtype": (
        "DT304",
        """
        def collect(x: torch.Tensor, y: torch.Tensor, parts: list):
            out = torch.zeros(8, *x.shape[1:], dtype=x.dtype, device=x.device)
            grown = torch.zeros(8, *x.shape[1:], device=x.device)
            mask = torch.zeros(x.shape, device=x.device)
            scores = torch.empty(x.shape[0], device=x.device)
            other = torch.empty(8, *y.shape[1:], device=y.device)
            for i, part in enumerate(parts):
                out[i] = part
                grown[i] += part.float()
                mask[i] = 1
                scores[i] = float(i)
                other[i] = i
            return out, grown, mask, scores, other
        """,
    ),
    "offsets that are integers, cast or no index": (
        "DT306",
        """
        def first_of(x, counts, like, table):
            told = torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0)))
            a = x[told]
            cast = torch.cat((torch.zeros(1), counts.cumsum(0)))
            cast = cast.long()
            b = x[cast]
            like_them = torch.cat((torch.zeros(1), counts.cumsum(0))).type_as(counts)
            c = x[like_them]
            made = torch.cat((counts.new_zeros(1), counts.cumsum(0)))
            d = x[made]
            full = torch.cat((torch.full((1,), 0), counts.cumsum(0)))
            e = x[full]
            order = torch.cat((torch.zeros(1), counts)).sort()[1]
            f = x[order]
            best = torch.cat((torch.zeros(1), counts)).max(0)[1]
            g = x[best]
            mask = torch.cat((torch.zeros(1), counts)) > 2
            h = x[mask]
            times = torch.cat((torch.zeros(1), counts.cumsum(0)))
            i = times[x], x[times.long()]
            start = np.concatenate((np.zeros(1), counts))
            j = table[start]
            return a, b, c, d, e, f, g, h, i, j
        """,
    ),
    "experts that are cast, normed or added, and whose layers see to it": (
        "DT305",
        """
        class Normed(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.up = nn.Linear(dim, dim)
                self.norm = nn.LayerNorm(dim)

            def forward(self, x):
                return self.norm(self.up(x))

        class Added(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.up = nn.Linear(dim, dim)

            def forward(self, x):
                return x + self.up(x)

        class Wide(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.up = nn.Linear(dim, dim)

            def forward(self, x):
                with torch.autocast("cuda", enabled=False):
                    return self.up(x.float())

        class Experts(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.normed = nn.ModuleList([Normed(dim) for _ in range(4)])
                self.added, self.wide = Added(dim), Wide(dim)
                self.sure = Wide(dim)
                self.seq = nn.Sequential(nn.Linear(dim, dim), nn.Softmax(-1))
                self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.ReLU())

            def forward(self, x, mask, helpers):
                out = torch.zeros_like(x)
                for expert in self.normed:
                    out[mask] = expert(x[mask])
                for helper in helpers:
                    out[mask] = helper(x[mask])
                out[mask] = self.added(x[mask])
                out[mask] = self.sure(x[mask])
                out[mask] = self.seq(x[mask])
                out[mask] = self.mlp(x[mask]).to(out.dtype)
                out[:4] = self.mlp(x[:4])
                return out
        """,
    ),
}


def test_the_dtype_of_what_is_computed_is_asked_for_in_brackets() -> None:
    (found,) = bench.found(
        "DT303",
        """
        class Loss(nn.Module):
            def weigh(self, logp: torch.Tensor, labels: torch.Tensor):
                return -logp * (labels > 0).float()
        """,
    )
    assert found.help is not None
    assert "`.to((-logp).dtype)`" in found.help


@pytest.mark.parametrize(("code", "text"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_told_where_it_is(code: str, text: str) -> None:
    assert flagged(code, text) == marked(bench.source(text))


@pytest.mark.parametrize(("code", "text"), GOOD.values(), ids=GOOD)
def test_what_is_right_is_left_alone(code: str, text: str) -> None:
    assert flagged(code, text) == []
