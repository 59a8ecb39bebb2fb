"""Code of speech, kernels, quantization and course books that is right, and the bugs it is near to.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT101": (
        """
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).half()  # <-
        optimizer = torch.optim.SGD(model.parameters())
        model(torch.ones(3, 4).half()).sum().backward()
        optimizer.step()
        """,
    ),
    "DT103": (
        """
        def narrow():
            weight = torch.randn(4, 4)
            return weight.view(2, 8).to(torch.int8)  # <-
        """,
    ),
    "DT104": (
        """
        def compare(a, b, expected):
            wide = torch.float32
            found = a @ b
            found.to(wide)  # <-
            return (found - expected).abs().max()
        """,
    ),
    "DT105": (
        """
        def narrow(model, dtype: torch.dtype):
            for param in model.parameters():
                param.data = param.data.to(dtype)  # <-
            return model.eval()
        """,
    ),
    "DT111": (
        """
        def moved(features, device):
            return {name: value.to(device).float() for name, value in features.items()}  # <-
        """,
    ),
    "DT113": (
        """
        def make(shape, weight_dtype: torch.dtype = torch.bfloat16):
            return torch.zeros(shape, dtype=torch.bfloat16)  # <-
        """,
    ),
    "DT115": (
        """
        def rotary(length, dim):
            angles = torch.outer(torch.arange(length).float(), torch.ones(dim))
            turns = torch.polar(torch.ones_like(angles), angles)
            return turns[:, : dim // 2].contiguous().half()  # <-
        """,
    ),
    "DT117": (
        """
        def load(tensor, device, dtype=None):
            if dtype is None:
                tensor = tensor.to(dtype, non_blocking=True)  # <-
            return tensor.to(device)
        """,
    ),
    "DT119": (
        """
        def blend(first, second):
            assert first.dtype == second.dtype  # <-
            return (first + second) / 2
        """,
    ),
    "DT213": (
        """
        class Rotary(nn.Module):
            def __init__(self, dim, length):
                super().__init__()
                self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim))
                self.fill(length)

            def fill(self, length):
                positions = torch.arange(length).float()
                self.angles = torch.matmul(positions[:, None], self.inv_freq[None])  # <-

            def forward(self, x):
                if x.shape[1] > len(self.angles):
                    self.fill(x.shape[1])
                return x * self.angles.cos().to(x.dtype)
        """,
    ),
    "DT301": (
        """
        def sample(x, shape):
            basis = torch.from_numpy(np.eye(4)).to(torch.float32)
            mask = torch.zeros(*shape)

            def replaced(first, second):
                first = torch.einsum("bchw,cd->bdhw", first, basis)  # <-
                mixed = first * mask
                return torch.einsum("bdhw,cd->bchw", mixed, basis)

            return replaced(x, x).to(x.dtype)
        """,
        """
        def attend(q, k, v):
            dtype = q.dtype
            q, k = map(lambda x: x.transpose(1, 2).float(), (q, k))
            scores = (q @ k.mT).float().softmax(-1)
            return (scores @ v).to(dtype)  # <-
        """,
    ),
    "DT302": (
        """
        class Encoder(nn.Module):
            def forward(self, sound):
                features = self.feature_extractor(sound, return_tensors="pt")
                return self.model(features.input_features.to(self.device()), features.attention_mask)  # <-

            def quiet(self):
                return self.model.half()
        """,
    ),
    "DT303": (
        """
        class Block(nn.Module):
            def forward(self, x, emb=None):
                h = self.layers(x)
                if emb is None:
                    scale = torch.zeros(h.shape)  # <-
                else:
                    scale = self.emb(emb).to(h.dtype)
                return self.out(h + scale)
        """,
    ),
    "DT311": (
        """
        def convolve(waveform: Tensor, kernel: Tensor):
            dtype = waveform.dtype
            if dtype == torch.float16 or dtype == torch.bfloat16:
                waveform = waveform.float()
            found = torch.fft.rfft(kernel)  # <-
            return torch.fft.rfft(waveform) * found
        """,
    ),
    "DT313": (
        """
        def save(path):
            tensor = torch.randn(3, 4, dtype=torch.bfloat16)
            path.write_bytes(tensor.view(-1).numpy().tobytes())  # <-
        """,
    ),
    "DT314": (
        """
        def grid(n, device="cpu"):
            return torch.arange(n, dtype=torch.float64, device=device)  # <-
        """,
    ),
    "DT401": (
        """
        def hide(scores, mask):
            return scores.masked_fill(mask, -1e9)  # <-
        """,
    ),
    "DT403": (
        """
        def clipped(grads, most):
            norm = grads.norm(2)
            return grads * (most / (norm + 1e-10))  # <-
        """,
        """
        def scaled(state):
            return state / state.abs().amax(dim=-1, keepdim=True).clamp(min=1e-30)  # <-
        """,
    ),
    "DT410": (
        """
        def frequencies(dim, base, dtype):
            inv_freq = 1.0 / base ** (torch.arange(0, dim, 2, dtype=dtype) / dim)  # <-
            return inv_freq
        """,
    ),
    "DT416": (
        """
        def spread(x: Tensor, device):
            assert x.dtype == torch.uint8
            least = x.min(dim=1, keepdim=True).values
            return x - least.maximum(torch.tensor(3, dtype=torch.uint8))  # <-
        """,
        """
        def labels(colours, table):
            for colour in colours:
                yield table[colour[0] * 256 + colour[1]]  # <-
        """,
    ),
    "DT417": (
        """
        def attend(scores, mask):
            scores = scores + mask
            scores = torch.exp(scores)
            scores = scores / torch.sum(scores, dim=-1, keepdim=True)  # <-
            return scores
        """,
    ),
    "DT507": (
        """
        FAST = torch.cuda.get_device_capability()[0] >= 8  # <-
        """,
    ),
}

GOOD = {
    "DT101": (
        """
        import pytest

        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).half()
        optimizer = torch.optim.SGD(model.parameters())

        def test_step():
            model(torch.ones(3, 4).half()).sum().backward()
            optimizer.step()
        """,
    ),
    "DT103": (
        """
        def exponents(x: Tensor):
            assert x.dtype == torch.float32
            return (x.view(torch.int32) >> 23).to(torch.uint8)  # the bits of the float, and no float
        """,
    ),
    "DT104": (
        """
        def build(first, second, device):
            layer = first | second
            layer.to(torch.float32)  # it may be a module
            found = first @ second
            found.to(device)
            return layer, found
        """,
    ),
    "DT105": (
        """
        import pytest

        def build(model, dtype: torch.dtype):
            for param in model.parameters():
                param.data = param.data.to(dtype)
            return model.eval()
        """,
    ),
    "DT111": (
        """
        def moved(node_features, device):
            return {kind: value.to(device).float() for kind, value in node_features.items()}
        """,
    ),
    "DT113": (
        """
        def route(hidden, count, logits_dtype: torch.dtype = torch.bfloat16):
            weights = torch.randn(count, hidden, dtype=torch.bfloat16)
            return weights, torch.randn(count).to(logits_dtype)
        """,
        """
        def experts(x, output_dtype: torch.dtype = torch.bfloat16):
            if output_dtype is not torch.bfloat16:
                raise ValueError("bfloat16 alone")
            output = torch.empty(x.shape, dtype=torch.bfloat16)
            return output
        """,
        """
        import pytest

        @pytest.mark.parametrize("dtype", ["bfloat16"])
        def test_decode(dtype: str):
            return torch.randn(3, dtype=torch.bfloat16)
        """,
    ),
    "DT115": (
        """
        def rotary(length, dim):
            angles = torch.outer(torch.arange(length).float(), torch.ones(dim))
            turns = torch.polar(torch.ones_like(angles), angles)
            return turns[:, : dim // 2].real.contiguous().half(), turns.imag.contiguous().half()
        """,
    ),
    "DT117": (
        """
        def move(tensor, device, dtype=None, non_blocking=False):
            if dtype is not None:
                return tensor.dequantize().to(device, dtype)
            return tensor.to(device, dtype, non_blocking)  # to the device, and no cast
        """,
    ),
    "DT119": (
        """
        import triton

        def gemm(a, b):
            assert a.dtype == b.dtype
            return launch(a, b)
        """,
        """
        def append(key, value):
            if key.dtype not in (torch.float16, torch.bfloat16):
                raise ValueError("half alone")
            if value.dtype != key.dtype:
                raise ValueError("they differ")
        """,
        """
        def reduce(x, output):
            if output.dtype != x.dtype:
                raise ValueError("they differ")
            output.copy_(x.sum(0))
        """,
    ),
    "DT213": (
        """
        class Rotary(nn.Module):
            def __init__(self, dim, length):
                super().__init__()
                self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim))
                self.fill(length)

            def fill(self, length):
                positions = torch.arange(length).float()
                self.angles = torch.matmul(positions[:, None], self.inv_freq[None])

            def forward(self, x):
                return x * self.angles.cos().to(x.dtype)
        """,
    ),
    "DT301": (
        """
        def attend(q, k, v, chunk):
            dtype = q.dtype
            q, k, v = map(lambda x: x.transpose(1, 2).float(), [q, k, v])
            q, k, v = map(lambda x: rearrange(x, "b (n c) d -> b n c d", c=chunk), [q, k, v])
            scores = (q @ k.mT).float().softmax(-1)
            return (scores @ v).to(dtype)
        """,
    ),
    "DT302": (
        """
        class Encoder(nn.Module):
            def forward(self, sound):
                features = self.feature_extractor(sound, return_tensors="pt")
                return self.model(features.input_features.to(self.model_dtype()), features.attention_mask)

            def quiet(self):
                return self.model.half()
        """,
    ),
    "DT303": (
        """
        class Block(nn.Module):
            def forward(self, x, emb=None):
                h = self.layers(x)
                if emb is None:
                    scale = torch.zeros_like(h)
                else:
                    scale = self.emb(emb).to(h.dtype)
                return self.out(h + scale)
        """,
        """
        @triton.jit
        def scaled(x, PRECISE: tl.constexpr):
            if PRECISE:
                y = x.to(tl.float32) * tl.exp2(x)
            else:
                y = (x.to(tl.float32) * tl.exp2(x)).to(x.dtype)
            return tl.dot(y, x)
        """,
    ),
    "DT311": (
        """
        def convolve(waveform: Tensor, kernel: Tensor):
            dtype = waveform.dtype
            if dtype == torch.float16 or dtype == torch.bfloat16:
                waveform = waveform.float()
                kernel = kernel.float()
            return torch.fft.rfft(waveform) * torch.fft.rfft(kernel)
        """,
    ),
    "DT313": (
        """
        def save(path):
            tensor = torch.randn(3, 4, dtype=torch.bfloat16)
            path.write_bytes(tensor.view(torch.int16).numpy().tobytes())
            path.write_bytes(tensor.view(dtype=torch.int16).numpy().tobytes())
        """,
    ),
    "DT314": (
        """
        def plan(rank, n):
            device = torch.device("cuda", rank)
            return torch.full((n,), 0.5, dtype=torch.float64, device=device)

        def total(values, device=torch.device("cuda")):
            return torch.tensor(values, dtype=torch.float64, device=device)
        """,
        """
        import pytest

        def reference(n, device):
            return torch.arange(n, dtype=torch.float64, device=device)
        """,
    ),
    "DT401": (
        """
        import unittest

        def hide(scores, mask):
            return scores.masked_fill(mask, -1e9)
        """,
    ),
    "DT403": (
        """
        def rate(grad, most):
            norm = grad.norm(2).item()
            return most / (norm + 1e-10)  # of Python's floats
        """,
        """
        def scaled(state_fp32):
            return state_fp32 / state_fp32.abs().amax(dim=-1, keepdim=True).clamp(min=1e-30)
        """,
    ),
    "DT410": (
        """
        def frequencies(dim, base, dtype):
            inv_freq = 1.0 / base ** (torch.arange(0, dim, 2, dtype=dtype)[: dim // 2].float() / dim)
            return inv_freq
        """,
    ),
    "DT416": (
        """
        def spread(x: Tensor, most):
            assert x.dtype == torch.uint8
            greatest = x.max(dim=1, keepdim=True).values
            least = x.min(dim=1, keepdim=True).values
            reach = greatest - least
            reach = torch.minimum(reach, torch.tensor(most, dtype=torch.uint8))
            floor = greatest - reach
            raised = x.maximum(floor)
            return raised - x, raised - floor  # the greater less the smaller
        """,
        """
        COLOURS = [[0, 0, 0], [128, 0, 0]]

        def table(labels):
            for i, colour in enumerate(COLOURS):
                labels[(colour[0] * 256 + colour[1]) * 256 + colour[2]] = i  # Python's ints

        def indices(image, labels):
            image = image.permute(1, 2, 0).numpy().astype("int32")
            return labels[image[:, :, 0] * 256 + image[:, :, 1]]
        """,
    ),
    "DT417": (
        """
        def attend(scores, mask):
            scores = scores + mask
            scores = scores - scores.max(dim=-1, keepdim=True).values
            scores = torch.exp(scores)
            scores = scores / torch.sum(scores, dim=-1, keepdim=True)
            return scores
        """,
    ),
    "DT507": (
        """
        IS_NVIDIA = vendor() == "nvidia"
        IS_HOPPER = IS_NVIDIA and torch.cuda.get_device_capability()[0] >= 9
        """,
        """
        import triton

        def launch(x):
            return 8 if torch.cuda.get_device_capability()[0] >= 10 else 4
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)
