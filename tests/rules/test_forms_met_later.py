"""More forms of the kinds of bugs that repositories elsewhere write, and right code like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench, cases, marked

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, einsum, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT107": (
        """
        def generate(model, ids, dtype):
            with torch.autocast(model.device, dtype):  # <-
                return model.generate(ids)
        """,
        """
        def encode(x: Tensor, net):
            with torch.autocast(device_type=x.device, dtype=torch.bfloat16):  # <-
                return net(x)
        """,
        """
        def variant(settings):
            precision = torch.float16 if settings.precision == "auto" else torch.dtype(settings.precision)  # <-
            return precision
        """,
    ),
    "DT113": (
        """
        class Packed(Base):
            def __init__(self, width, dtype=None, device=None):
                super().__init__(dtype=torch.float16, device=device)  # <-
        """,
        """
        def odds(chosen, rejected):
            chosen = chosen.to(dtype=torch.float32)
            rejected = rejected.to(dtype=torch.float32)
            ratio = chosen.log() - rejected.log()
            return ratio.to(dtype=torch.bfloat16)  # <-
        """,
        """
        def pick(accelerator, state):
            weight_dtype = torch.float32
            if "bf16" in state.config and state.config["bf16"]["enabled"]:
                weight_dtype = torch.float16  # <-
            return weight_dtype
        """,
    ),
    "DT120": (
        """
        def sort(p, halves, floats):
            if p.dtype == torch.float16 or torch.bfloat16:  # <-
                halves.append(p)
            else:
                floats.append(p)
        """,
        """
        def export(model):
            if getattr(model.config, "torch_dtype", None) == "bfloat16":  # <-
                return model.to(torch.bfloat16)
            return model.half()
        """,
        """
        def wide(model):
            return model.config.torch_dtype == "float32"  # <-
        """,
    ),
    "DT203": (
        """
        class Trainer:
            def update(self, index, limit):
                unet = self.unets[index]
                nn.utils.clip_grad_norm_(unet.parameters(), limit)  # <-
                scaler = getattr(self, f"scaler{index}")
                scaler.step(getattr(self, f"optimizer{index}"))
                scaler.update()
        """,
        """
        class Loop:
            def step(self, optimizer):
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # <-
                self.scaler.step(optimizer)
                self.scaler.update()
        """,
    ),
    "DT205": (
        """
        from torch.amp import GradScaler

        def prepare(trainer):
            return GradScaler("cuda", enabled=True) if trainer.use_fp16 or trainer.use_bf16 else None  # <-
        """,
        """
        def prepare(args):
            if args.fp16 or args.bf16:
                return torch.amp.GradScaler("cuda")  # <-
        """,
    ),
    "DT212": (
        """
        class Project(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                gathered = torch.empty(x.shape, dtype=x.dtype, device=x.device)
                gather(gathered, x)
                return grad.matmul(weight), grad.t().matmul(gathered)  # <-

        def train(model, batch):
            with torch.autocast("cuda"):
                return model(batch)
        """,
    ),
    "DT218": (
        """
        class Head(nn.Module):
            def forward(self, z):
                narrow = torch.get_autocast_gpu_dtype() == torch.float16  # <-
                return self.project(z.float() if narrow else z)
        """,
        """
        def kernel_for(q):
            if torch.float16 == torch.get_autocast_dtype("cuda"):  # <-
                return slow(q)
            return fast(q)
        """,
    ),
    "DT304": (
        """
        class Attention(nn.Module):
            def forward(self, q, k, v):
                out = torch.zeros(q.shape[0], q.shape[1], v.shape[2], device=q.device)  # <-
                for i in range(0, q.shape[1], 64):
                    end = i + 64
                    attn = einsum("b i d, b j d -> b i j", q[:, i:end], k).softmax(dim=-1)
                    out[:, i:end] = einsum("b i j, b j d -> b i d", attn, v)
                return self.to_out(out)
        """,
        """
        def in_slices(q: Tensor, k: Tensor, v: Tensor, dtype):
            out = torch.empty(q.shape[0], v.shape[1], device=q.device)  # <-
            for i in range(4):
                scores = q[i] @ k.transpose(0, 1)
                out[i] = scores @ v
            return out
        """,
    ),
    "DT311": (
        """
        class Drop(nn.Module):
            def forward(self, x: Tensor):
                r = torch.randn(3, 3, device=x.device, dtype=x.dtype)
                gram = torch.matmul(r, r.t())
                inverse = gram.cholesky().to(torch.float32).cholesky_inverse().to(x.dtype)  # <-
                return x @ inverse
        """,
        """
        def whiten(x: Tensor, cov: Tensor):
            return x @ torch.linalg.inv(cov).float().to(x.dtype)  # <-
        """,
    ),
    "DT313": (
        """
        def to_numpy(tensor):
            if isinstance(tensor, np.ndarray):
                return tensor
            if isinstance(tensor, torch.Tensor):
                return tensor.detach().cpu().numpy()  # <-
            return np.array(tensor)
        """,
        """
        def tensor2np(x):
            return x.cpu().numpy() if torch.is_tensor(x) else x  # <-
        """,
    ),
    "DT403": (
        """
        def rotation(a: Tensor, b: Tensor):
            cosine = torch.dot(a, b)
            if cosine < -1 + 1e-8:  # <-
                return opposite(a)
            return between(a, b)
        """,
        """
        def angle(x: Tensor, y: Tensor):
            cosine = F.cosine_similarity(x, y)
            return torch.where(cosine > 1 - 1e-10, torch.zeros_like(cosine), cosine.acos())  # <-
        """,
        """
        class Matcher(nn.Module):
            def forward(self, logits, boxes, targets):
                probability = logits.sigmoid()
                cost = -(probability + 1e-8).log()  # <-
                return cost + torch.cdist(boxes, targets)
        """,
    ),
    "DT404": (
        """
        def adain(content: Tensor, gain: Tensor):
            mean = torch.mean(content, dim=-2)
            std = torch.std(content, dim=-2)
            return (content - mean.unsqueeze(-2)) / std.unsqueeze(-2) * gain  # <-
        """,
        """
        def standardize(x: Tensor):
            mean, std = x.mean(1), x.std(1)
            return (x - mean[:, None]) / std[:, None]  # <-
        """,
    ),
    "DT410": (
        """
        def apply_rotary(freqs, t, start=0):
            if t.ndim == 3:
                freqs = freqs[-t.shape[-2]:].to(t)  # <-
            return t * freqs.cos() + rotate_half(t) * freqs.sin()
        """,
        """
        class Rotary(nn.Module):
            def forward(self, x: Tensor, angles: Tensor):
                angles = angles.to(x.dtype)  # <-
                return x * torch.cos(angles)
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, dim, dtype):
                super().__init__()
                inv_freq = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
                self.register_buffer("inv_freq", inv_freq.to(dtype))  # <-
        """,
    ),
    "DT506": (
        """
        def seed_all(seed=None):
            seed = np.random.randint(0, 2**32 - 1) if seed is None else seed  # <-
            torch.manual_seed(seed)
        """,
        """
        def draw(generator):
            return int(np.random.randint(4294967295))  # <-
        """,
    ),
}

GOOD = {
    "DT107": (
        """
        def generate(model, ids, dtype, args):
            with torch.autocast(model.device.type, dtype), torch.autocast(args.device, dtype):
                return model.generate(ids)
        """,
        """
        def load(rows):
            return np.array(rows).astype(float), np.zeros(3, dtype=np.float64), getattr(torch, "float32")
        """,
        """
        def kinds(pixels):
            return np.issubdtype(pixels.dtype, np.floating), np.float32, np.bool_
        """,
    ),
    "DT113": (
        """
        class Packed(Base):
            def __init__(self, width, dtype=None, device=None):
                super().__init__(dtype=torch.float16 if dtype is None else dtype, device=device)
        """,
        """
        def odds(chosen, rejected):
            given = chosen.dtype
            chosen = chosen.to(dtype=torch.float32)
            return (chosen.log() - rejected.float().log()).to(dtype=given)
        """,
        """
        def quantize(x, dtype=torch.bfloat16):
            x = x.float()
            return x.to(torch.bfloat16) if dtype == torch.bfloat16 else x
        """,
        """
        def pick(state):
            if state.config["fp16"]["enabled"]:
                return torch.float16
            if state.config["bf16"]["enabled"]:
                return torch.bfloat16
        """,
    ),
    "DT120": (
        """
        def sort(p):
            return p.dtype == torch.float16 or p.dtype == torch.bfloat16
        """,
        """
        def pick(p, dtype=None):
            return dtype or torch.float32
        """,
        """
        def export(model, args, config):
            same = model.config.torch_dtype == torch.bfloat16
            return same or args.torch_dtype == "bfloat16" or config.torch_dtype == "auto"
        """,
    ),
    "DT203": (
        """
        class Loop:
            def step(self, optimizer):
                self.scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(optimizer)
                self.scaler.update()
        """,
        """
        class Loop:
            def unscale(self, optimizer):
                self.scaler.unscale_(optimizer)

            def step(self, optimizer):
                self.unscale(optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(optimizer)
        """,
        """
        class Loop:
            def step(self, optimizer):
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                optimizer.step()
                self.scheduler.step(self.epoch)
        """,
    ),
    "DT205": (
        """
        def prepare(args):
            return torch.amp.GradScaler("cuda") if args.fp16 or args.amp else None
        """,
    ),
    "DT212": (
        """
        class Project(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                weight = weight.to(grad.dtype)
                return grad.matmul(weight), grad.t().matmul(x.to(grad.dtype))

        def train(model, batch):
            with torch.autocast("cuda"):
                return model(batch)
        """,
    ),
    "DT218": (
        """
        class Head(nn.Module):
            def forward(self, z):
                narrow = torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == torch.float16
                return self.project(z.float() if narrow else z)
        """,
        """
        def to_region(x):
            return x.to(torch.get_autocast_gpu_dtype())
        """,
    ),
    "DT301": (
        """
        def contract(hidden: Tensor, weight: Tensor):
            hidden = hidden.to(torch.float32)
            return F.linear(hidden, weight)

        for batch in loader:
            contract(batch, weight).sum().backward()
        """,
    ),
    "DT304": (
        """
        class Attention(nn.Module):
            def forward(self, q, k, v):
                out = torch.zeros(q.shape[0], q.shape[1], v.shape[2], device=q.device, dtype=q.dtype)
                for i in range(0, q.shape[1], 64):
                    out[:, i : i + 64] = einsum("b i j, b j d -> b i d", q[:, i : i + 64] @ k, v)
                return self.to_out(out)
        """,
        """
        def lengths_of(rows: Tensor):
            counts = torch.zeros(rows.shape[0], device=rows.device)
            for i in range(4):
                counts[i] = rows[i].argmax()
            return counts
        """,
    ),
    "DT311": (
        """
        def whiten(x: Tensor, cov: Tensor):
            return x @ torch.linalg.inv(cov.float()).to(x.dtype)
        """,
        """
        def pose(matrix: Tensor):
            return torch.linalg.inv(matrix).float()
        """,
    ),
    "DT313": (
        """
        def to_numpy(tensor):
            if isinstance(tensor, torch.Tensor):
                if tensor.dtype == torch.bfloat16:
                    tensor = tensor.float()
                return tensor.detach().cpu().numpy()
            return tensor
        """,
        """
        def img_to_numpy(img):
            return img.cpu().numpy() if isinstance(img, torch.Tensor) else img
        """,
    ),
    "DT403": (
        """
        def rotation(a: Tensor, b: Tensor):
            return torch.dot(a, b) < -1 + 1e-6
        """,
        """
        def rotation(a: Tensor, b: Tensor):
            return torch.dot(a.double(), b.double()) < -1 + 1e-10
        """,
        """
        def progress(step: int, steps: int) -> bool:
            return step / steps > 1 - 1e-9
        """,
    ),
    "DT404": (
        """
        def adain(content: Tensor, gain: Tensor):
            mean = torch.mean(content, dim=-2)
            std = torch.std(content, dim=-2) + 1e-5
            return (content - mean.unsqueeze(-2)) / std.unsqueeze(-2) * gain
        """,
        """
        def standardize(x: Tensor):
            mean, std = stats_of(x), x.std(1)
            return (x - mean[:, None]) / std[:, None]
        """,
        """
        def standardize(x: Tensor):
            mean, std = x.mean(1), x.std(1)
            std[std == 0] = 1
            return (x - mean[:, None]) / std[:, None]
        """,
    ),
    "DT410": (
        """
        class Rotary(nn.Module):
            def forward(self, x: Tensor, angles: Tensor):
                angles = angles.to(torch.float32)
                return x * torch.cos(angles).to(x.dtype)
        """,
        """
        def rotate(x: Tensor, freqs: Tensor, device):
            freqs = freqs.to(x.device)
            other = freqs.to(device)
            return freqs.cos().to(x.dtype), other.sin().to(x.dtype)
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, dim, device):
                super().__init__()
                inv_freq = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
                self.register_buffer("inv_freq", inv_freq.to(device))
        """,
    ),
    "DT506": (
        """
        def seed_all():
            torch.manual_seed(np.random.randint(0, 2**32 - 1, dtype=np.int64))
        """,
        """
        def draw():
            return np.random.randint(0, 2**31 - 1), np.random.randint(2**16), 2**32
        """,
    ),
}


@pytest.mark.parametrize(("code", "text"), cases(BAD))
def test_bad_code_is_flagged_where_it_says(code: str, text: str) -> None:
    lines = {finding.location.span.line for finding in BENCH.found(code, text)}
    assert sorted(lines) == marked(BENCH.source(text))


@pytest.mark.parametrize(("code", "text"), cases(GOOD))
def test_good_code_is_left_alone(code: str, text: str) -> None:
    assert BENCH.found(code, text) == []


def test_a_device_becomes_the_type_of_one() -> None:
    before = "def run(model, x):\n    with torch.autocast(model.device, torch.bfloat16):\n        return model(x)\n"
    assert "torch.autocast(model.device.type, torch.bfloat16)" in BENCH.fixed("DT107", before)


def test_a_seed_is_drawn_as_int64() -> None:
    assert "randint(0, 2**32 - 1, dtype=np.int64)" in BENCH.fixed("DT506", "seed = np.random.randint(0, 2**32 - 1)\n")


def test_gradients_are_unscaled_before_the_clip() -> None:
    before = """
def step(model, optimizer, scaler):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
"""
    clip = "torch.nn.utils.clip_grad_norm_"
    assert f"    scaler.unscale_(optimizer)\n    {clip}" in BENCH.fixed("DT203", before)
