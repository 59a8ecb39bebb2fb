"""Range and precision, DT401 to DT417: code as people write it, what is said of it, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from bench import Bench

from dtlint import Applicability
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

bench = Bench("DT401", "DT499", "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
RULES, found = bench.rules, bench.found
fixed = bench.fixed


BAD = {
    "DT401": {
        "a processor of attention prepares nothing": """
            class AttnProcessor2_0:
                def __call__(self, scores: torch.Tensor, mask: torch.Tensor):
                    return scores.masked_fill(mask, -1e9).softmax(-1)
        """,
        "torch.masked_fill": """
            def attend(scores, mask):
                return torch.masked_fill(scores, mask == 0, -1e9).softmax(-1)
        """,
        "in place, by a constant of the module": """
            NEG_INF = -1e30
            class Attention(nn.Module):
                def forward(self, scores, mask):
                    scores.masked_fill_(~mask, NEG_INF)
                    return scores
        """,
        "a default of a parameter": """
            def masked_softmax(x: torch.Tensor, mask: torch.Tensor, fill: float = -1e32):
                return x.masked_fill(~mask, fill).softmax(-1)
        """,
        "an attribute of the class": """
            class Attention(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.mask_value = -1e6
                def forward(self, scores, mask):
                    return scores.masked_fill(mask, self.mask_value)
        """,
        "added to the scores": """
            def extend(scores, attention_mask):
                return scores + (1.0 - attention_mask) * -1e9
        """,
        "written by index": """
            def mask_out(logits: torch.Tensor, mask: torch.Tensor):
                logits[~mask] = -1e10
                return logits
        """,
        "torch.where": """
            def keep(scores: torch.Tensor, mask: torch.Tensor):
                return torch.where(mask, scores, -1e9)
        """,
        "a large number everywhere, as graph attention has it": """
            def attend(e: torch.Tensor, adj: torch.Tensor):
                zero_vec = -9e15 * torch.ones_like(e)
                return torch.where(adj > 0, e, zero_vec).softmax(1)
        """,
        "a limit of another dtype": """
            def attend(scores: torch.Tensor, mask: torch.Tensor):
                return scores.masked_fill(mask, torch.finfo(torch.float32).min)
        """,
        "a mask made in the dtype of the scores": """
            def causal(scores: torch.Tensor, n: int):
                return torch.full((n, n), torch.finfo(torch.float32).min, dtype=scores.dtype).triu(1)
        """,
        "a buffer that is cast with its module": """
            class Attention(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.register_buffer("masked_bias", torch.tensor(-1e9))
        """,
        "somebody's function": """
            from util import replace_masked_values
            def best(scores, mask):
                return replace_masked_values(scores, mask, -1e7).max(-1)
        """,
    },
    "DT402": {
        "arithmetic": "x = torch.zeros(3, dtype=torch.float16)\ny = x + 1e6\n",
        "clamp": "x = torch.zeros(3).half()\ny = x.clamp(max=1e9)\n",
        "a cast of a number": "limit = torch.tensor(1e5).half()\n",
        "by a subscript": "x = torch.zeros(4, dtype=torch.float16)\nx[0] = 70000\n",
        "by a slice": "x = torch.zeros(4).half()\nx[1:] = -1e5\n",
        "a sum in place": "x = torch.zeros(4).half()\nx.add_(1e5)\n",
        "torch.sub": "x = torch.zeros(4).half()\ny = torch.sub(x, 1e5)\n",
        "a new tensor": "x = torch.zeros(4).half()\ny = x.new_full((3,), 1e5)\n",
        "a new tensor, below zero": "x = torch.zeros(4).half()\nmask = x.new_full((3,), -1e9)\n",
        "an unsigned integer": "flag = torch.tensor([-1], dtype=torch.uint8)\n",
    },
    "DT403": {
        "a norm": """
            def unit(x):
                return x / (x.norm(dim=-1, keepdim=True) + 1e-12)
        """,
        "clamp by a default": """
            def log(t, eps=1e-20):
                return torch.log(t.clamp(min=eps))
        """,
        "a constant of the module": """
            EPS = 1e-10
            def entropy(p: torch.Tensor):
                return -(p * (p + EPS).log()).sum(-1)
        """,
        "shown a tensor by its logarithm": """
            def cost(prob):
                return -(prob + 1e-8).log()
        """,
        "by the name of the divisor": """
            def standardize(x: torch.Tensor):
                std = x.std() + 1e-8
                return (x - x.mean()) / std
        """,
        "an upper bound that is 1": """
            def nll(p: torch.Tensor):
                return -torch.log(1 - p.clamp(max=1 - 1e-8))
        """,
    },
    "DT404": {
        "rewards": """
            def normalize(rewards: torch.Tensor):
                return (rewards - rewards.mean()) / rewards.std()
        """,
        "by names": """
            def whiten(x: torch.Tensor):
                mean, std = x.mean(0), None
                mean = x.mean(0)
                std = x.std(0)
                return (x - mean) / std
        """,
        "a range": """
            def to_unit(depth: torch.Tensor):
                return (depth - depth.min()) / (depth.max() - depth.min())
        """,
        "a variance": """
            def whiten(x: torch.Tensor):
                return (x - x.mean(-1, keepdim=True)) / x.var(-1, keepdim=True).sqrt()
        """,
        "no annotation, but a keyword of tensors": """
            def whiten(x):
                return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
        """,
        "what a forward is given": """
            class Whiten(nn.Module):
                def forward(self, x):
                    return (x - x.mean()) / x.std()
        """,
        "a norm by hand": """
            class Norm(nn.Module):
                def forward(self, x):
                    mean = x.mean(-1, keepdim=True)
                    std = x.std(-1, keepdim=True)
                    return self.g * (x - mean) / std + self.b
        """,
        "scaled first": """
            def to_signed(depth: torch.Tensor):
                low, high = depth.min(), depth.max()
                low = torch.amin(depth, dim=1, keepdim=True)
                high = torch.amax(depth, dim=1, keepdim=True)
                return 2.0 * (depth - low) / (high - low) - 1.0
        """,
    },
    "DT405": {
        "a mask times infinity": """
            def bias(mask: torch.Tensor):
                return (1.0 - mask) * float("-inf")
        """,
        "the logarithm of a mask": """
            def masked_log_softmax(vector: torch.Tensor, mask: torch.Tensor):
                return F.log_softmax(vector + torch.log(mask.float()), dim=1)
        """,
        "a causal mask with its diagonal": """
            def causal(n: int):
                return torch.triu(torch.full((n, n), float("-inf")))
        """,
        "plus infinity": """
            def attend(scores: torch.Tensor, mask: torch.Tensor):
                scores = scores.masked_fill(mask, float("inf"))
                return scores.softmax(-1)
        """,
    },
    "DT406": {
        "a sum": "total = torch.ones(4096).half().sum()\n",
        "statistics of a batch": """
            class SyncNorm(nn.Module):
                def forward(self, x: torch.Tensor):
                    mean = x.mean(dim=[0, 2, 3])
                    meansqr = torch.mean(x * x, dim=[0, 2, 3])
                    return meansqr - mean * mean
        """,
        "boxes": """
            from torchvision.ops import batched_nms
            def keep(boxes, scores, classes):
                return batched_nms(boxes, scores, classes, 0.5)
        """,
    },
    "DT407": {
        "a half target": """
            def step(unet, latents: torch.Tensor, t):
                latents = latents.half()
                noise = torch.randn_like(latents)
                return F.mse_loss(unet(latents + noise, t), noise)
        """,
        "a dtype by the configuration": """
            def main(unet, batch, args):
                weight_dtype = torch.float32
                if args.mixed_precision == "fp16":
                    weight_dtype = torch.float16
                prediction = unet(batch["x"].to(dtype=weight_dtype))
                return F.l1_loss(prediction, batch["y"])
        """,
        "the other loss is computed in float32": """
            def step(a, b, c, d, dtype):
                prior = F.mse_loss(a.float(), b.float())
                return prior + F.mse_loss(c, d)
        """,
    },
    "DT408": {
        "by hand": """
            class RMSNorm(nn.Module):
                def forward(self, x: torch.Tensor):
                    return x / torch.sqrt(torch.mean(x ** 2, dim=-1, keepdim=True) + 1e-6)
        """,
        "channels first": """
            class LayerNorm2d(nn.Module):
                def forward(self, x: torch.Tensor):
                    u = x.mean(1, keepdim=True)
                    s = (x - u).pow(2).mean(1, keepdim=True)
                    return (x - u) / torch.sqrt(s + self.eps)
        """,
        "by F.normalize": """
            class RMSNorm(nn.Module):
                def forward(self, x):
                    return F.normalize(x, dim=-1) * self.scale * self.gamma
        """,
    },
    "DT409": {
        "a function": "w = F.softmax(torch.randn(2, 2).half(), dim=-1)\n",
        "a method": "w = torch.randn(2, 2).bfloat16().softmax(-1)\n",
        "where a dtype is handed in": """
            def attend(scores: torch.Tensor, dtype):
                return torch.softmax(scores, -1).to(dtype)
        """,
    },
    "DT410": {
        "a caller's dtype": """
            def sincos_embed(n, bands, dtype=torch.float32, device=None):
                return torch.arange(n, device=device, dtype=dtype)[:, None] * bands
        """,
        "the dtype of a buffer": """
            class Rotary(nn.Module):
                def forward(self, n):
                    t = torch.arange(n, device=self.inv_freq.device).type_as(self.inv_freq)
                    return torch.einsum("i,j->ij", t, self.inv_freq)
        """,
        "cast behind": """
            def rope(x: torch.Tensor, inv_freq):
                t = torch.arange(x.shape[1], device=x.device)
                return torch.outer(t.to(x.dtype), inv_freq)
        """,
        "half itself": """
            def positions(n: int):
                return torch.arange(n, dtype=torch.bfloat16)
        """,
    },
    "DT411": {
        "noise in half": """
            def step(scheduler, vae, batch, t):
                latents = vae.encode(batch["x"].to(torch.float16)).sample()
                noise = torch.randn_like(latents)
                return scheduler.add_noise(latents, noise, t)
        """,
        "what is left of the schedule": """
            class Scheduler:
                def add(self, x: torch.Tensor, noise, t):
                    alphas_cumprod = self.alphas_cumprod.to(device=x.device, dtype=x.dtype)
                    return x + (1 - alphas_cumprod[t]) ** 0.5 * noise
        """,
        "Fourier features": """
            class Features(nn.Module):
                def forward(self, x: torch.Tensor):
                    freqs = torch.arange(8, dtype=x.dtype, device=x.device)
                    phase = x[..., None] * torch.pow(2.0, freqs)
                    return torch.cat([torch.sin(phase), torch.cos(phase)], -1)
        """,
    },
    "DT412": {
        "a total": """
            total = torch.zeros((), dtype=torch.float16)
            for loss in torch.rand(9):
                total += loss
        """,
        "a total of one element": """
            total = torch.zeros(1, dtype=torch.bfloat16)
            for loss in torch.rand(9):
                total += loss
        """,
        "by add_": """
            total = torch.tensor(0.0, dtype=torch.bfloat16)
            for loss in torch.rand(9):
                total.add_(loss)
        """,
    },
    "DT413": {
        "a copy": """
            from copy import deepcopy
            model = nn.Linear(2, 2)
            ema = deepcopy(model).half()
            for a, b in zip(ema.parameters(), model.parameters()):
                a.data.mul_(0.999).add_(b.data, alpha=0.001)
        """,
        "torch's own": """
            from torch.optim.swa_utils import AveragedModel
            model = nn.Linear(2, 2)
            averaged = AveragedModel(model.bfloat16())
            averaged.update_parameters(model)
        """,
        "an attribute": """
            from copy import deepcopy
            class Trainer:
                def __init__(self, model: nn.Module):
                    self.ema_model = deepcopy(model).to(dtype=torch.bfloat16)
                def update(self, decay):
                    for a, b in zip(self.ema_model.parameters(), self.model.parameters()):
                        a.lerp_(b, 1 - decay)
        """,
    },
    "DT414": {
        "layers made in half": """
            layer = nn.Linear(4, 4, dtype=torch.float16)
            optimizer = torch.optim.Adam(layer.parameters())
        """,
        "a tensor": """
            w = torch.zeros(4, dtype=torch.bfloat16, requires_grad=True)
            optimizer = torch.optim.SGD([w], lr=1e-4)
        """,
        "a pretrained model": """
            from transformers import AutoModelForCausalLM
            model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
        """,
    },
    "DT415": {
        kind: f"""
            class Own(torch.optim.Optimizer):
                def step(self):
                    for group in self.param_groups:
                        for p in group["params"]:
                            state = self.state[p]
                            {line}
        """
        for kind, line in {
            "of the parameter": 'state["exp_avg"] = torch.zeros_like(p)',
            "of the gradient": 'state["sum"] = torch.full_like(p.grad, 0.1)',
            "kept in its layout": 'self.state[p]["m"] = torch.zeros_like(p.data, memory_format=torch.preserve_format)',
        }.items()
    },
    "DT416": {
        "bytes": """
            def depth(image):
                return image[..., 0] * 256 + image[..., 1]
        """,
        "a shift": """
            def depth(image):
                return (image[:, :, 1] << 8) + image[:, :, 2]
        """,
        "a difference of images": """
            a = torch.zeros(4, dtype=torch.uint8)
            b = torch.zeros(4, dtype=torch.uint8)
            change = a - b
        """,
        "a number out of range": "ids = torch.zeros(4).to(torch.uint8) * 1000\n",
    },
    "DT417": {
        "by a name": """
            def entropy(logits: torch.Tensor):
                p = F.softmax(logits, dim=-1)
                return -(p * p.log()).sum(-1)
        """,
        "a sigmoid": """
            def gate(x: torch.Tensor):
                return torch.log(torch.sigmoid(x))
        """,
        "a sum of exponentials": """
            def lse(x: torch.Tensor):
                return torch.log(torch.exp(x).sum(dim=1))
        """,
        "softplus": """
            def loss(x: torch.Tensor):
                return torch.log(1 + torch.exp(x))
        """,
        "a softmax by hand": """
            def weights(scores: torch.Tensor):
                e = torch.exp(scores)
                return e / e.sum(-1, keepdim=True)
        """,
    },
}

GOOD = {
    "DT401": {
        "a product that was cast": """
            def f(q, k, mask):
                s = (q @ k.transpose(-1, -2)).float()
                return s.masked_fill(mask == 0, -1e9).softmax(-1).type_as(q)
        """,
        "distances that were cast": """
            def f(d, valid):
                d = d.float()
                d[~valid] = 1e10
                return d.min(-1).values
        """,
        "a mask that was cast": "def f(s, mask):\n    return s.float() - 1e6 * (1 - mask[:, None, None].float())\n",
        "coordinates in float32": """
            def f(masks: torch.Tensor):
                x = torch.arange(masks.shape[-1], dtype=torch.float)
                x_mask = masks * x.unsqueeze(0)
                return x_mask.masked_fill(~masks.bool(), 1e8).flatten(1).min(-1)[0]
        """,
        "in a class that prepares sound": """
            class ClipFeatureExtractor:
                def pad(self, s: torch.Tensor, mask: torch.Tensor):
                    return s.masked_fill(mask, -1e9)
        """,
        "a number that float16 has": "def f(s, mask):\n    return s.masked_fill(mask, -1e4)\n",
        "infinity": "def f(s, mask):\n    return s.masked_fill(mask, float('-inf'))\n",
        "the limit of its dtype": "def f(s, mask):\n    return s.masked_fill(mask, torch.finfo(s.dtype).min)\n",
        "scores in float32": "def f(s: torch.Tensor, mask):\n    return s.float().masked_fill(mask, -1e9)\n",
        "a program in float32": """
            model = nn.Linear(2, 2)
            for x, mask in []:
                model(x).masked_fill(mask, -1e9).sum().backward()
        """,
        "a branch for half": """
            def f(s, mask):
                if s.dtype == torch.float16:
                    return s.masked_fill(mask, -65000.0)
                return s.masked_fill(mask, -1e30)
        """,
        "ids": "def f(input_ids, mask):\n    return input_ids.masked_fill(mask, 100000)\n",
        "NumPy": "import numpy as np\ndef f(s, mask):\n    return np.ma.masked_fill(s, mask) + np.ones_like(s) * -1e9\n",
    },
    "DT402": {
        "bfloat16": "x = torch.zeros(3, dtype=torch.bfloat16)\ny = x + 1e6\n",
        "in range": "x = torch.zeros(3, dtype=torch.float16).clamp(max=6e4)\n",
        "written in range": "x = torch.zeros(3).half()\nx[0] = 65504\nx.add_(6e4)\n",
        "rounded into the range": "x = torch.zeros(3).half()\nx[0] = 65510\n",
        "written into bfloat16": "x = torch.zeros(3, dtype=torch.bfloat16)\nx[0] = 70000\nx.add_(1e5)\n",
        "infinity, as it is meant": "x = torch.zeros(3).half()\nx[0] = float('inf')\n",
        "half on one path": """
            def f(x, half):
                y = x.half() if half else x.float()
                y[0] = 70000
        """,
        "a new tensor of another dtype": """
            x = torch.zeros(3).half()
            y = x.new_full((3,), 1e5, dtype=torch.float32)
        """,
        "a mask, of which DT401 tells": "x = torch.zeros(3).half()\nx[x < 0] = -1e9\n",
        "a weight of any dtype": "def f(m: nn.Linear):\n    return m.weight + 1e6\n",
    },
    "DT403": {
        "large enough": "def f(x):\n    return x / (x.norm() + 1e-6)\n",
        "in float32": "def f(x):\n    return x / (x.float().norm(dim=-1) + 1e-12)\n",
        "nothing is divided": "def f(x: torch.Tensor):\n    return x.clamp(min=1e-12)\n",
        "an optimizer": """
            class Own(torch.optim.Optimizer):
                def step(self):
                    for p in self.param_groups[0]["params"]:
                        p.data.sub_(p.grad / (p.grad.norm() + 1e-12))
        """,
        "numbers": "def rate(n, eps=1e-12):\n    return 1 / (n + eps)\n",
        "a spectrum": "def mel(x):\n    return torch.log(torch.stft(x, 512).abs().clamp(min=1e-10))\n",
    },
    "DT404": {
        "an epsilon": "def f(r: torch.Tensor):\n    return (r - r.mean()) / (r.std() + 1e-6)\n",
        "clamped": "def f(r: torch.Tensor):\n    return (r - r.mean()) / r.std().clamp(min=1e-6)\n",
        "constants of a data set": "def f(x: torch.Tensor, mean, std):\n    return (x - mean) / std\n",
        "of a frame or an array": "def f(x):\n    return (x - x.mean()) / x.std()\n",
        "of a method that is no forward": """
            class Scaler:
                def forward(self, x):
                    return (x - x.mean()) / x.std()
        """,
        "a product that stands for itself": """
            def f(x, gain):
                x = x * gain
                x = x * gain
                return x * gain / x.std(-1, keepdim=True)
        """,
        "a test of its bounds": """
            def crop(image: torch.Tensor):
                data = image.abs()
                low, high = None, None
                high = torch.max(data)
                low = torch.min(data)
                if high == low:
                    return image
                return (data - low) / (high - low) * 255
        """,
        "a norm by hand with epsilon": """
            class Norm(nn.Module):
                def forward(self, x):
                    std = x.std(-1, keepdim=True)
                    return self.g * (x - x.mean(-1, keepdim=True)) / (std + self.eps) + self.b
        """,
        "a test": "def f(r: torch.Tensor):\n    std = r.std()\n    if std == 0:\n        return r\n    return (r - r.mean()) / std\n",
    },
    "DT405": {
        "masked_fill": "def f(s, mask):\n    return s.masked_fill(mask, float('-inf')).softmax(-1)\n",
        "above the diagonal": "def f(n):\n    return torch.triu(torch.full((n, n), float('-inf')), diagonal=1)\n",
        "a small number added": "def f(v, mask):\n    return v + (mask + 1e-6).log()\n",
        "a logarithm of probabilities": "def f(v, probs):\n    return v + probs.log()\n",
    },
    "DT406": {
        "in float32": "total = torch.ones(9).half().sum(dtype=torch.float32)\n",
        "unknown": "def f(x):\n    return x.sum()\n",
        "cast before": """
            class SyncNorm(nn.Module):
                def forward(self, x: torch.Tensor):
                    x = x.float()
                    mean = x.mean(dim=0)
                    return torch.mean(x * x, dim=0) - mean * mean
        """,
        "weights of any dtype": "def f(m: nn.Linear):\n    return m.weight.sum()\n",
    },
    "DT407": {
        "cast": "def f(m, x):\n    return F.mse_loss(m(x.half()).float(), x.float())\n",
        "in float32": "def f(m: nn.Module, x, y):\n    return F.mse_loss(m(x), y)\n",
        "under autocast": """
            def f(m, x, y):
                with torch.autocast("cuda", dtype=torch.float16):
                    return F.mse_loss(m(x.half()), y)
        """,
    },
    "DT408": {
        "a part of a norm whose caller may cast": """
            from library import BaseNorm
            class GroupedNorm(BaseNorm):
                def _norm(self, x: torch.Tensor):
                    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        """,
        "cast": """
            class RMSNorm(nn.Module):
                def _norm(self, x):
                    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
                def forward(self, x):
                    return self._norm(x.float()).type_as(x)
        """,
        "torch's own": "def f(x, w):\n    return F.rms_norm(x, w.shape, w)\n",
        "a direction": "def f(x, y):\n    return F.normalize(x, dim=-1) @ F.normalize(y, dim=-1).T\n",
        "a loss": "def f(a: torch.Tensor, b: torch.Tensor):\n    return (a - b).pow(2).mean()\n",
    },
    "DT409": {
        "told": "w = F.softmax(torch.randn(2).half(), dim=-1, dtype=torch.float32)\n",
        "cast": "w = torch.randn(2).half().float().softmax(-1)\n",
        "in float32": "def f(s: torch.Tensor):\n    return s.softmax(-1)\n",
    },
    "DT410": {
        "a map of features": """
            def sine_positions(height, width, device, dtype):
                y = torch.arange(1, height + 1, dtype=dtype, device=device)
                return (y / height).sin()
        """,
        "a grid of pixels": """
            def grid_pos(h, w, dtype=None, device=None):
                x = torch.arange(w, dtype=dtype, device=device)
                y = (h - 1) - torch.arange(h, dtype=dtype, device=device)
                return torch.stack([x.repeat(h), y.unsqueeze(-1).repeat(1, w).view(-1)], dim=-1)
        """,
        "indices": "def f(idx, pos):\n    return torch.arange(len(idx), dtype=idx.dtype) + pos\n",
        "in float32": "def rope(x):\n    return torch.arange(x.shape[1], dtype=torch.float32, device=x.device)\n",
        "few": "def rope(x):\n    return torch.arange(64, dtype=x.dtype)\n",
        "no positions": "def f(x):\n    return torch.arange(x.shape[1], dtype=x.dtype)\n",
        "a dtype of their own": "def rope(n, freqs_dtype=torch.float32):\n    return torch.arange(n, dtype=freqs_dtype)\n",
    },
    "DT411": {
        "cast before": "def f(s, x, n, t):\n    x = x.half()\n    return s.add_noise(x.float(), n, t)\n",
        "in float32": "def f(s, x, n, t):\n    return s.add_noise(x, n, t)\n",
        "the table as it is": "def f(x, alphas_cumprod, t):\n    return (1 - alphas_cumprod[t]) ** 0.5 * x\n",
    },
    "DT412": {
        "in float32": "t = torch.zeros(())\nfor x in torch.rand(9):\n    t += x\n",
        "a sum of branches": """
            def f(layers, x: torch.Tensor):
                x = x.half()
                for layer in layers:
                    x += layer(x)
                return x
        """,
        "numbers": "t = 0.0\nfor x in torch.rand(9).half():\n    t += x.item()\n",
    },
    "DT413": {
        "in float32": """
            from copy import deepcopy
            ema = deepcopy(nn.Linear(2, 2)).float()
            for p in ema.parameters():
                p.data.mul_(0.999)
        """,
        "to be saved": """
            from copy import deepcopy
            class Trainer:
                def update(self, decay):
                    for p in self.ema.parameters():
                        p.data.mul_(decay)
                def save(self):
                    torch.save({"ema": deepcopy(self.ema).half()}, "last.pt")
        """,
        "another word": "from copy import deepcopy\nschema_model = deepcopy(nn.Linear(2, 2)).half()\nschema_model.update()\n",
    },
    "DT414": {
        "in float32": "m = nn.Linear(2, 2)\no = torch.optim.Adam(m.parameters())\n",
        "cast up": "m = nn.Linear(2, 2, dtype=torch.float16)\nm.float()\no = torch.optim.Adam(m.parameters())\n",
        "adapters": """
            from peft import get_peft_model
            from transformers import AutoModelForCausalLM
            model = AutoModelForCausalLM.from_pretrained("gpt2", torch_dtype=torch.bfloat16)
            adapted = get_peft_model(model, None)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
        """,
    },
    "DT415": {
        "told": """
            class Own(torch.optim.Optimizer):
                def step(self):
                    for p in self.param_groups[0]["params"]:
                        self.state[p]["m"] = torch.zeros_like(p, dtype=torch.float32)
        """,
        "no optimizer": "def f(state, p):\n    state['m'] = torch.zeros_like(p)\n",
        "no state": """
            class Own(torch.optim.Optimizer):
                def step(self, grads, p):
                    grads["m"] = torch.zeros_like(p)
        """,
    },
    "DT416": {
        "cast": "def f(image):\n    wide = image.to(torch.int32)\n    return wide[..., 0] * 256 + wide[..., 1]\n",
        "bytes": "def f(data):\n    return data[0] * 256 + data[1]\n",
        "a float": "x = torch.zeros(3, dtype=torch.uint8) * 256.0\n",
        "a scale": "def f(pos, size):\n    return pos[:, 0] * 256 + size[0]\n",
    },
    "DT417": {
        "chosen for small values alone": """
            def softplus(g):
                return torch.where(g > 20.0, g, torch.log(1.0 + torch.exp(g)))
        """,
        "an epsilon": "def f(x: torch.Tensor):\n    return torch.log(torch.sigmoid(x) + 1e-6)\n",
        "the maximum subtracted": "def f(x: torch.Tensor):\n    e = torch.exp(x - x.amax(-1, keepdim=True))\n    return e / e.sum(-1, keepdim=True)\n",
        "a window": "def f(x: torch.Tensor):\n    g = torch.exp(-(x ** 2))\n    return g / g.sum()\n",
        "a stable softplus": "def f(x: torch.Tensor):\n    return torch.log1p(torch.exp(-x.abs()))\n",
        "NumPy": "import numpy as np\ndef f(x):\n    return np.log(np.exp(x).sum())\n",
    },
}


def cases(kinds: dict[str, dict[str, str]]) -> list[object]:
    return [
        pytest.param(code, text, id=f"{code}-{name}") for code, named in kinds.items() for name, text in named.items()
    ]


@pytest.mark.parametrize(("code", "text"), cases(BAD))
def test_bad_code_is_found_once(code: str, text: str) -> None:
    assert [diagnostic.code for diagnostic in found(code, text)] == [code]


@pytest.mark.parametrize(("code", "text"), cases(GOOD))
def test_good_code_is_left_alone(code: str, text: str) -> None:
    assert found(code, text) == []


def test_every_rule_has_cases_of_both_kinds() -> None:
    assert {code for code, named in BAD.items() if len(named) >= 3} == set(RULES)
    assert {code for code, named in GOOD.items() if len(named) >= 3} == set(RULES)


def test_a_number_is_reported_where_it_is_written_once() -> None:
    (diagnostic,) = found(
        "DT403", "EPS = 1e-12\ndef f(x: torch.Tensor):\n    return x / (x.sum() + EPS) + 1 / (x.std() + EPS)\n"
    )
    assert diagnostic.location.span.line == 5
    assert [note.location.span.line for note in diagnostic.notes] == [7]


def test_masks_get_the_limit_of_their_dtype() -> None:
    assert fixed("DT401", "def f(s, mask):\n    return s.masked_fill(mask, value=-1e9)  # kept\n") == (
        "def f(s, mask):\n    return s.masked_fill(mask, value=torch.finfo(s.dtype).min)  # kept\n"
    )
    assert fixed("DT401", "def f(logits: torch.Tensor, m):\n    logits[~m] = -1e9\n") == (
        "def f(logits: torch.Tensor, m):\n    logits[~m] = torch.finfo(logits.dtype).min\n"
    )


def test_fixes_follow_the_spelling_of_the_file() -> None:
    text = "import torch as th\nfrom torch.nn import functional as fn\n\ndef f(s: th.Tensor):\n    return th.log(fn.softmax(s, dim=-1))\n"
    source = Source.from_bytes(text.encode(), "example.py")
    result = fix_source(source, [RULES["DT417"]], Settings(), Applicability.SAFE)
    assert result.source.text.endswith("    return fn.log_softmax(s, dim=-1)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.softmax(-1).log()", "x.log_softmax(-1)"),
        ("torch.log(x.softmax(dim=-1))", "x.log_softmax(dim=-1)"),
        ("x.sigmoid().log()", "F.logsigmoid(x)"),
        ("torch.log(F.softmax((x + 1), -1))", "F.log_softmax((x + 1), -1)"),
    ],
)
def test_a_logarithm_joins_the_function_it_is_taken_of(before: str, after: str) -> None:
    assert (
        fixed("DT417", f"def f(x: torch.Tensor):\n    return {before}\n")
        == f"def f(x: torch.Tensor):\n    return {after}\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m(x).softmax(-1).log()", "m(x).log_softmax(-1)"),
        ("m(x).sigmoid().log()", "F.logsigmoid(m(x))"),
        ("(m(x).softmax(-1)).log()", "m(x).log_softmax(-1)"),
        ("(x @ w).softmax(-1).log()", "(x @ w).log_softmax(-1)"),
        ("(x @ w).sigmoid().log()", "F.logsigmoid(x @ w)"),
        ("2 * (-x).sigmoid().log() + 1", "2 * F.logsigmoid(-x) + 1"),
        ("(x if len(x) else w).sigmoid().log()", "F.logsigmoid(x if len(x) else w)"),
        ("torch.log(x[:, 0].softmax(0))", "x[:, 0].log_softmax(0)"),
        ("torch.log(x[:, 0].sigmoid())", "F.logsigmoid(x[:, 0])"),
        ("torch.log(input=x.T.softmax(-1))", "x.T.log_softmax(-1)"),
        ("torch.log(torch.sigmoid(input=x @ w))", "F.logsigmoid(input=x @ w)"),
        ("torch.log(\n    m(x)\n    .softmax(-1)\n)", "(m(x)\n    .log_softmax(-1))"),
        ("torch.log(\n    (x @ w)  # scores\n    .softmax(-1)\n)", "((x @ w)  # scores\n    .log_softmax(-1))"),
        ("(\n    m(x)\n    .sigmoid()\n    .log()\n)", "(\n    F.logsigmoid(m(x))\n)"),
        ("torch.log((\n    x  # seen\n    @ w\n).sigmoid())", "F.logsigmoid(x  # seen\n    @ w)"),
        ("torch.log(F.softmax(\n    x,  # seen\n    dim=-1,\n))", "F.log_softmax(\n    x,  # seen\n    dim=-1,\n)"),
    ],
)
def test_what_the_inner_function_is_taken_of_is_kept(before: str, after: str) -> None:
    text = fixed("DT417", f"def f(x, w, m):\n    return {before}\n")
    assert text == f"def f(x, w, m):\n    return {after}\n"
    torch = pytest.importorskip("torch")
    assert torch.allclose(returned(text), returned(f"def f(x, w, m):\n    return {before}\n"), atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "torch.log(\n    # from the logits\n    m(x).softmax(-1)\n)",
        "torch.log(m(x).softmax(-1), out=w)",
        "torch.log(torch.softmax(x, -1, torch.float64))",
        "torch.log(torch.softmax(x, -1, out=w))",
        "torch.log(nn.Softmax(-1)(x))",
    ],
)
def test_a_logarithm_stays_where_something_would_be_lost(text: str) -> None:
    assert fixed("DT417", f"def f(x, w, m):\n    return {text}\n") == f"def f(x, w, m):\n    return {text}\n"


def test_advice_to_call_a_method_on_an_operation_brackets_it() -> None:
    (ratio,) = found(
        "DT417", "def kl(logp, old_logp):\n    return torch.exp(logp - old_logp) - 1 - (logp - old_logp)\n"
    )
    assert "`(logp - old_logp).clamp(-10, 10)`" in ratio.help


def test_a_layer_keeps_its_arguments_from_the_fix() -> None:
    text = "def f(x, w, m):\n    act = nn.Softmax(0)\n    return act(x).log()\n"
    assert [finding.location.span.line for finding in found("DT417", text)] == [7]
    assert fixed("DT417", text) == text


def returned(text: str) -> Any:
    """The tensor that the function of a program returns."""
    import torch

    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(text, scope)
    given = torch.arange(9.0).reshape(3, 3)
    return scope["f"](given / 9, given.T / 7, torch.cos)


def test_losses_are_cast_where_they_are_computed() -> None:
    text = "def f(m, x):\n    x = x.half()\n    return F.mse_loss(m(x), x + 1, reduction='sum')\n"
    assert fixed("DT407", text).endswith("    return F.mse_loss(m(x).float(), (x + 1).float(), reduction='sum')\n")


def test_the_figures_hold() -> None:
    torch = pytest.importorskip("torch")
    half = torch.tensor([0.0, 1.0], dtype=torch.float16)
    with pytest.raises(RuntimeError, match="without overflow"):
        half.masked_fill(half > 0, -1e9)
    assert ((1 - half) * -1e9).tolist()[0] == -torch.inf
    assert (half + 2.98e-8)[0] == 0
    assert (half + 2.99e-8)[0] > 0
    assert torch.tensor([1.0]).clamp(max=1 - 1e-8).item() == 1
    assert torch.arange(2048, dtype=torch.bfloat16).unique().numel() == 641
    assert torch.tensor([0.99915], dtype=torch.bfloat16).item() == 1
    assert torch.log(torch.softmax(torch.tensor([0.0, 105.0]), 0))[0] == -torch.inf
    assert (torch.tensor([3], dtype=torch.uint8) * 256).item() == 0


def test_a_count_of_channels_is_said_to_spoil_frequencies() -> None:
    (item,) = found(
        "DT410", "def rope(dim, dtype):\n    return 10000 ** (torch.arange(0, dim, 2, dtype=dtype) / dim)\n"
    )
    assert "2 radians" in item.message
    torch = pytest.importorskip("torch")
    frequency = 10000.0 ** -(2 / 128)
    assert abs(float(torch.tensor(frequency).bfloat16()) / frequency - 1) <= 0.002


def test_where_of_two_numbers_is_float32_until_it_is_cast() -> None:
    (item,) = found("DT401", "def f(mask, s):\n    return s + torch.where(mask > 0, 0.0, -1e10).to(s.dtype)\n")
    assert item.message.endswith("it is -inf once it is cast to float16, or added to a float16 tensor in place")
