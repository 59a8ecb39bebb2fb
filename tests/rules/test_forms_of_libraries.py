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
}

GOOD = {
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
}

test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)
