"""What the cast rules DT107 to DT124 flag and what they leave alone, in code as people write it.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import ast
import textwrap

import pytest
from bench import cases, marked

from dtlint import Applicability, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

RULES = discover()
HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"

BAD = {
    "DT107": (
        """
        def load(path, torch_dtype):
            vae = build(path)
            vae.to(torch_dtype=torch_dtype)  # <-
            return vae
        """,
        """
        x = torch.randn(4)
        x = x.to("bfloat16")  # <-
        x = x.to(dtype="torch.float16")  # <-
        x = x.to("cuda", "half")  # <-
        """,
        """
        weights = torch.zeros(4, dtype=np.float32)  # <-
        layer = nn.Linear(4, 4, dtype="float16")  # <-
        probabilities = F.softmax(weights, -1, dtype="float32")  # <-
        """,
        """
        frame = read().numpy().astype(torch.float32)  # <-
        buffer = np.zeros((4, 4), dtype=torch.uint8)  # <-
        """,
        """
        with torch.autocast("cuda", dtype="float16"):  # <-
            pass
        """,
    ),
    "DT108": (
        """
        def export(x: torch.Tensor):
            return x.float().half()  # <-
        """,
        """
        def attend(weights, value):
            return torch.softmax(weights, -1).to(torch.float32).to(torch.bfloat16) @ value  # <-
        """,
        """
        y = torch.randn(3).double().type(torch.float64)  # <-
        """,
    ),
    "DT109": (
        """
        class Norm(nn.Module):
            def forward(self, hidden):
                hidden = hidden.to(torch.float32)
                variance = hidden.pow(2).mean(-1, keepdim=True)
                hidden = hidden * torch.rsqrt(variance + self.eps)
                return (self.weight * hidden).to(hidden.dtype)  # <-
        """,
        """
        def gelu(x):
            x = x.float()
            return (0.5 * x * (1 + torch.erf(x / 1.41421))).type_as(x)  # <-
        """,
        """
        def stable(x):
            if x.dtype == torch.float16:
                x = x.float()
            x = (x - x.mean()).to(x.dtype)  # <-
            return x
        """,
        """
        def rotate(q, cos, sin):
            q = q.double()
            rotated = q * cos + half(q) * sin
            return rotated.to(dtype=q.dtype)  # <-
        """,
    ),
    "DT110": (
        """
        def slices(query, key, start, end):
            query_slice = query[start:end]
            query_slice = query_slice.float()  # <-
            return torch.bmm(query[start:end], key[start:end])
        """,
        """
        def loss(logits: torch.Tensor, target):
            logits_32 = logits.float()  # <-
            return F.cross_entropy(logits, target)
        """,
        """
        def step(self, sample: torch.Tensor, timesteps):
            for timestep in timesteps:
                self.advance(sample.shape, timestep)
            sample = sample.to(torch.float32)  # <-
            return self.result
        """,
    ),
    "DT111": (
        """
        def convert(path):
            state_dict = torch.load(path)
            return {key: value.half() for key, value in state_dict.items()}  # <-
        """,
        """
        def step(model, batch, dtype):
            batch = {k: v.to(device="cuda", dtype=dtype) for k, v in batch.items()}  # <-
            return model(**batch)
        """,
        """
        def cast(model):
            for name, buffer in model.named_buffers():
                buffer.data = buffer.data.half()  # <-
        """,
        """
        from torch.utils._pytree import tree_map

        def to_half(batch):
            return tree_map(lambda t: t.half(), batch)  # <-
        """,
        """
        def place(module, tensor_name, device, dtype=None):
            value = getattr(module, tensor_name).to(device)
            if dtype is not None:
                value = value.to(dtype)  # <-
            return value
        """,
        """
        def halve(state_dict):
            for key in state_dict.keys():
                state_dict[key] = state_dict[key].half()  # <-
            return state_dict
        """,
        """
        class Net(nn.Module):
            def lower(self, dtype):
                return self._apply(lambda t: t.to(dtype))  # <-
        """,
        """
        def convert_batch(batch):
            def to_bfloat16(tensor):
                return tensor.bfloat16()  # <-
            return apply_to_collection(batch, torch.Tensor, to_bfloat16)
        """,
    ),
    "DT112": (
        """
        class Pipeline:
            def encode(self, image):
                if self.vae.dtype == torch.float16 and self.vae.config.force_upcast:
                    self.upcast_vae()  # <-
                    image = image.float()
                return self.vae.encode(image)
        """,
        """
        def validate(model: nn.Module, loader):
            model.half()  # <-
            model.eval()
            return [model(batch.half()) for batch in loader]
        """,
        """
        def test(model: nn.Module, loader, half=True):
            model.half() if half else model.float()  # <-
            return [model(batch) for batch in loader]
        """,
        """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(8, 8, 3)

            def forward(self, x):
                x = F.interpolate(x.float(), scale_factor=2.0, mode="bilinear")  # <-
                return self.conv(x)
        """,
    ),
    "DT113": (
        """
        weight_dtype = torch.float32 if args.mixed_precision == "no" else torch.float16  # <-
        """,
        """
        def noise(accelerator, shape):
            if accelerator.mixed_precision != "no":  # <-
                dtype = torch.float16
            else:
                dtype = torch.float32
            return torch.randn(shape, dtype=dtype)
        """,
        """
        class Adafactor(torch.optim.Optimizer):
            def __init__(self, params, momentum_dtype: torch.dtype = torch.bfloat16):
                super().__init__(params, dict(momentum_dtype=momentum_dtype))

            def init_state(self, p, state):
                state["exp_avg"] = torch.zeros_like(p, dtype=torch.bfloat16)  # <-
        """,
        """
        class Blur(nn.Module):
            def __init__(self, kernel):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(8, 8, 3, 3))
                self.register_buffer("kernel", kernel)

            def forward(self, x):
                x = x.to(self.kernel.dtype)  # <-
                return F.conv2d(F.conv2d(x, self.kernel), self.weight)
        """,
    ),
    "DT114": (
        """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.dtype = self.fc.weight.dtype  # <-

            def forward(self, x):
                return self.fc(x.to(self.dtype))
        """,
        """
        class Wrapper:
            def __init__(self, model):
                self.model = model
                self.dtype = next(model.parameters()).dtype  # <-

            def __call__(self, x):
                return self.model(x.to(dtype=self.dtype))
        """,
        """
        class Sampler:
            def __init__(self, unet):
                self.unet = unet
                self.weight_dtype = unet.dtype  # <-

            def noise(self, shape):
                return torch.randn(shape, dtype=self.weight_dtype)
        """,
    ),
    "DT115": (
        """
        def rotary(angles):
            freqs = torch.polar(torch.ones_like(angles), angles)
            return freqs.to(torch.float32)  # <-
        """,
        """
        def spectrum(x):
            return torch.fft.rfft(x, dim=-1).half()  # <-
        """,
        """
        def rotate(x, freqs):
            z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
            z = z * freqs
            return z.type_as(torch.zeros(1))  # <-
        """,
        """
        def features(wave):
            spec = torch.stft(wave, 400, return_complex=True)
            return spec[..., :-1].float()  # <-
        """,
    ),
    "DT116": (
        """
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        model.type(torch.float16)  # <-
        """,
        """
        class Net(nn.Module):
            def lower(self):
                return self.type(torch.bfloat16)  # <-
        """,
        """
        def prepare(model: nn.Module):
            return model.eval().type("torch.cuda.HalfTensor")  # <-
        """,
    ),
    "DT117": (
        """
        def move(tensor, device, dtype=None):
            if not dtype:
                tensor = tensor.to(dtype)  # <-
            return tensor.to(device)
        """,
        """
        def upcast(x):
            if x.dtype == torch.float32:
                x = x.float()  # <-
            return x
        """,
        """
        def load(weight, torch_dtype=None):
            return weight.to(torch_dtype) if torch_dtype is None else weight  # <-
        """,
        """
        def match(image, target_dtype):
            if image.dtype != target_dtype:
                return image
            return image.to(target_dtype)  # <-
        """,
    ),
    "DT118": (
        """
        def cast(param: torch.Tensor, dtype):
            return param.to(dtype) if param.is_floating_point else param  # <-
        """,
        """
        for key, value in checkpoint.items():
            if not value.is_floating_point:  # <-
                continue
            checkpoint[key] = value.half()
        """,
        """
        def magnitude(x):
            if x.is_complex and x.shape[-1] > 1:  # <-
                x = x.abs()
            return x
        """,
    ),
    "DT119": (
        """
        def check(x):
            if x.dtype not in [torch.float16, torch.float32, torch.float64]:  # <-
                raise TypeError("floating tensors only")
        """,
        """
        def forward(image):
            assert image.dtype in (torch.half, torch.float, torch.double), image.dtype  # <-
            return image / 2
        """,
        """
        def forward(x):
            _validate_input_dtype(x, accepted_dtypes=[torch.float16, torch.float32, torch.float64])  # <-
        """,
        """
        def warp(source, target):
            if not (source.dtype == target.dtype):  # <-
                raise TypeError("dtypes differ")
        """,
    ),
    "DT120": (
        """
        def finish(x: torch.Tensor):
            return x.float() if x.dtype == "float16" else x  # <-
        """,
        """
        def cast(x: torch.Tensor):
            if x.dtype != np.float32:  # <-
                x = x.float()
            return x
        """,
        """
        def kind(x: torch.Tensor):
            if x.type() == torch.float16:  # <-
                return "half"
            if x.dtype == torch.FloatTensor:  # <-
                return "float"
            if str(x.dtype) == "int64":  # <-
                return "index"
        """,
        """
        def is_low(x: torch.Tensor):
            return x.dtype in ("float16", "bfloat16")  # <-
        """,
    ),
    "DT121": (
        """
        labels = torch.zeros(4, dtype=torch.long)
        labels[2] = 0.5  # <-
        """,
        """
        ids = torch.arange(8)
        prior = torch.full_like(ids, 0.1)  # <-
        """,
        """
        def scores(mask):
            order = torch.argsort(mask)
            return order.masked_fill(mask, float("-inf"))  # <-
        """,
        """
        scale = torch.tensor([0.5, 1.5], dtype=torch.int64)  # <-
        """,
        """
        def blur(image, kernel):
            kernel = kernel.to(device=image.device, dtype=image.dtype)  # <-
            return F.conv2d(image, kernel)
        """,
        """
        def gray(img):
            weights = torch.tensor([0.299, 0.587, 0.114], dtype=img.dtype)  # <-
            return (img * weights[:, None, None]).sum(0)
        """,
        """
        ids = torch.zeros(4, 2, dtype=torch.int32)
        ids[:, 0] = torch.rand(4)  # <-
        """,
    ),
    "DT122": (
        """
        image = torch.zeros(4, 4, 2, dtype=torch.uint8)
        depth = (image[..., 0] * 256 + image[..., 1]).to(torch.int32)  # <-
        """,
        """
        def total(grads):
            flat = torch.cat(grads).half()
            return flat.norm().float()  # <-
        """,
        """
        def confusion(preds, target, num_classes):
            index = (target.view(-1) * num_classes + preds.view(-1)).long()  # <-
            return torch.bincount(index)
        """,
        """
        class Differential(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.q = nn.Parameter(torch.zeros(dim))
                self.k = nn.Parameter(torch.zeros(dim))

            def forward(self):
                return torch.exp(torch.sum(self.q * self.k, dim=-1).float())  # <-
        """,
    ),
    "DT123": (
        """
        parser.add_argument("--dropout", type=int, default=0.1)  # <-
        """,
        """
        def train(steps: int = 1e5):  # <-
            for step in range(steps):
                pass
        """,
        """
        from dataclasses import dataclass

        @dataclass
        class Config:
            warmup: int = 100
            lr: int = 3e-4  # <-
        """,
    ),
    "DT124": (
        """
        def save(model, path):
            torch.save(model.half().state_dict(), path)  # <-
        """,
        """
        for epoch in range(10):
            train_one_epoch(net)
            torch.save({"epoch": epoch, "model": net.half().state_dict()}, "last.pt")  # <-
        """,
        """
        def build(state):
            model = nn.Linear(4, 4)
            model.load_state_dict(state, assign=True)  # <-
            return model, torch.optim.AdamW(model.parameters())
        """,
    ),
}

GOOD = {
    "DT107": (
        'model = AutoModel.from_pretrained("bert", torch_dtype=torch.float16)\n',
        'x = torch.randn(4).to("cuda").to("cuda:0", torch.float16).to(dtype=float)\n',
        """
        class Pipeline:
            def to(self, device=None, torch_dtype=None):
                return self

            def half(self):
                return self.to(torch_dtype=torch.float16)
        """,
        'frame = np.zeros((4, 4), dtype="float32").astype(np.float16)\n',
        "import paddle\n\ndef cast(x):\n    return x.to('float16')\n",
    ),
    "DT108": (
        "y = torch.randn(3).half().float()\n",
        "y = torch.randn(3).to(torch.int8).float()\n",
        'y = torch.randn(3).to("cpu").to(torch.float16)\n',
    ),
    "DT109": (
        """
        def norm(x):
            dtype = x.dtype
            x = x.float()
            return (x / x.norm()).to(dtype)
        """,
        """
        def norm(x):
            y = x.float()
            return (y / y.norm()).type_as(x)
        """,
        """
        def keep(x, mask):
            x = x.float()
            return (x > 0).type_as(x)
        """,
        """
        def either(x, upcast):
            if upcast:
                x = x.float()
                return torch.sigmoid(x)
            else:
                return torch.sigmoid(x).to(x.dtype)
        """,
    ),
    "DT110": (
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor):
            weights = torch.softmax(query @ key, dim=-1, dtype=torch.float32).to(query.dtype)
            return torch.nn.functional.scaled_dot_product_attention(query, key, value)
        """,
        """
        def cast(module):
            half = module.half()
        """,
        """
        def run(x: torch.Tensor, steps):
            total = 0.0
            for step in range(steps):
                total = total + x.sum()
                x = x.half()
            return total
        """,
        """
        def guard(x: torch.Tensor):
            try:
                y = x.half()
                check()
            finally:
                print(y)
        """,
        """
        def make(x: torch.Tensor):
            x32 = x.float()
            return lambda: x32.sum()
        """,
        "logits = torch.randn(3).float()\n",
    ),
    "DT111": (
        """
        def convert(state_dict):
            return {k: v.half() if v.is_floating_point() else v for k, v in state_dict.items()}
        """,
        """
        def convert(state_dict):
            for key, value in state_dict.items():
                if value.dtype == torch.float32:
                    state_dict[key] = value.half()
        """,
        """
        def step(batch):
            return {k: v.half() for k, v in batch.items() if k.startswith("pixel")}
        """,
        """
        def copy(model):
            return {k: v.detach().float().cpu() for k, v in model.state_dict().items()}
        """,
        """
        def cast(module):
            for name, buffer in module.named_buffers():
                if torch.is_floating_point(buffer):
                    buffer.data = buffer.data.half()
        """,
        """
        def follow(state_dict, reference):
            return {k: v.to(reference[k].dtype) for k, v in state_dict.items()}
        """,
    ),
    "DT112": (
        """
        class Pipeline:
            def decode(self, latents):
                needs_upcasting = self.vae.dtype == torch.float16
                if needs_upcasting:
                    self.upcast_vae()
                image = self.vae.decode(latents)
                if needs_upcasting:
                    self.vae.to(dtype=torch.float16)
                return image

            def upcast_vae(self):
                if self.vae.dtype == torch.float16:
                    self.vae.to(dtype=torch.float32)
        """,
        """
        class Model:
            def generate(self, codes):
                if self.vocoder.dtype != torch.float32:
                    self.vocoder.float()
                return self.vocoder(codes)
        """,
        """
        def test(model: nn.Module, loader):
            model.half()
            results = [model(batch.half()) for batch in loader]
            model.float()
            return results
        """,
        """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(8, 8, 3)

            def forward(self, x):
                dtype = x.dtype
                x = F.interpolate(x.float(), scale_factor=2.0)
                x = x.to(dtype)
                return self.conv(x)
        """,
        """
        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(8, 8, 3)

            def forward(self, x, mask):
                mask = F.interpolate(mask.float(), scale_factor=2.0)
                return self.conv(mask)
        """,
    ),
    "DT113": (
        """
        def pick(args):
            if args.mixed_precision == "fp16":
                return torch.float16
            return torch.bfloat16 if args.mixed_precision == "bf16" else torch.float32
        """,
        'dtype = torch.float32 if args.dtype == "fp32" else torch.float16\n',
        """
        def zeros(n, dtype=torch.bfloat16):
            return torch.zeros(n, dtype=dtype) + torch.zeros(n, dtype=torch.float32)
        """,
        """
        class Normalize(nn.Module):
            def __init__(self, mean):
                super().__init__()
                self.register_buffer("mean", mean)

            def forward(self, x):
                x = x.to(self.mean.dtype)
                return x - self.mean
        """,
    ),
    "DT114": (
        """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            @property
            def dtype(self):
                return self.fc.weight.dtype

            def forward(self, x):
                return self.fc(x.to(self.dtype))
        """,
        """
        class Solver:
            def __init__(self, y0):
                self.dtype = y0.dtype

            def step(self, y):
                return y.to(self.dtype)
        """,
        """
        class Layer(nn.Module):
            def __init__(self, base):
                super().__init__()
                self.dtype = base.weight.dtype
                self.fc = nn.Linear(4, 4, dtype=self.dtype)
        """,
    ),
    "DT115": (
        """
        def magnitude(x):
            return torch.fft.rfft(x).abs().float()
        """,
        """
        def pairs(x, freqs):
            z = torch.view_as_complex(x)
            return torch.view_as_real(z * freqs).float()
        """,
        """
        def scan(a, b):
            if a.is_complex():
                b = torch.view_as_complex(b)
            else:
                b = b.float()
            return b
        """,
        """
        def keep(angles):
            return torch.polar(torch.ones_like(angles), angles).to(torch.complex64).to("cuda")
        """,
    ),
    "DT116": (
        "model = nn.Linear(2, 2).to(torch.float16)\n",
        "model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)).type(torch.float16)\n",
        "x = torch.randn(2).type(torch.float16)\n",
        'kind = nn.Linear(2, 2).weight.type()\nlayer = config.type("linear")\n',
    ),
    "DT117": (
        """
        def move(tensor, dtype=None):
            if dtype is not None:
                tensor = tensor.to(dtype)
            return tensor
        """,
        """
        def move(tensor, reference, dtype=None):
            if dtype is None:
                dtype = reference.dtype
                tensor = tensor.to(dtype)
            return tensor
        """,
        """
        def upcast(x):
            if x.dtype == torch.float16:
                x = x.float()
            return x
        """,
        """
        def both(x, y, dtype):
            if x.dtype == dtype:
                y = y.to(dtype)
            return y
        """,
    ),
    "DT118": (
        """
        def cast(x: torch.Tensor):
            return x if x.is_floating_point() else x.float()
        """,
        """
        def cast(x, dtype: torch.dtype):
            if x.dtype.is_floating_point and not dtype.is_complex:
                return x.to(dtype)
        """,
        """
        test = torch.Tensor.is_floating_point
        kept = list(filter(torch.is_floating_point, tensors))
        """,
    ),
    "DT119": (
        """
        def check(x):
            if x.dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
                raise TypeError
        """,
        """
        def kernel(x):
            assert x.dtype in (torch.float16, torch.float32)
        """,
        """
        def assert_same(a, b):
            assert a.dtype == b.dtype
        """,
        """
        def fast(x):
            if x.dtype in (torch.float16, torch.float32, torch.float64):
                return native(x)
            return slow(x)
        """,
        """
        def match(query, key):
            if query.dtype != key.dtype:
                key = key.to(query.dtype)
            return query @ key
        """,
    ),
    "DT120": (
        """
        def cast(x: torch.Tensor):
            return x.float() if x.dtype == torch.float16 or str(x.dtype) == "torch.float16" else x
        """,
        """
        def cast(array: np.ndarray):
            return array if array.dtype == "float32" else array.astype("float32")
        """,
        """
        def pick(torch_dtype):
            return None if torch_dtype == "auto" else torch_dtype
        """,
        """
        def old(x: torch.Tensor):
            return x.type() == "torch.FloatTensor"
        """,
    ),
    "DT121": (
        "weights = torch.zeros(4)\nweights[0] = 0.5\n",
        "ids = torch.arange(4)\nids[0] = 7\nids[1] = 2.0\n",
        "mask = torch.ones(4, 4, dtype=torch.bool)\nmask[0] = torch.triu(torch.ones(4, 4))[0]\n",
        """
        def blur(image, kernel):
            if not image.is_floating_point():
                image = image / 255
            return F.conv2d(image, kernel.to(image.dtype))
        """,
        """
        def attend(hidden, weight):
            return hidden @ weight.to(hidden.dtype)
        """,
        "sizes = torch.zeros(4, dtype=torch.int)\nsizes[:2] = torch.Tensor([3, 4])\n",
        "prior = torch.full((4,), 0.5)\nlike = torch.full_like(torch.arange(4), 0.5, dtype=torch.float32)\n",
    ),
    "DT122": (
        """
        image = torch.zeros(4, 4, dtype=torch.uint8)
        mask = (image * 255).long()
        """,
        """
        def total(x: torch.Tensor):
            return x.half().float().sum()
        """,
        """
        def cells(xy, width):
            return (xy * width + 0.5).long()
        """,
        """
        def confusion(preds, target, num_classes):
            return target.long() * num_classes + preds.long()
        """,
    ),
    "DT123": (
        'parser.add_argument("--lr", type=float, default=1e-2)\nparser.add_argument("--steps", type=int, default=int(1e6))\n',
        "def scale(x, factor: int = 1.0, limit: float = 1e6, count: int = 100):\n    return x * factor\n",
        "class Config:\n    steps: int = 1_000\n    lr: float = 3e-4\n",
    ),
    "DT124": (
        """
        import copy

        for epoch in range(10):
            torch.save(copy.deepcopy(model).half().state_dict(), "last.pt")
        """,
        """
        def save(model, path):
            torch.save(model.half().state_dict(), path)
            model.float()
        """,
        """
        def build(state):
            model = nn.Linear(4, 4)
            model.load_state_dict(state, assign=True)
            model.float()
            return torch.optim.AdamW(model.parameters())
        """,
        """
        model = load("model.pt")
        torch.save(model.half().state_dict(), "small.pt")
        """,
    ),
}


def source_of(text: str) -> Source:
    return Source.from_bytes((HEAD + textwrap.dedent(text)).encode(), "example.py")


def found(code: str, text: str) -> list[int]:
    source = source_of(text)
    ast.parse(source.text)
    checked = check_source(source, [RULES[code]], Settings())
    assert list(checked.crashes) == []
    return [diagnostic.location.span.line for diagnostic in checked.diagnostics]


@pytest.mark.parametrize(("code", "text"), cases(BAD))
def test_bad_code_is_flagged_where_it_says(code: str, text: str) -> None:
    assert found(code, text) == marked(source_of(text))


@pytest.mark.parametrize(("code", "text"), cases(GOOD))
def test_good_code_is_left_alone(code: str, text: str) -> None:
    assert found(code, text) == []


@pytest.mark.parametrize("code", BAD)
def test_each_rule_has_three_cases_of_both_kinds(code: str) -> None:
    assert len(BAD[code]) >= 3
    assert len(GOOD[code]) >= 3


def fixed(code: str, text: str) -> str:
    result = fix_source(source_of(text), [RULES[code]], Settings(), Applicability.UNSAFE)
    assert result.failed is None
    return result.source.text


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("DT107", "x = torch.zeros(2, dtype=np.float32)\n", "x = torch.zeros(2, dtype=torch.float32)\n"),
        ("DT107", "x = y.astype(torch.bool)\n", "x = y.astype(np.bool_)\n"),
        (
            "DT107",
            "m = nn.Linear(2, 2).to(torch_dtype=torch.half)  # half\n",
            "m = nn.Linear(2, 2).to(dtype=torch.half)  # half\n",
        ),
        ("DT108", "y = torch.ones(2).float().half()\n", "y = torch.ones(2).half()\n"),
        ("DT116", "m = nn.BatchNorm1d(2).type(torch.half)\n", "m = nn.BatchNorm1d(2).to(torch.half)\n"),
        ("DT120", "a = torch.ones(2).dtype == 'float16'\n", "a = torch.ones(2).dtype == torch.float16\n"),
        ("DT123", "def f(n: int = 1e3): ...\n", "def f(n: int = 1_000): ...\n"),
        (
            "DT111",
            "state = {k: v.half() for k, v in net.state_dict().items()}\n",
            "state = {k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}\n",
        ),
    ],
)
def test_fixes(code: str, before: str, after: str) -> None:
    assert fixed(code, before) == HEAD + after


def test_a_cast_to_an_integer_buffer_is_where_the_fix_has_none() -> None:
    """`v.cpu().half()` would lose the move, so that there is a finding and no fix."""
    text = "state = {k: v.cpu().half() for k, v in net.state_dict().items()}\n"
    assert found("DT111", text)
    assert fixed("DT111", text) == HEAD + text
