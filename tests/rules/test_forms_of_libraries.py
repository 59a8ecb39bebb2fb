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
