"""Forms met in libraries, in pairs: what is of no consequence where it stands, and its neighbour, which is."""

from __future__ import annotations

from bench import Bench

BENCH = Bench(
    "DT101",
    "DT510",
    """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor

""",
)

BAD = {
    "DT111": (
        """
        def load(state_dict, dtype):
            for name, value in state_dict.items():
                if isinstance(value, torch.Tensor):
                    state_dict[name] = value.to(dtype)  # <-
            return state_dict
        """,
    ),
    "DT119": (
        """
        def check(x: Tensor):
            assert x.dtype in (torch.float16, torch.float32, torch.float64)  # <-
            return x * 2
        """,
        """
        @register("align")
        def align(x, boxes):
            torch._check(x.dtype == boxes.dtype, lambda: "one dtype")  # <-
            return x.new_empty(boxes.size(0))
        """,
    ),
    "DT208": (
        """
        @torch.autocast("cuda", enabled=False)  # <-
        def rotate(positions: Tensor, freqs: Tensor):
            angles = torch.einsum("i,ij->j", positions.float(), freqs)
            return angles.sin(), angles.cos()
        """,
        """
        class Norm(nn.Module):
            @torch.autocast("cuda", enabled=False)  # <-
            def forward(self, x):
                return self.norm(x.float()).type_as(x)
        """,
        """
        def mixed(x, weight):
            return x @ weight

        def rotate(x, weight):
            with torch.autocast("cuda", enabled=False):  # <-
                return mixed(x.float(), weight)
        """,
    ),
    "DT314": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else args.device)

        def total(values):
            return torch.tensor(values, dtype=torch.float64, device=device)  # <-
        """,
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def total(values, device):
            return torch.tensor(values, dtype=torch.float64, device=device)  # <-
        """,
    ),
    "DT301": (
        """
        class Scores:
            def scores(self, attributions, vectors):
                return self._scores(attributions, vectors)

            def _scores(self, attributions: Tensor, vectors: Tensor):
                return torch.matmul(attributions.float(), vectors.transpose(1, 2)).sign()  # <-
        """,
    ),
    "DT304": (
        """
        class Quantizer(nn.Module):
            def __init__(self, levels):
                super().__init__()
                self.register_buffer("levels", torch.tensor(levels, dtype=torch.float32))

            def bound(self, z):
                half_l = (self.levels - 1) / 2
                offset = torch.where(self.levels % 2 == 0, 0.5, 0.0)  # <-
                return torch.tanh(z + offset / half_l)
        """,
    ),
    "DT311": (
        """
        def edited(guidance: Tensor, level):
            if guidance.dtype != torch.float64:
                guidance = torch.quantile(guidance.abs(), level, dim=2)  # <-
            return guidance.half()
        """,
    ),
    "DT403": (
        """
        class Stem(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("var", torch.ones(3))

            def forward(self, x):
                return x / (self.var**0.5 + 1e-8)  # <-
        """,
        """
        class Running(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.register_buffer("var", torch.zeros(width), persistent=False)

            def forward(self, x):
                self.var.lerp_(x.var(0), 0.1)
                return x / (self.var + 1e-8)  # <-
        """,
        """
        def fraction(attract: Tensor, repel: Tensor):
            first, second = (attract**2).sum(-1), (repel**2).sum(-1)
            return second / (first + second + 1e-10)  # <-
        """,
        """
        def dice(p: Tensor, mask: Tensor):
            return (p * mask).sum() / (mask.sum() + 1e-8)  # <-
        """,
        """
        def unit(x: Tensor):
            variance = x.var(-1, keepdim=True)
            return x / (variance + 1e-8)  # <-
        """,
        """
        class Flow(nn.Module):
            def inverse(self):
                return self

            def forward(self, x):
                return self.inverse()(x) / (x.abs().amax(-1) + 1e-8)  # <-
        """,
    ),
    "DT404": (
        """
        class Testimonials:
            def normalize(self, rewards: Tensor):
                return (rewards - rewards.mean()) / rewards.std()  # <-
        """,
        """
        class Distances(nn.Module):
            def forward(self, pos, batch):
                i, j = radius_graph(pos, r=self.cutoff, batch=batch, loop=True)
                return (pos[i] - pos[j]).pow(2).sum(dim=-1).sqrt()  # <-
        """,
        """
        class Distances(nn.Module):
            def forward(self, pos, edges):
                return (pos[edges[0]] - pos[edges[1]]).pow(2).sum(dim=-1).sqrt()  # <-
        """,
    ),
    "DT406": (
        """
        def _variance(x: Tensor):
            return (x * x).mean(-1) - x.mean(-1) ** 2  # <-

        def spread(x: Tensor):
            return _variance(x).sqrt()
        """,
    ),
    "DT408": (
        """
        class RMSNorm(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.scale = dim**0.5

            def forward(self, x):
                return F.normalize(x, dim=-1) * self.scale  # <-

        class Attention(nn.Module):
            def __init__(self, dim, dim_head):
                super().__init__()
                self.norm = RMSNorm(dim)
                self.q_norm = RMSNorm(dim_head)
                self.k_norm = RMSNorm(dim_head)
        """,
        """
        class ChanLayerNorm(nn.Module):
            def forward(self, x):
                var, mean = torch.var_mean(x, dim=1, unbiased=False, keepdim=True)
                return (x - mean) * (var + 1e-5).rsqrt()  # <-

        class Block(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.stem = nn.Sequential(nn.Conv2d(3, dim, 3), ChanLayerNorm(), nn.GELU())
                self.net = nn.Sequential(ChanLayerNorm(), nn.Conv2d(dim, dim, 1))

            def forward(self, x):
                x = self.stem(x)
                return x + self.net(x)
        """,
    ),
    "DT410": (
        """
        class Pipeline:
            def embedding(self, w, embedding_dim: int = 512, dtype: torch.dtype = torch.float32):
                freqs = torch.exp(torch.arange(embedding_dim // 2, dtype=dtype) * -0.1)  # <-
                return torch.sin(w[:, None] * 1000.0 * freqs[None, :])

            def __call__(self, w, latents):
                return self.embedding(w, dtype=latents.dtype)
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, dim, dtype):
                super().__init__()
                assert dtype in (torch.float16, torch.float32)
                self.dtype = dtype

            def rotation(self, end):
                positions = torch.arange(end, dtype=self.dtype)  # <-
                return torch.outer(positions, self.frequencies).cos()
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, length=1024):
                super().__init__()
                self.length = length

            def forward(self, x):
                positions = torch.arange(self.length, dtype=x.dtype)  # <-
                return torch.outer(positions, self.frequencies).cos()
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, length=1024):
                super().__init__()
                self.length = length

            def forward(self, x):
                positions = torch.arange(self.length, dtype=torch.float32)
                return torch.outer(positions, self.inv_freq.to(x.dtype)).cos()  # <-
        """,
        """
        def rope_freqs(dim, heads, device, dtype: torch.dtype):
            return 1.0 / 10000 ** (torch.arange(0, dim, 4, device=device, dtype=dtype) / dim)  # <-
        """,
    ),
    "DT417": (
        """
        def add(x: Tensor, y: Tensor):
            least, most = torch.minimum(x, y), torch.maximum(x, y)
            return (most - least).exp().log1p() + least  # <-
        """,
    ),
    "DT502": (
        """
        def sparse(edge_index):
            assert isinstance(edge_index, (Tensor, SparseTensor))
            if isinstance(edge_index, torch.LongTensor):  # <-
                edge_index = SparseTensor.from_edge_index(edge_index)
            return edge_index
        """,
    ),
}

GOOD = {
    "DT111": (
        """
        def load(state_dict, dtype):
            for name, value in state_dict.items():
                if isinstance(value, NF4Tensor):
                    state_dict[name] = value.to(dtype)
            return state_dict
        """,
    ),
    "DT119": (
        """
        class CameraTest(BaseTester):
            def test_dtype(self, camera):
                assert camera.Q.dtype in (torch.float16, torch.float32, torch.float64)
        """,
        """
        @register_meta("align")
        def align(x, boxes):
            torch._check(x.dtype == boxes.dtype, lambda: "one dtype")
            return x.new_empty(boxes.size(0))
        """,
    ),
    "DT208": (
        """
        @torch.autocast("cuda", enabled=False)
        def rotate(positions: Tensor, freqs: Tensor):
            angles = torch.einsum("i,j->ij", positions.float(), freqs)
            return angles.sin(), angles.cos()
        """,
        """
        def default(value, make):
            return make() if value is None else value

        def extract(table, t, shape):
            return table.gather(-1, t).reshape(len(t), *(1,) * (len(shape) - 1))

        class Diffusion(nn.Module):
            @torch.autocast("cuda", enabled=False)
            def q_sample(self, x, t, noise=None):
                noise = default(noise, lambda: torch.randn_like(x))
                return extract(self.alphas, t, x.shape) * x + extract(self.sigmas, t, x.shape) * noise
        """,
    ),
    "DT314": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def total(values):
            return torch.tensor(values, dtype=torch.float64, device=device)
        """,
        """
        def total(values, rank):
            device = f"cuda:{rank}" if torch.cuda.is_available() else "cpu"
            return torch.tensor(values, dtype=torch.float64, device=device)
        """,
        """
        from testing.base import BaseTester

        class TestResize(BaseTester):
            def test_gradients(self, device):
                image = torch.rand(1, 3, 4, 4, device=device, dtype=torch.float64)
                self.gradcheck(resize, (image,))
        """,
    ),
    "DT301": (
        """
        class Scores:
            def scores(self, attributions, vectors):
                vectors = torch.tensor(vectors.tolist())
                vectors = vectors.to(attributions.device)
                return self._scores(attributions, vectors)

            def _scores(self, attributions: Tensor, vectors: Tensor):
                return torch.matmul(attributions.float(), vectors.transpose(1, 2)).sign()
        """,
    ),
    "DT304": (
        """
        class Quantizer(nn.Module):
            def __init__(self, levels):
                super().__init__()
                levels = torch.tensor(levels, dtype=torch.int32)
                self.register_buffer("levels", levels, persistent=False)

            def bound(self, z):
                half_l = (self.levels - 1) / 2
                offset = torch.where(self.levels % 2 == 0, 0.5, 0.0)
                return torch.tanh(z + offset / half_l)
        """,
        """
        class Decoder(nn.Module):
            def __init__(self, widths):
                super().__init__()
                width = widths[0]
                for i in range(len(widths)):
                    width = widths[i]
                self.table = nn.Parameter(torch.randn(2, width) / width**0.5)
        """,
    ),
    "DT311": (
        """
        class Editing:
            def edited(self, guidance, level):
                change = None
                for part in guidance:
                    change = part
                change = torch.abs(change)
                if change.dtype == torch.float32:
                    found = torch.quantile(torch.abs(change).flatten(start_dim=2), level, dim=2)
                else:
                    found = torch.quantile(torch.abs(change).to(torch.float32), level, dim=2).to(change.dtype)
                return found

            def run(self, x, level, dtype: torch.dtype):
                return self.edited(x.to(dtype), level)
        """,
    ),
    "DT403": (
        """
        class Stem(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("var", torch.tensor(VARIANCES), persistent=False)

            def forward(self, x):
                return x / (self.var**0.5 + 1e-8)
        """,
        """
        def fraction(attract: Tensor, repel: Tensor):
            first, second = torch.sum(attract**2), torch.sum(repel**2)
            return (second / (first + second + 1e-10)).item()
        """,
        """
        def sample(model, x):
            posterior = model.posterior(x)
            return posterior.mean + torch.sqrt(posterior.variance + 1e-8)
        """,
        """
        def rectified(ellipse: Tensor):
            first = ellipse[..., 1:2] / (ellipse[..., 2:3] + 1e-9)
            return torch.stack([first, ellipse[..., 0:1]], dim=-1).inverse()
        """,
    ),
    "DT404": (
        """
        from testing.base import BaseTester

        class TestNormalize(BaseTester):
            def test_mean(self):
                rewards = torch.randn(4)
                expected = (rewards - rewards.mean()) / rewards.std()
                self.assert_close(normalize(rewards), expected)
        """,
        """
        class Distances(nn.Module):
            def forward(self, pos, batch):
                i, j = radius_graph(pos, r=self.cutoff, batch=batch)
                return (pos[i] - pos[j]).pow(2).sum(dim=-1).sqrt()
        """,
    ),
    "DT406": (
        """
        def _variance(x: Tensor):
            return (x * x).mean(-1) - x.mean(-1) ** 2

        def spread(x: Tensor):
            return x.std(-1)
        """,
    ),
    "DT408": (
        """
        class RMSNorm(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.scale = dim**0.5

            def forward(self, x):
                return F.normalize(x, dim=-1) * self.scale

        class Attention(nn.Module):
            def __init__(self, dim, dim_head):
                super().__init__()
                self.norm = nn.LayerNorm(dim)
                self.q_norm = RMSNorm(dim_head)
                self.k_norm = RMSNorm(dim_head)
        """,
        """
        class ChanLayerNorm(nn.Module):
            def forward(self, x):
                var, mean = torch.var_mean(x, dim=1, unbiased=False, keepdim=True)
                return (x - mean) * (var + 1e-5).rsqrt()

        class Stem(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.net = nn.Sequential(
                    nn.Conv2d(3, dim, 3), ChanLayerNorm(), nn.GELU(), nn.Conv2d(dim, dim, 3), ChanLayerNorm()
                )
        """,
    ),
    "DT410": (
        """
        class Pipeline:
            def embedding(self, w, embedding_dim: int = 512, dtype: torch.dtype = torch.float32):
                freqs = torch.exp(torch.arange(embedding_dim // 2, dtype=dtype) * -0.1)
                return torch.sin(w[:, None] * 1000.0 * freqs[None, :])

            def __call__(self, w, latents):
                return self.embedding(w, embedding_dim=256).to(latents.dtype)
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, dim, dtype):
                super().__init__()
                assert dtype in (torch.float64, torch.float32)
                self.dtype = dtype

            def rotation(self, end):
                positions = torch.arange(end, dtype=self.dtype)
                return torch.outer(positions, self.frequencies).cos()
        """,
        """
        def rotation(end, frequencies, dtype):
            if dtype not in (torch.float64, torch.float32):
                raise ValueError(dtype)
            positions = torch.arange(end, dtype=dtype)
            return torch.outer(positions, frequencies).cos()
        """,
        """
        class Rotary(nn.Module):
            def __init__(self, num_registers=4):
                super().__init__()
                self.num_registers = num_registers

            def forward(self, x):
                positions = torch.arange(self.num_registers, dtype=x.dtype)
                return torch.outer(positions, self.inv_freq.to(x.dtype)).cos()
        """,
        """
        def hanning(kernel_size: int, device, dtype: torch.dtype):
            x = torch.arange(kernel_size, device=device, dtype=dtype)
            return 0.5 - 0.5 * torch.cos(6.2832 * x / (kernel_size - 1))
        """,
        """
        def rope_freqs(dim, heads, device, dtype: torch.dtype):
            magnitude = 1.0 / 10000 ** (torch.arange(0, dim, 4, device=device, dtype=dtype) / dim)
            return magnitude * torch.rand(heads, 1, device=device, dtype=dtype).cos()
        """,
    ),
    "DT417": (
        """
        def add(x: Tensor, y: Tensor):
            minval, maxval = (x, y) if x < y else (y, x)
            return (minval - maxval).exp().log1p() + maxval
        """,
    ),
    "DT502": (
        """
        def sparse(edge_index):
            assert isinstance(edge_index, (torch.LongTensor, SparseTensor))
            if isinstance(edge_index, torch.LongTensor):
                edge_index = SparseTensor.from_edge_index(edge_index)
            return edge_index
        """,
    ),
}

test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)


def test_a_norm_is_told_of_rms_norm_where_that_computes_it() -> None:
    text = "class Norm(nn.Module):\n    def forward(self, x):\n        return F.normalize(x, {}) * self.scale\n"
    helped = [BENCH.found("DT408", text.format(how))[0].help for how in ("dim=-1", "dim=1", "p=self.p, dim=-1")]
    assert ["rms_norm" in (each or "") for each in helped] == [True, False, False]


def test_a_transform_on_the_cpu_is_told_of_the_cpu() -> None:
    text = "def spectrum(x: Tensor):\n    y = x{}\n    return torch.fft.fft(y)\n"
    (there,), (anywhere,) = (BENCH.found("DT311", text.format(moved)) for moved in (".cpu().detach()", ".detach()"))
    assert "on the CPU" in there.message and "CUDA" not in there.message
    assert "CUDA" in anywhere.message
