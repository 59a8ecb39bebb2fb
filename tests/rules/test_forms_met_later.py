"""More forms of the kinds of bugs that repositories elsewhere write, and right code like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench

from dtlint_rules.dt125_no_such_name import CALLED, METHODS, NoSuchName

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, einsum, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT104": (
        """
        def make():
            table = torch.zeros(3)

            def inner():
                table.half()  # <-

            inner()
            return table

        class Holder:
            table = make()  # a class body binds no names for functions; a function that it calls does
        """,
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.early()
                self.table = torch.zeros(3)

            def early(self):
                self.table.half()  # read while the attribute is not known yet

            def late(self):
                self.table.half()  # <-
        """,
        """
        class Holder:
            made = lambda n: zeros(n)

        def zeros(n):
            return torch.zeros(n)

        Holder.made(3).half()  # <-
        """,
    ),
    "DT303": (
        """
        def standardise(stats, x: Tensor):
            mean = torch.sum(stats.running_mean, 0, dtype=x.dtype).to(x.device)
            std = stats.running_var.sum(0)  # <-
            return (x - mean) / std
        """,
        """
        class Biased(nn.Module):
            def forward(self, x: Tensor, bias, n):
                if n > 3:
                    b = self.make(bias, dtype=x.dtype).to(x.device)
                else:
                    b = bias  # <-
                return x + b
        """,
    ),
    "DT401": (
        """
        def extend(kept: Tensor, scores: Tensor):
            kept = kept[:, None, None, :].to(dtype=scores.dtype)
            return scores + (1.0 - kept) * -1e9  # <-
        """,
    ),
    "DT204": (
        """
        def train(net, g_opt, loader):
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                g_opt.zero_grad()
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = F.cross_entropy(net(x), y)
                scaler.scale(loss).backward()
                g_opt.step()  # <-
                scaler.update()
        """,
    ),
    "DT402": (
        """
        def positions():
            return torch.arange(70_000, dtype=torch.float16)  # <-
        """,
        """
        def table(n):
            return torch.arange(300, dtype=torch.uint8), torch.linspace(0, 1e5, n, dtype=torch.half)  # <-
        """,
    ),
    "DT125": (
        """
        def compress(x: Tensor):
            return x.to(torch.bf16)  # <-
        """,
        """
        def zeros(n):
            return torch.zeros(n, dtype=torch.fp16)  # <-
        """,
        """
        def shrink(model, x: Tensor):
            for p in model.parameters():
                p.to_(torch.float16)  # <-
            return x.half_()  # <-
        """,
        """
        def step(net, x):
            with torch.cuda.autocast():  # <-
                return net(x)
        """,
        """
        class Scale(torch.autograd.Function):
            @staticmethod
            @torch.amp.cuda.custom_fwd  # <-
            def forward(ctx, x):
                return 2 * x
        """,
    ),
    "DT301": (
        """
        class Attention(nn.Module):
            def forward(self, x):
                q, k, v = self.to_qkv(x).chunk(3, dim=-1)
                attn = einsum("b i d, b j d -> b i j", q, k).softmax(dim=-1, dtype=torch.float32)
                return einsum("b i j, b j d -> b i d", attn, v)  # <-
        """,
        """
        class Attention(nn.Module):
            def forward(self, x):
                qkv = self.qkv(x).reshape(3, 4, -1, 8)
                q, k, v = qkv.unbind(0)
                attn = (q @ k.mT).float().softmax(dim=-1)
                attn = self.attn_drop(attn)
                return attn @ v  # <-
        """,
    ),
    "DT107": (
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
        def pick(args):
            return torch.float32 if args.mixed_precision == None else torch.float16  # <-
        """,
        """
        class Quantized(nn.Module):
            def __init__(self, inputs, outputs, device=None, dtype=None):
                super().__init__()
                self.impl = build_linear(inputs, outputs, device=device, dtype=torch.float16)  # <-
        """,
        """
        def load(path, torch_dtype="auto"):
            return Model.from_pretrained(path, dtype=torch.bfloat16)  # <-
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
        import torch as th

        def is_half(x: Tensor):
            return x.dtype == th.float16 or th.bfloat16  # <-
        """,
    ),
    "DT212": (
        """
        class Project(torch.autograd.Function):
            @staticmethod  # <-
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                gathered = torch.empty(x.shape, dtype=x.dtype, device=x.device)
                gather(gathered, x)
                return grad.matmul(weight), grad.t().matmul(gathered)

        def train(model, batch):
            with torch.autocast("cuda"):
                return model(batch)
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
    "DT403": (
        """
        class Matcher(nn.Module):
            def forward(self, logits, boxes, targets):
                probability = logits.sigmoid()
                cost = -(probability + 1e-8).log()  # <-
                return cost + torch.cdist(boxes, targets)
        """,
        """
        class Matcher(nn.Module):
            def forward(self, logits, boxes, targets):
                probability = logits.sigmoid()
                cost = -(probability + 1e-8).log()  # <-
                return cost + torch.cdist(boxes, targets)
        """,
        """
        def attend(q, k, v, mask):
            q = q.half()
            q = q / (q.norm(dim=-1, keepdim=True) + 1e-8)  # <-
            scores = q @ k.half().transpose(-1, -2)
            scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
            return scores.softmax(-1) @ v.half()
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
    "DT114": (
        """
        class Wrapper:
            def __init__(self, model):
                self.model = model
                self.dt: torch.dtype = getattr(model, "dtype", None)  # <-

            def run(self, x):
                return self.model(x.to(self.dt))
        """,
    ),
    "DT209": (
        """
        def region():
            return torch.autocast("cuda")

        def go(model, x):
            region()  # <-
            return model(x)
        """,
    ),
    "DT202": (
        """
        def train(model, loader, opt):
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                with torch.autocast("cuda"):
                    loss = F.cross_entropy(model(x), y)
                loss.backward()  # <-
                opt.step()
        """,
    ),
    "DT205": (
        """
        def fine(model, loader, opt):
            scaler = torch.amp.GradScaler("cuda")
            for x in loader:
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()

        def needless(model, loader, opt):
            scaler = torch.amp.GradScaler("cuda")  # <-
            for x in loader:
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
        """,
    ),
}

GOOD = {
    "DT401": (
        """
        def extend(kept: Tensor, scores: Tensor):
            kept = kept[:, None, None, :].to(dtype=scores.dtype)
            return scores + (1.0 - kept) * -1e4, scores + (1.0 - kept) * torch.finfo(scores.dtype).min
        """,
        """
        def price(x: Tensor):
            return (2.0 - x) * 1e9 - (x - 1.0) * 1e9
        """,
    ),
    "DT204": (
        """
        def train(net, opt, schedule, loader):
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                opt.zero_grad()
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = F.cross_entropy(net(x), y)
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
                schedule.step()
        """,
    ),
    "DT402": (
        """
        def positions(n):
            return torch.arange(n, dtype=torch.float16), torch.arange(256, dtype=torch.uint8)
        """,
        """
        def table(n):
            return torch.linspace(0, 1e5, n, dtype=torch.bfloat16), torch.arange(70_000, dtype=torch.int32)
        """,
    ),
    "DT125": (
        """
        def half():
            if hasattr(torch, "fp16"):
                return torch.fp16
            return torch.float16
        """,
        """
        try:
            from torch import fp16

            HAS_HALF = True
        except ImportError:
            HAS_HALF = False

        def zeros(n):
            return torch.zeros(n, dtype=fp16) if HAS_HALF else torch.zeros(n)
        """,
        """
        try:
            HALF = torch.bf16
        except AttributeError:
            HALF = torch.bfloat16
        """,
        """
        class Weights:
            def half_(self):
                self.table = self.table.half()

            def to_(self, dtype):
                self.table = self.table.to(dtype)

        def shrink(weights: Weights):
            weights.half_()
            weights.to_(torch.float16)
        """,
        """
        def told(args, x: Tensor):
            return x.half() if args.fp16 else x.to(torch.float32)
        """,
        """
        def shrink(table):
            table.half_()  # of whatever class that is
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
        """
        class Attention(nn.Module):
            def forward(self, x):
                q, k, v = self.to_qkv(x).chunk(3, dim=-1)
                attn = einsum("b i d, b j d -> b i j", q, k).softmax(dim=-1, dtype=torch.float32)
                return einsum("b i j, b j d -> b i d", attn.to(v.dtype), v)
        """,
        """
        class Attention(nn.Module):
            def forward(self, x):
                q, k, v = self.to_qkv(x.float()).chunk(3, dim=-1)  # which has float32 weights
                attn = (q @ k.mT).softmax(dim=-1, dtype=torch.float32)
                return attn @ v
        """,
        """
        class Attention(nn.Module):
            def forward(self, x, context):
                q, k = self.to_qk(x).chunk(2, dim=-1)
                v = self.to_v(context)  # of whatever dtype
                return (q @ k.mT).softmax(dim=-1, dtype=torch.float32) @ v
        """,
        """
        class Attention(nn.Module):
            def forward(self, query, value):
                scores = self.score(query)
                dtype = scores.dtype
                scores = scores.float() - 1e6 * (1 - self.mask.float())
                weights = torch.softmax(scores, dim=-1, dtype=dtype)  # as it was before the cast
                return torch.einsum("bnij,bjnd->bind", self.dropout(weights), self.value(value))
        """,
        """
        class Attention(nn.Module):
            def forward(self, query: Tensor, value: Tensor):
                scores = query @ value.mT
                dtype = scores.dtype
                scores = scores.float()
                weights = torch.softmax(scores, dim=-1, dtype=dtype)
                return weights @ value
        """,
    ),
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
        """
        class Net(nn.Module):
            def __init__(self, device="cuda"):
                super().__init__()
                self.device = device

        model = Net("cuda")
        with torch.autocast(model.device):
            model.train()
        """,
        """
        def run(cfg, model, x):
            with torch.autocast(device_type=cfg.model.device):
                return model(x)
        """,
    ),
    "DT113": (
        """
        def load(path, dtype=None):
            if dtype is None:
                return Model.from_pretrained(path, dtype=torch.float16)
            return Model.from_pretrained(path, dtype=dtype)
        """,
        """
        def load(path, dtype=None):
            print(locals())
            return Model.from_pretrained(path, dtype=torch.float16)
        """,
        """
        def zeros(n, dtype):
            return build(n, dtype=torch.float32)  # an accumulator, which is to be wide
        """,
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
        """
        def keeps(x: Tensor, force, other):
            return x.dtype == torch.float16 or force or other.dtype == torch.bfloat16
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
        """
        def fine(model, loader, opt):
            scaler = torch.amp.GradScaler("cuda")
            for x in loader:
                with torch.autocast("cuda", dtype=torch.float16):
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()

        def needless(model, loader, opt):
            scaler = torch.amp.GradScaler("cuda")
            warm_up(model, scaler)
            for x in loader:
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = model(x).mean()
                scaler.scale(loss).backward()
                scaler.step(opt)
                scaler.update()
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
        """
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return x @ w

            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                g = g.to(torch.float)
                return g @ w.t(), x.t() @ g

        with torch.autocast("cuda"):
            Product.apply(a, b)
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
        """
        def normalised(q: Tensor):
            q = q.half()
            eps = max(1e-8, torch.finfo(q.dtype).tiny)
            return q / (q.norm(dim=-1, keepdim=True) + eps)
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
        """
        def standardised(x: Tensor):
            mean, std = x.mean(), x.std()
            std.clamp_(min=1e-6)
            return (x - mean) / std
        """,
        """
        def per_row(x: Tensor):
            mean, std = x.mean(dim=1), x.std(dim=1)
            std.clamp_min_(1e-6)
            return (x - mean.view(-1, 1)) / std.view(-1, 1)
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
        """
        def seed(**kw):
            torch.manual_seed(np.random.randint(0, 2**32 - 1, **kw))
        """,
    ),
    "DT312": (
        """
        def product():
            h = torch.randn(4, 8, dtype=torch.float16)
            rows = torch.from_numpy(np.random.randn(8, 4))
            return h @ rows
        """,
    ),
    "DT202": (
        """
        def train(model, loader, opt):
            scaler = torch.amp.GradScaler("cuda")
            for x, y in loader:
                with torch.autocast("cuda"):
                    loss = F.cross_entropy(model(x), y)
                backward(loss, scaler, opt)
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)


def test_a_device_becomes_the_type_of_one() -> None:
    before = "def run(model, x: Tensor):\n    with torch.autocast(x.device, torch.bfloat16):\n        return model(x)\n"
    assert "torch.autocast(x.device.type, torch.bfloat16)" in BENCH.fixed("DT107", before)


def test_a_seed_is_drawn_as_int64() -> None:
    assert "randint(0, 2**32 - 1, dtype=np.int64)" in BENCH.fixed("DT506", "seed = np.random.randint(0, 2**32 - 1)\n")


def test_torch_has_none_of_the_names_that_are_said_to_be_missing() -> None:
    torch = pytest.importorskip("torch")
    rule = NoSuchName()
    assert rule.references is not None and rule.calls is not None
    assert [name for name in rule.references if _has(torch, name.split(".")[1:])] == []
    assert [name for name in CALLED if not isinstance(getattr(torch, name), torch.dtype)] == []
    assert [name for name in METHODS.keys() | (rule.calls - CALLED) if hasattr(torch.Tensor, name)] == []


def _has(module: object, names: list[str]) -> bool:
    for name in names:
        if not hasattr(module, name):
            return False
        module = getattr(module, name)
    return True


def test_a_dtype_is_spelled_as_torch_has_it() -> None:
    before = "def compress(x: Tensor):\n    return x.to(dtype=torch.fp16)\n"
    assert "x.to(dtype=torch.float16)" in BENCH.fixed("DT125", before)
